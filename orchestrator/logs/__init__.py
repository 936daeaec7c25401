"""Reads what a training program prints into a ``TrainingLog``: one engine for all formats. Pure."""

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
