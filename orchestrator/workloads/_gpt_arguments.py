"""The arguments that OneFlow's GPT prints of itself, and where they contradict each other.

Source: OneFlow-Benchmark, LanguageModeling/GPT, oneflow_gpt/config.py.
"""

import re
from collections.abc import Iterator
from math import prod

from orchestrator.workloads import _arguments, _lines
from orchestrator.workloads._arguments import Arguments, Table, Value
from orchestrator.workloads._dll_notes import Notes

_OPENING = re.compile(rb"-{3} arguments -{3}")
_ARGUMENT = re.compile(rb"^" + _lines.TAG + rb"([a-z]\w{0,60}) \.{2,48}(?: (.{0,4096}))?$")
_VOCABULARY = re.compile(
    rb"padded vocab \(size: (\d{1,15})\) with (\d{1,15}) dummy tokens \(new size: (\d{1,15})\)"
)
_COUNTS = {
    "num_nodes": "nodes",
    "num_gpus_per_node": "gpus_per_node",
    "micro_batch_size": "micro_batch_size",
    "global_batch_size": "global_batch_size",
    "num_accumulation_steps": "accumulation_steps",
    "data_parallel_size": "data_parallel",
    "tensor_model_parallel_size": "tensor_parallel",
    "pipeline_model_parallel_size": "pipeline_parallel",
    "train_iters": "iterations",
    **{
        key: key
        for key in (
            *("num_layers", "hidden_size", "num_attention_heads", "seq_length", "log_interval"),
            *("vocab_size", "padded_vocab_size"),
        )
    },
}
TABLE: Table = {
    **{key: (name, _arguments.count) for key, name in _COUNTS.items()},
    "make_vocab_size_divisible_by": ("make_vocab_size_divisible_by", _arguments.whole),
    "initial_loss_scale": ("initial_loss_scale", _arguments.real),
    "loss_scale": ("loss_scale", _arguments.real),
    **{
        key: (key, _arguments.switch)
        for key in ("fp16", "checkpoint_activations", "multihead_attention_fusion")
    },
    "use_rdma": ("rdma", _arguments.switch),
}
_BATCH = ("global_batch_size", "micro_batch_size", "data_parallel", "accumulation_steps")
_RANKS = ("nodes", "gpus_per_node", "data_parallel", "tensor_parallel", "pipeline_parallel")
_WORDS = ("vocab_size", "padded_vocab_size")
_ALIGNMENT = 128
Vocabulary = tuple[int, int, int]
"""Words, tokens added to them, and both."""


def opens(text: bytes) -> bool:
    """Whether this is the line before the arguments."""
    return _OPENING.search(text) is not None


def argument(text: bytes) -> tuple[str, str] | None:
    """Name and value of an argument; None for all other lines."""
    found = _ARGUMENT.match(text)
    if not found:
        return None
    key, value = (each.decode("utf-8", "backslashreplace") for each in found.groups(b""))
    return key, value.strip()


def vocabulary(text: bytes) -> Vocabulary | None:
    """What the line before all arguments says of the padded vocabulary."""
    found = _VOCABULARY.search(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def judge(header: Arguments, padded: Vocabulary | None, notes: Notes) -> None:
    """Note where the arguments contradict themselves, and withdraw what nobody can trust then."""
    for names, seen in list(_contradictions(header, padded)):
        notes.add("MIXED-CONFIG", f"header: {seen}", sort=names[0])
        header.withdraw(*names)


def _contradictions(
    header: Arguments, padded: Vocabulary | None
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Names of arguments that do not fit together, and why."""
    if said := header.numbers(*_RANKS):
        nodes, gpus, *parallel = said
        if nodes * gpus != prod(parallel):
            words = " x ".join(map(str, parallel))
            yield _RANKS, f"{nodes} nodes x {gpus} GPUs are not data x tensor x pipeline {words}"
    if said := header.numbers(*_BATCH):
        whole, *parts = said
        if whole != prod(parts):
            words = " x ".join(map(str, parts))
            yield _BATCH, f"global_batch_size {whole} is not {words} (micro x data x accumulation)"
    if said := header.numbers(*_WORDS):
        size, new = said
        if padded and padded != (size, new - size, new):
            yield _WORDS, f"vocab_size {size} and padded_vocab_size {new}; before it, {padded}"
        if (unit := _unit(header)) and new != -(-size // unit) * unit:
            yield _WORDS, f"padded_vocab_size {new} is not {size} filled up to multiples of {unit}"


def _unit(header: Arguments) -> int | None:
    """What the padded vocabulary is a multiple of; Megatron's rule, 128 x tensor parallelism."""
    align = header.number("make_vocab_size_divisible_by")
    tensor = header.number("tensor_parallel")
    return tensor and ((_ALIGNMENT if align is None else align) * tensor or 1)


def config(header: Arguments) -> dict[str, Value]:
    """What the header says, with what follows from it."""
    said = {name: value for name, value in header.said.items() if name != "fp16"}
    if ranks := header.numbers("nodes", "gpus_per_node"):
        said["world_size"] = prod(ranks)
    if (amp := header.is_on("fp16")) is not None:
        said["precision"] = "amp" if amp else "fp32"
        if amp and "loss_scale" in header.keys and "loss_scale" not in said:
            said["loss_scale"] = "dynamic"
    return said


def batch(header: Arguments) -> int | None:
    """The global batch size, as the header gives it or as it follows from its parts."""
    parts = header.numbers(*_BATCH[1:])
    return header.number(_BATCH[0]) or (prod(parts) if parts else None)
