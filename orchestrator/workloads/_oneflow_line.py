"""What one line of a log of OneFlow's ResNet-50 or BERT is: a step, an argument, or part of one.

Source: OneFlow-Benchmark, print_args in config.py and metric_cb in util.py of
Classification/cnns and LanguageModeling/BERT.
"""

import re
from dataclasses import dataclass
from typing import Literal

from orchestrator.workloads import _arguments, _clock, _lines
from orchestrator.workloads._arguments import Table
from orchestrator.workloads._oneflow_run import Step
from orchestrator.workloads._order import Place

_ANY = rb"(?:-?\d{1,15}(?:\.\d{1,15})?|-?nan|-?inf)"
_FIELDS = rb"(?:, [a-z]\w{0,40}: " + _ANY + rb"){0,20}?"
_RATE = rb"(?P<rate>" + _lines.NUMBER % 3 + rb")"
_CLOCK = rb"(?: (?P<clock>\d{9,10}\.\d{1,9}))?[ \t]*$"
_LOST = re.compile(rb"loss: -?(?:nan|inf)")
_ARGUMENT = re.compile(rb"^" + _lines.TAG + rb"([a-z]\w{0,60}) =(?: (.{0,4096}))?$")
_LOADING = re.compile(rb"(?<!\w)Loading (synthetic data\.|data from )")

_COMMON: Table = {
    "model": ("model", _arguments.word),
    "batch_size_per_device": ("micro_batch_size", _arguments.count),
    "gpu_num_per_node": ("gpus_per_node", _arguments.count),
    "num_nodes": ("nodes", _arguments.count),
    "loss_print_every_n_iter": ("print_every", _arguments.count),
    "learning_rate": ("learning_rate", _arguments.real),
    "use_fp16": ("use_fp16", _arguments.switch),
    "use_xla": ("xla", _arguments.switch),
    "dtype": ("dtype", _arguments.word),
}


def _named(read: _arguments.Read, *keys: str) -> Table:
    """Arguments that we call as the program does."""
    return {key: (key, read) for key in keys}


@dataclass(frozen=True, slots=True)
class Format:
    """What is peculiar to the log of one program.

    Args:
        mark: the word that a record begins with.
        opening: a beginning of a record, also behind another writer's text.
        rated: the words before its rate.
        window: between which iterations DLPerf measures it.
        base: the number of the first iteration.
    """

    unit: str
    window: tuple[int, int]
    base: int
    mark: bytes
    opening: re.Pattern[bytes]
    rated: bytes
    record: re.Pattern[bytes]
    header: Table

    def concerns(self, text: bytes) -> bool:
        """Whether there is anything of this program in these lines."""
        return self.mark in text or self.rated in text or b" =" in text or b"Loading " in text

    def step(self, text: bytes, line: int) -> Step | None:
        """The one record in a line; None without one, or with pieces of others."""
        if text.count(self.rated) != 1 or len(self.opening.findall(text)) != 1:
            return None
        found = self.record.search(text)
        if not found:
            return None
        place = Place(int(found.groupdict().get("epoch", 0)), int(found["number"]))
        clock_ns = _clock.of_seconds(found["clock"]) if found["clock"] else None
        return Step(place, float(found["rate"]), clock_ns, line, found[0].rstrip())

    def is_broken(self, text: bytes) -> bool:
        """Whether a line that is no step begins as one, or holds the end of one."""
        ends = self.rated in text and b"validation: " not in text
        return ends or (self.mark in text and self.opening.search(text) is not None)


RN50 = Format(
    unit="images/s",
    window=(20, 120),
    base=1,
    mark=b"train:",
    opening=re.compile(rb"^" + _lines.TAG + rb"train:|(?<!\w)train: epoch"),
    rated=b"samples/s: ",
    record=re.compile(
        rb"(?<!\w)train: epoch (?P<epoch>\d{1,9}), iter (?P<number>\d{1,15})"
        + _FIELDS
        + rb", samples/s: "
        + _RATE
        + _CLOCK
    ),
    header={
        **_COMMON,
        **_named(_arguments.count, "num_examples", "num_epochs", "num_classes", "image_size"),
        "train_data_part_num": ("data_part_num", _arguments.count),
        **_named(_arguments.whole, "nccl_fusion_threshold_mb", "nccl_fusion_max_ops"),
        **_named(_arguments.switch, "channel_last", "pad_output", "gpu_image_decoder"),
        **_named(_arguments.switch, "fuse_bn_relu", "fuse_bn_add_relu"),
        **_named(_arguments.real, "momentum", "label_smoothing"),
        **_named(_arguments.word, "optimizer", "train_data_dir"),
    },
)
BERT = Format(
    unit="sentences/s",
    window=(19, 119),
    base=0,
    mark=b"step:",
    opening=re.compile(rb"^" + _lines.TAG + rb"step:|(?<!\w)step: \d{1,15}, [a-z]"),
    rated=b"throughput: ",
    record=re.compile(
        rb"(?<!\w)step: (?P<number>\d{1,15})"
        + _FIELDS
        + rb", throughput: "
        + _RATE
        + _FIELDS
        + _CLOCK
    ),
    header={
        **_COMMON,
        "iter_num": ("iterations", _arguments.count),
        "num_accumulation_steps": ("accumulation_steps", _arguments.count),
        **_named(_arguments.count, "data_part_num", "seq_length", "max_predictions_per_seq"),
        **_named(_arguments.count, "num_hidden_layers", "num_attention_heads"),
        **_named(_arguments.count, "hidden_size_per_head", "max_position_embeddings"),
        **_named(_arguments.count, "type_vocab_size", "vocab_size"),
        **_named(_arguments.real, "attention_probs_dropout_prob", "hidden_dropout_prob"),
        **_named(_arguments.switch, "save_last_snapshot"),
    },
)


def argument(text: bytes) -> tuple[str, str] | None:
    """Name and value of an argument that the header prints; None for all other lines."""
    found = _ARGUMENT.match(text)
    if not found:
        return None
    key, value = (each.decode("utf-8", "backslashreplace") for each in found.groups(b""))
    return key, value.strip()


def loaded(text: bytes) -> Literal["synthetic", "ofrecord"] | None:
    """Which kind of data the program says that it loads."""
    found = _LOADING.search(text)
    if not found:
        return None
    return "synthetic" if found[1].startswith(b"synthetic") else "ofrecord"


def is_lost(step: Step) -> bool:
    """Whether a loss that a step prints is not finite."""
    return _LOST.search(step.words) is not None
