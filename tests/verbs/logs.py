"""Recorded logs that several tests read."""

from tests import SAMPLES

LOGS = SAMPLES / "logs-pytorch-rn50"
EIGHT = LOGS / "paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt"
CUT = LOGS / "paddleperf_2022-06-16_8c650ff_pytorch_gpu8_amp_bs256.txt"
