"""Logs that were really recorded, laid out as DLPerf lays out a benchmark's logs."""

import shutil
import sys
from pathlib import Path

from tests.docs.pages import ROOT

SAMPLES = ROOT / "tests/samples/logs-pytorch-rn50"
# PaddlePaddle/Perf measured NVIDIA's PyTorch ResNet-50 on up to 4 machines with 8 V100 each.
TREE = {
    "1n1g/r50_b128_fp32_1.log": "2020-12-18_be362d9_pytorch_gpu1_fp32_bs128",
    "4n8g/r50_b128_fp32_1.log": "2020-12-19_45057af_pytorch_gpu32_fp32_bs128",
    "1n1g/r50_b128_amp_1.log": "2021-05-27_37ea901_pytorch_gpu1_amp_bs128",
    "1n8g/r50_b128_amp_1.log": "2020-12-18_be362d9_pytorch_gpu8_amp_bs128",
    "1n8g/r50_b256_amp_1.log": "2022-06-16_8c650ff_pytorch_gpu8_amp_bs256",
    "4n8g/r50_b256_amp_1.log": "2020-12-19_45057af_pytorch_gpu32_amp_bs256",
    "4n8g/r50_b256_amp_2.log": "2022-11-21_b150233_pytorch_gpu32_amp_bs256",
}


def lay(folder: Path) -> Path:
    """Copy the logs below a new folder; the folder."""
    for name, sample in TREE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / f"paddleperf_{sample}.txt", folder / name)
    return folder


if __name__ == "__main__":
    lay(Path(sys.argv[1]))
