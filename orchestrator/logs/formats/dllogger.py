"""NVIDIA's DLLogger in PyTorch: PARAMETER lines, one line a step, Summary.

Source: DLLogger's StdOutBackend and DeepLearningExamples' image_classification/logger.py; the
variants are those of the logs in PaddlePaddle/Perf, 2020 to 2023.
"""

import re
from math import isfinite

from orchestrator.logs.engine import Reader, Run
from orchestrator.logs.format import LOST, NUMBER, Format, Promise, parse_number
from orchestrator.logs.header import Table, Value, count, keep, parser, real, switch, whole

TIME = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?>(?:\.\d{6})?)"
"""Matches a time of Python's ``str(datetime)``, which drops .000000."""

# DLL 2020-12-16 11:32:26.497417 - Epoch: 0 Iteration: 20  train.loss : 7.48701  train.total_ips :
# 367.81 img/s
_STEP = (
    rb"DLL (?P<clock>" + TIME + rb") - Epoch: (?P<epoch>\d{1,9}) Iteration: (?P<iteration>\d{1,15})"
    rb"(?>(?: ++(?!train\.total_ips)[A-Za-z_][\w.]*+ : "
    + NUMBER
    + rb"(?: (?:None|s|im(?:g|ages)/s)(?= ))?)*)"
    rb" +train\.total_ips : (?P<rate>" + NUMBER + rb") im(?:g|ages)/s"
)
# DLL 2020-12-16 11:32:21.1 - PARAMETER data : /data  arch : resnet50  batch_size : 128
_OTHER = re.compile(
    rb"DLL " + TIME + rb" - (?:(?P<header>PARAMETER) |(?P<summary>Summary): |Epoch: \d{1,9}  [a-z]"
    rb"|Epoch: \d{1,9} Iteration: \d{1,15} Validation Iteration: \d"
    rb"|(?!PARAM|Summ|Epoch|Iter)[A-Za-z])"
)
_BROKEN = re.compile(
    rb"DLL \d|^(?=.*DLL ).*(?:Epoch: |Iteration:|Summary: |PARAMETER)|^(?=.*train\.).*Iteration:"
)
_word = parser(r"(?!.*  |.* :).*", str, "one value")
_TABLE: Table = {
    "batch_size": ("micro_batch_size", count),
    "prof": ("iterations", whole),
    "model.num_classes": ("num_classes", count),
    **keep(count, "world_size", "num_classes", "image_size", "accumulation_steps"),
    **keep(whole, "epochs", "run_epochs", "optimizer_batch_size"),
    **keep(_word, "arch", "data", "data_backend", "memory_format", "device"),
    **keep(switch, "amp", "bf16", "allow_tf32", "fp16", "dynamic_loss_scale"),
    **keep(real, "static_loss_scale"),
}
_FLAGS = ("epochs", "run_epochs", "amp", "fp16", "bf16", "static_loss_scale", "dynamic_loss_scale")


def parameters(line: bytes) -> list[tuple[str, str]]:
    """Return names and values of a PARAMETER line; a value may be empty: ``a :  b : True``."""
    text = line.decode("utf-8", "backslashreplace").partition(" PARAMETER")[2]
    parts = re.split(r" ([A-Za-z_][A-Za-z0-9_.]*) : ", text)
    return [(name, value.strip()) for name, value in zip(parts[1::2], parts[2::2], strict=True)]


def results(line: bytes) -> dict[str, float]:
    """Return the finite numbers of a line of results, by name."""
    found = re.findall(rb" ([A-Za-z_][\w.]*) : (" + NUMBER + rb")(?=\s|$)", line)
    named = {name.decode("ascii").replace(".", "_"): parse_number(value) for name, value in found}
    if "train_total_ips" in named:
        named["train_throughput"] = named.pop("train_total_ips")
    return {name: value for name, value in named.items() if isfinite(value)}


def _event(reader: Reader, line: bytes) -> bool:
    other = _OTHER.search(line) if line.count(b"DLL ") == 1 else None
    if other is None:
        return False
    if other["header"]:
        given = parameters(line)
        if any(key in ("data", "arch") for key, _ in given):  # a second line has only model.*
            reader.open_header()
        for key, value in given:
            reader.run.header.add(key, value, reader.line)
    elif other["summary"]:
        reader.run.reported.update(results(line))
    return True


def _config(run: Run) -> dict[str, Value]:
    header, values = run.header, run.header.values
    config = {name: value for name, value in values.items() if name not in _FLAGS}
    flags = [values[name] for name in ("amp", "fp16") if name in values]
    if flags and header.is_certain("amp", "fp16"):
        config["precision"] = "amp" if any(flags) else "bf16" if values.get("bf16") else "fp32"
    if values.get("dynamic_loss_scale"):
        config["loss_scale"] = "dynamic"
    elif header.is_certain("dynamic_loss_scale") and config.get("precision") == "amp":
        config["loss_scale"] = values.get("static_loss_scale", "")
    return {name: value for name, value in config.items() if value != ""}


def _promise(run: Run) -> Promise:
    """Return the promised steps: ``--prof N`` runs iterations 1 to N - 1 in each epoch."""
    prof, epochs, most = (
        run.header.number(name) or 0 for name in ("iterations", "epochs", "run_epochs")
    )
    if prof < 2:
        return Promise()
    first, epoch = (run.first.number, run.first.epoch) if run.first else (1, 0)
    requested, stride = epochs - epoch, run.usual or 1
    whole_epochs = max(run.epochs, 1, min(requested, most) if most > 0 else requested)
    begin = min(max(first, 1), stride)
    return Promise(lines=max((prof - 1 - begin) // stride + 1, 0) * whole_epochs)


DLLOGGER = Format(
    unit="images/s",
    step=_STEP,
    marks=(b"DLL", b"Iteration:", b"Experiment ended"),
    alone=(b"DLL ", b"Iteration:"),
    lost=re.compile(rb"loss : (?:" + LOST[1:] + rb")"),
    sealed=re.compile(_STEP),
    digits=(1e-2, 0.0),
    end=re.compile(rb"Experiment ended|DLL .* - Summary: "),
    window=(20, 60),
    header=_TABLE,
    needed=(("batch_size", frozenset({"batch_size"})), ("prof", frozenset({"prof"}))),
    headerless=("NO-HEADER", "no PARAMETER line before the steps"),
    event=_event,
    broken=_BROKEN.search,
    config=_config,
    promise=_promise,
)
