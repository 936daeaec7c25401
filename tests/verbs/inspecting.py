"""The command `inspect`, run on samples."""

import subprocess
import sys
from pathlib import Path

from tests import SAMPLES, commands

PROGRAM = str(Path(sys.executable).with_name("dlperf-orch"))
LOGS = SAMPLES / "logs-pytorch-rn50"
EIGHT = LOGS / "paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt"
CUT = LOGS / "paddleperf_2022-06-16_8c650ff_pytorch_gpu8_amp_bs256.txt"


def inspect(*words: str | Path, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [PROGRAM, "inspect", *words],
        env=commands.environment(),
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )


def inspect_log(
    file: str | Path, *words: str, stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    return inspect("log", file, "--workload", "ngc_pytorch_rn50", *words, stdin=stdin)


def without_header(log: Path) -> bytes:
    return b"".join(
        line for line in log.read_bytes().splitlines(keepends=True) if b"PARAMETER" not in line
    )
