"""OneFlow's GPT: arguments, the use of the GPUs once, and a table with a row every few steps.

Neither lines nor rows have a time; a row contains the mean time of a step.
Source: OneFlow-Benchmark, LanguageModeling/GPT, oneflow_gpt/config.py and util.py; DLPerf,
OneFlow/LanguageModeling/GPT/README.md.
"""

import re
from math import prod

from orchestrator.logs.engine import Reader, Run
from orchestrator.logs.format import LOST, TAG, Format, Promise
from orchestrator.logs.header import Table, Value, count, keep, real, switch, whole

ROWS = 5
"""Rows at the end of a table, whose mean the published latencies are."""

_NUMBER = rb"(?:\d{1,15}\.\d{5}" + LOST + rb")"
"""With fewer decimals it was cut."""
# | 100      | 3200            | 51200           | 39.00969   | 13.12494   | 6.82232    |
_STEP = (
    rb"^[^|\n]*\|(?P<words> *+(?P<iteration>\d{1,15}) *+\| *+\d{1,15} *+\| *+\d{1,15} *+"
    rb"\| *+(?P<rate>" + _NUMBER + rb") *+\| *+(?P<latency>" + _NUMBER + rb") *+\|"
    rb"(?>(?: *+" + _NUMBER + rb" *+\|){0,20}))[ \t]*$"
)
_BROKEN = re.compile(rb"^[^|]*\| *\d+ *(?:\||$)|\d\.\d{5} *\|[ \t]*$")
# 100 %, 11958 MiB
_MEMORY = re.compile(rb"^" + TAG + rb"(?:\d{1,3} %|\[[^\]]{1,30}\]), (\d{1,9}) MiB[ \t]*$")
_OPENING = re.compile(rb"-{3} arguments -{3}|padded vocab \(size: \d")
# micro_batch_size ................ 8
_ARGUMENT = re.compile(rb"^" + TAG + rb"([a-z]\w{0,60}) \.{2,48}(?: (.{0,4096}))?$")
_TABLE: Table = {
    "num_nodes": ("nodes", count),
    "num_gpus_per_node": ("gpus_per_node", count),
    "num_accumulation_steps": ("accumulation_steps", count),
    "data_parallel_size": ("data_parallel", count),
    "tensor_model_parallel_size": ("tensor_parallel", count),
    "pipeline_model_parallel_size": ("pipeline_parallel", count),
    "train_iters": ("iterations", count),
    "use_rdma": ("rdma", switch),
    **keep(count, "micro_batch_size", "global_batch_size", "num_layers", "hidden_size"),
    **keep(count, "seq_length", "num_attention_heads", "log_interval"),
    **keep(count, "vocab_size", "padded_vocab_size"),
    **keep(whole, "make_vocab_size_divisible_by"),
    **keep(real, "initial_loss_scale", "loss_scale"),
    **keep(switch, "fp16", "checkpoint_activations", "multihead_attention_fusion"),
}


def _event(reader: Reader, line: bytes) -> bool:
    run = reader.run
    if memory := _MEMORY.match(line):
        run.memory_mib = max(run.memory_mib or 0, int(memory[1]))
    elif _OPENING.search(line):
        reader.open_header()
    elif argument := _ARGUMENT.match(line):
        reader.argument(*argument.groups(b""))
    else:
        return False
    return True


def _config(run: Run) -> dict[str, Value]:
    header = run.header
    config = {name: value for name, value in header.values.items() if name != "fp16"}
    if ranks := header.numbers("nodes", "gpus_per_node"):
        config["world_size"] = prod(ranks)
    if (amp := header.is_on("fp16")) is not None:
        config["precision"] = "amp" if amp else "fp32"
        if amp and "loss_scale" in header.keys:
            config.setdefault("loss_scale", "dynamic")
    return config


def _promise(run: Run) -> Promise:
    header = run.header
    parts = header.numbers("micro_batch_size", "data_parallel", "accumulation_steps")
    iterations = header.number("iterations")
    return Promise(
        interval=header.number("log_interval"),
        least=iterations,
        most=iterations,
        epochs=1,
        batch=header.number("global_batch_size") or (prod(parts) if parts else None),
    )


ONEFLOW_GPT = Format(
    unit="samples/s",
    rule="latency",
    step=_STEP,
    marks=(b"|", b" MiB", b" ..", b"padded vocab", b" arguments "),
    sealed=re.compile(_STEP),
    digits=(1e-5, 1e-5),
    lost=re.compile(rb"^[^|]*\|(?:[^|]*\|){5}.*(?:" + LOST[1:] + rb")"),
    clock=None,
    window=None,
    tail=ROWS,
    header=_TABLE,
    headerless=("NO-HEADER", "no line of the arguments before the table"),
    event=_event,
    broken=_BROKEN.search,
    config=_config,
    promise=_promise,
)
