"""Logs: reads what a training program prints into a ``TrainingLog``. Pure, no IO.

One engine knows runs, order and ends (``engine``), windows, clocks and rates (``window``);
``formats`` has a module a format, ``nccl`` reads what communication libraries print. For a program
with another log, write one ``Format``, in ``formats`` or beside your workload.
"""

from orchestrator.logs import clock, nccl
from orchestrator.logs.engine import Reader, Run, progress, reader
from orchestrator.logs.format import LOST, NUMBER, TAG, Format, Promise
from orchestrator.logs.formats.dllogger import DLLOGGER
from orchestrator.logs.formats.gpt import ONEFLOW_GPT
from orchestrator.logs.formats.oneflow import ONEFLOW_BERT, ONEFLOW_RN50
from orchestrator.logs.formats.tensorflow import TENSORFLOW
from orchestrator.logs.header import Value, count, real, switch, whole, word

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
