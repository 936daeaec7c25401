"""OneFlow's ResNet-50 and BERT: arguments, then a line every few iterations.

Since 21 August 2020 such a line ends with the time at which it was printed.
Source: OneFlow-Benchmark, print_args in config.py and metric_cb in util.py of Classification/cnns
and LanguageModeling/BERT; DLPerf, extract_cnn_result.py and extract_bert_result.py.
"""

import re
from dataclasses import replace
from math import prod

from orchestrator.logs import clock
from orchestrator.logs.engine import Reader, Run
from orchestrator.logs.format import LOST, TAG, Agreement, Format, Promise
from orchestrator.logs.header import Table, Value, count, keep, real, switch, whole, word

_RATE = rb"(?P<rate>\d{1,15}\.\d{3}" + LOST + rb")"
"""With fewer decimals it was cut."""
# , loss: 7.087004, top_1: 0.000000
_FIELD = rb", (?!throughput)[a-z]\w{0,40}+: (?:-?\d{1,15}(?:\.\d{1,15})?" + LOST + rb")"
_FIELDS = rb"(?>(?:" + _FIELD + rb"){0,20})"
_CLOCK = rb"(?: (?P<clock>\d{9,10}\.\d{1,9}))?[ \t]*$"
# batch_size_per_device = 128
_ARGUMENT = re.compile(rb"^" + TAG + rb"([a-z]\w{0,60}) =(?: (.{0,4096}))?$")
# Loading data from /dataset/bert
_LOADING = re.compile(rb"(?<!\w)Loading (synthetic data\.|data from )")

_COMMON: Table = {
    "batch_size_per_device": ("micro_batch_size", count),
    "gpu_num_per_node": ("gpus_per_node", count),
    "num_nodes": ("nodes", count),
    "loss_print_every_n_iter": ("print_every", count),
    "use_xla": ("xla", switch),
    **keep(real, "learning_rate"),
    **keep(switch, "use_fp16"),
    **keep(word, "model", "dtype"),
}
_HIDDEN = ("use_fp16", "dtype", "train_data_dir")


def _event(reader: Reader, line: bytes) -> bool:
    if argument := _ARGUMENT.match(line):
        reader.argument(*argument.groups(b""))
        return True
    loading = _LOADING.search(line)
    if loading and not reader.form.broken(line):
        reader.run.header.keys.add(loading[1].decode())
    return False


def _config(run: Run) -> dict[str, Value]:
    header, promise = run.header, _promise(run)
    config = {name: value for name, value in header.values.items() if name not in _HIDDEN}
    if ranks := header.numbers("nodes", "gpus_per_node"):
        config["world_size"] = prod(ranks)
    if promise.least is not None and promise.least == promise.most:
        config["iterations"] = promise.least
    amp, dtype = header.is_on("use_fp16"), header.get("dtype")
    if dtype == "float32" or (dtype is None and amp is not None):  # float16 is neither
        config["precision"] = "amp" if amp else "fp32"
    if (xla := header.is_on("use_xla")) is not None:
        config["xla"] = xla
    # Without validation data the program prints that these are synthetic, too.
    has_files, is_made = ("data from " in header.keys, "synthetic data." in header.keys)
    if "train_data_dir" in header.keys:
        has_files = bool(header.get("train_data_dir"))
        is_made = not has_files
    data = "" if has_files == is_made else "ofrecord" if has_files else "synthetic"
    if data:
        config["data"] = data
    if data == "synthetic":
        config.pop("data_part_num", None)  # a default, of files that are not read
    return config


def _promise(run: Run) -> Promise:
    """Return the promised steps.

    ResNet-50's epoch is a number of images; only some versions train a last, incomplete batch.
    """
    header = run.header
    iterations, epochs = header.number("iterations"), header.number("num_epochs")
    numbers = header.numbers("num_examples", "micro_batch_size", "nodes", "gpus_per_node")
    images, *batch = numbers or (None,)
    return Promise(
        interval=header.number("print_every"),
        least=iterations if images is None else images // prod(batch),
        most=iterations if images is None else -(-images // prod(batch)),
        epochs=epochs,
        tells=frozenset({"micro_batch_size", "world_size"}),
    )


ONEFLOW_RN50 = Format(
    unit="images/s",
    # train: epoch 0, iter 20, loss: 7.087004, samples/s: 3988.891 1597933942.9863544
    step=rb"(?<!\w)train: epoch (?P<epoch>\d{1,9}), iter (?P<iteration>\d{1,15})"
    + (_FIELDS + rb", samples/s: " + _RATE + _CLOCK),
    marks=(b"train:", b"samples/s: ", b" =", b"Saving model to ", b"Loading "),
    alone=(b"train:", b"samples/s: "),
    lost=re.compile(rb"loss: (?:" + LOST[1:] + rb")"),
    # Saving model to ./snapshots/snapshot_epoch_0
    end=re.compile(rb"Saving model to \S*snapshot_(?:epoch_\d|last)"),
    clock=clock.of_seconds,
    agreement=Agreement(0.003, 0.003, late_ns=5e6, window_late_ns=5e6),  # recorded: 0.4 ms of 1 s
    averaged=True,
    window=(20, 120),
    header={
        **_COMMON,
        **keep(count, "num_examples", "num_epochs", "num_classes", "image_size"),
        "train_data_part_num": ("data_part_num", count),
        **keep(whole, "nccl_fusion_threshold_mb", "nccl_fusion_max_ops"),
        **keep(switch, "channel_last", "pad_output", "gpu_image_decoder"),
        **keep(switch, "fuse_bn_relu", "fuse_bn_add_relu"),
        **keep(real, "momentum", "label_smoothing"),
        **keep(word, "optimizer", "train_data_dir"),
    },
    headerless=("NO-HEADER", "no line of the arguments before the steps"),
    event=_event,
    broken=re.compile(
        rb"^" + TAG + rb"train:|(?<!\w)train: epoch|^(?!.*validation: ).*samples/s: "
    ).search,
    config=_config,
    promise=_promise,
)
ONEFLOW_BERT = replace(
    ONEFLOW_RN50,
    unit="sentences/s",
    # step: 119, total_loss: 8.1, mlm_loss: 7.4, nsp_loss: 0.7, throughput: 51.2 1597933977.6064055
    step=rb"(?<!\w)step: (?P<iteration>\d{1,15})"
    + (_FIELDS + rb", throughput: " + _RATE + _FIELDS + _CLOCK),
    marks=(b"step:", b"throughput: ", b" =", b"Loading "),
    alone=(b"step:", b"throughput: "),
    end=None,  # snapshots are saved in the middle of a run, too
    # recorded on loaded CPUs: 61 ms in a step, 33 ms in a window
    agreement=Agreement(0.003, 0.003, late_ns=7e7, window_late_ns=4e7),
    base=0,
    window=(19, 119),
    header={
        **_COMMON,
        "iter_num": ("iterations", count),
        "num_accumulation_steps": ("accumulation_steps", count),
        **keep(count, "data_part_num", "seq_length", "max_predictions_per_seq"),
        **keep(count, "num_hidden_layers", "num_attention_heads"),
        **keep(count, "hidden_size_per_head", "max_position_embeddings"),
        **keep(count, "type_vocab_size", "vocab_size"),
        **keep(real, "attention_probs_dropout_prob", "hidden_dropout_prob"),
        **keep(switch, "save_last_snapshot"),
    },
    broken=re.compile(
        rb"^" + TAG + rb"step:|(?<!\w)step: \d{1,15}, [a-z]|^(?!.*validation: ).*throughput: "
    ).search,
)
