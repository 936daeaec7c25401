"""Logs: what a training program printed, read into a ``TrainingLog``. Pure, no IO.

Who lives here: one engine that knows runs, order, windows, clocks, rates, digests and the bounds of
memory (``engine``, ``run``, ``window``, ``records``, ``header``); a module a
format in ``formats/``; what communication libraries print (``nccl``); lines that mpirun tagged
(``tagged``). For a program that logs in a new way, write one ``Format``, in ``formats/`` or beside
your workload; for a new word of a program that is known, change its module in ``formats/``.
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

ReadLog = Callable[[Iterable[bytes], tuple[int, int] | None], TrainingLog]

fabric = nccl.read


def reader(form: Format, usual: tuple[int, int] | None = None) -> ReadLog:
    """A reader of logs of one format, in chunks of raw bytes.

    Args:
        usual: the window where none is requested; None for the format's own.
    """

    def read(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
        return engine.read(form, chunks, window or usual)

    return read


def progress(form: Format) -> Callable[[bytes], tuple[int, float] | None]:
    """A reader of the last whole step in a part of a log: its iteration and its printed rate."""
    return partial(engine.progress, form)
