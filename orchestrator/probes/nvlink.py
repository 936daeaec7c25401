"""Parsers of `nvidia-smi nvlink`: the links of GPUs, whether they are active, and their errors."""

import re
from collections.abc import Iterator, Mapping

from orchestrator.model.health import NvlinkErrors
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
_GPU = re.compile(r"GPU ([0-9]+): ")
_LINK = re.compile(r"\s+Link ([0-9]+): (.+)")
_COUNT = re.compile(r"(.+): ([0-9]+)")


def active(text: str) -> Mapping[int, tuple[bool, ...]]:
    """By GPU, whether each of its NVLinks is active, in `nvidia-smi nvlink --status`."""
    by_gpu: dict[int, list[bool]] = {}
    for gpu, _, words in _links(text):
        by_gpu.setdefault(gpu, []).append("inactive" not in words.lower())
    return {gpu: tuple(links) for gpu, links in by_gpu.items()}


def errors(text: str) -> tuple[NvlinkErrors, ...]:
    """The links that have counted any error, in `nvidia-smi nvlink --errorcounters`.

    Source:
        Names up to Hopper as recorded in ``tests/samples/health``; those of Blackwell and their
        meaning as NVIDIA's DCGM lists them (``DCGM_FI_DEV_NVLINK_COUNT_*``).
    """
    counts: dict[tuple[int, int], dict[str, int]] = {}
    for gpu, link, words in _links(text):
        counter = _COUNT.fullmatch(words)
        if counter and counter[1] in _ERRORS and int(counter[2]) > 0:
            counts.setdefault((gpu, link), {})[counter[1]] = int(counter[2])
    return tuple(NvlinkErrors(gpu, link, by_name) for (gpu, link), by_name in counts.items())


STATUS = Probe("nvlink", ("nvidia-smi", "nvlink", "--status"), active)
ERRORS = Probe("nvlink.errors", ("nvidia-smi", "nvlink", "--errorcounters"), errors)


def _links(text: str) -> Iterator[tuple[int, int, str]]:
    """GPU, link and the words behind them, of every line about a link."""
    gpu = None
    for line in text.splitlines():
        if begins := _GPU.match(line):
            gpu = int(begins[1])
        elif gpu is not None and (link := _LINK.fullmatch(line)):
            yield gpu, int(link[1]), link[2].strip()
