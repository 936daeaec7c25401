"""Throughput from real logs is what exact arithmetic on their raw lines gives, to the last bit."""

import re
from datetime import datetime, timedelta
from fractions import Fraction

import pytest

from orchestrator import workloads
from orchestrator.measuring import validity
from tests import SAMPLES

DLL = re.compile(r"DLL (\S+ \S+)\.(\d+) - .*Iteration: (\d+)  train")
TRAIN = re.compile(r"DLL (\S+ \S+)\.(\d+) - \(\d+, (\d+)\) (?:imgs_per_sec|total_ips)")
NVLOG = re.compile(r"NVLOG\S+ \S+ (\d+)\.(\d+) \(\S+\) iteration: (\d+)")
RESNET = re.compile(r"train: epoch 0, iter (?P<n>\d+), .* (?P<s>\d+)\.(?P<f>\d+)$")
BERT = re.compile(r"step: (?P<n>\d+), .* (?P<s>\d+)\.(?P<f>\d+)$")
# Every recorded log that is whole and has a clock: its program, its global batch, a step line.
LOGS = {
    "logs-pytorch-rn50/paddleperf_2020-12-18_be362d9_pytorch_gpu1_fp32_bs128.txt": (128, DLL),
    "logs-pytorch-rn50/paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt": (1024, DLL),
    "logs-pytorch-rn50/paddleperf_2020-12-19_45057af_pytorch_gpu32_amp_bs256.txt": (8192, DLL),
    "logs-pytorch-rn50/paddleperf_2022-11-21_b150233_pytorch_gpu32_amp_bs256.txt": (8192, DLL),
    "real-upstream/pytorch_5cc03ca_1n2g_syntetic_r50_b1_amp_1.log": (2, DLL),
    "real-upstream/tensorflow_fed7ba99_1n1g_train_r50_b1_fp32_1.log": (1, TRAIN),
    "logs-tf-rn50/paddleperf_2020-12-18_be362d9_tf_gpu8_amp_bs256.txt": (2048, TRAIN),
    "logs-tf-rn50/paddleperf_2021-05-27_37ea901_tf_gpu8_fp32_bs128.txt": (1024, NVLOG),
    "logs-oneflow-rn50/of_2n8g_b128_with_timestamp_excerpt.txt": (2048, RESNET),
    "real-upstream/oneflow_637bb9c_1n1g_rn50_b128_fp32_1.log": (128, RESNET),
    "logs-oneflow-bert/of_1n1g_b24_with_timestamp_excerpt.txt": (24, BERT),
}
WORKLOADS = {DLL: "ngc_pytorch_rn50", RESNET: "oneflow_rn50", BERT: "oneflow_bert"}


def clocks(text: str, step: re.Pattern[str]) -> dict[int, Fraction]:
    """By iteration, the clock of every step line in seconds, exactly as printed."""
    found = {}
    for line in text.splitlines():
        if match := step.search(line):
            named = match.groupdict()
            whole, decimals, number = (
                (named["s"], named["f"], named["n"]) if named else match.groups()
            )
            seconds = int(whole) if whole.isdigit() else since_1970(whole)
            found[int(number)] = seconds + Fraction(int(decimals), 10 ** len(decimals))
    return found


def since_1970(words: str) -> int:
    return (datetime.fromisoformat(words) - datetime(1970, 1, 1)) // timedelta(seconds=1)


def windows(iterations: list[int]) -> list[tuple[int, int]]:
    """Narrow and wide ones, between iterations that are printed."""
    last = len(iterations) - 1
    ends = ((0, 1), (last - 1, last), (0, last), (last // 4, last // 2), (last // 3, last))
    return [(iterations[a], iterations[b]) for a, b in ends if a < b]


@pytest.mark.parametrize("name", LOGS)
def test_a_number_is_exact_to_its_last_bit(name: str) -> None:
    """No clock loses a digit: only the last division rounds, once, whatever the window."""
    batch, step = LOGS[name]
    log = SAMPLES / name
    workload = WORKLOADS.get(step, "ngc_tensorflow_rn50")
    at = clocks(log.read_text(encoding="utf-8", errors="replace"), step)
    read = workloads.find(workload)
    assert read is not None
    for first, last in windows(list(at)):
        said = read.read([log.read_bytes()], (first, last))
        exact = float(batch * (last - first) / (at[last] - at[first]))
        assert validity.compute_throughput(said, batch, "clock") == exact, (first, last)
