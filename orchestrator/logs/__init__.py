"""Logs: reads what a training program prints into a ``TrainingLog``. Pure, no IO.

One engine knows runs, order and ends (``engine``, ``run``), windows, clocks and rates (``window``);
``formats`` has a module a format, ``nccl`` reads what communication libraries print. For a program
with another log, write one ``Format``, in ``formats`` or beside your workload.
"""

from collections.abc import Callable, Iterable
from functools import partial

from orchestrator.logs import clock, engine, nccl
from orchestrator.logs.engine import Reader
from orchestrator.logs.format import LOST, NUMBER, TAG, Format, Promise
from orchestrator.logs.formats.dllogger import DLLOGGER
from orchestrator.logs.formats.gpt import ONEFLOW_GPT
from orchestrator.logs.formats.oneflow import ONEFLOW_BERT, ONEFLOW_RN50
from orchestrator.logs.formats.tensorflow import TENSORFLOW
from orchestrator.logs.header import Value, count, real, switch, whole, word
from orchestrator.logs.run import Run
from orchestrator.model.log import TrainingLog

__all__ = [
    "DLLOGGER",
    "LOST",
    "NUMBER",
    "ONEFLOW_BERT",
    "ONEFLOW_GPT",
    "ONEFLOW_RN50",
    "TAG",
    "TENSORFLOW",
    "Format",
    "Promise",
    "Reader",
    "Run",
    "Value",
    "clock",
    "count",
    "fabric",
    "progress",
    "reader",
    "real",
    "switch",
    "whole",
    "word",
]

fabric = nccl.read


def reader(
    form: Format, usual: tuple[int, int] | None = None
) -> Callable[[Iterable[bytes], tuple[int, int] | None], TrainingLog]:
    """Return a function that reads logs of one format, given in chunks, for a window.

    Args:
        usual: the window where none is requested; None for the format's own.
    """
    return lambda chunks, window: engine.read(form, chunks, window or usual)


def progress(form: Format) -> Callable[[bytes], tuple[int, float] | None]:
    """Return a function that finds iteration and rate of the last whole step in a part of a log."""
    return partial(engine.progress, form)
