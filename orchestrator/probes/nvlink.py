"""Parsers of `nvidia-smi nvlink`: the links of GPUs, whether they are active, and their errors."""

import re
from collections.abc import Iterator, Mapping

from orchestrator.probes import Probe

# Up to Hopper the first three; Blackwell's links count the others in their place. What forward
# error correction mends (`FEC Errors`, `Raw Errors`) grows on sound links too.
_ERRORS = frozenset(
    {"Replay Errors", "Recovery Errors", "CRC Errors"}
    | {"Malformed packet Errors", "Buffer overrun Errors", "Local link integrity Errors"}
    | {"Rx Errors", "Rx remote Errors", "Rx General Errors", "Tx discards"}
    | {"Link recovery successful events", "Link recovery failed events"}
    | {"Effective Errors", "Symbol Errors"}
)
# "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-...)", and below it "\t Link 0: Replay Errors: 0".
_LINE = re.compile(r"GPU (?P<gpu>[0-9]+): |\s+Link (?P<link>[0-9]+): (?P<words>.+)")


def active(text: str) -> Mapping[int, tuple[bool, ...]]:
    """Return by GPU which of its NVLinks are active, from `nvidia-smi nvlink --status`."""
    by_gpu: dict[int, tuple[bool, ...]] = {}
    for gpu, _, words in _links(text):
        by_gpu[gpu] = (*by_gpu.get(gpu, ()), "inactive" not in words.lower())
    return by_gpu


def errors(text: str) -> Mapping[tuple[int, int], Mapping[str, int]]:
    """Return errors by GPU and link, counted above 0 by `nvidia-smi nvlink --errorcounters`.

    Source:
        Names up to Hopper as recorded in ``tests/samples/health``; those of Blackwell and their
        meaning as NVIDIA's DCGM lists them (``DCGM_FI_DEV_NVLINK_COUNT_*``).
    """
    counts: dict[tuple[int, int], dict[str, int]] = {}
    for gpu, link, words in _links(text):
        name, _, count = words.rpartition(": ")
        if name in _ERRORS and count.isdecimal() and int(count) > 0:
            counts.setdefault((gpu, link), {})[name] = int(count)
    return counts


STATUS = Probe("nvlink", ("nvidia-smi", "nvlink", "--status"), active)
ERRORS = Probe("nvlink.errors", ("nvidia-smi", "nvlink", "--errorcounters"), errors)


def _links(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield GPU, link and the words behind them, of every line about a link."""
    gpu = None
    for line in filter(None, map(_LINE.match, text.splitlines())):
        gpu = int(line["gpu"]) if line["gpu"] else gpu
        if gpu is not None and line["link"]:
            yield gpu, int(line["link"]), line["words"].strip()
