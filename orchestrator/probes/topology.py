"""Parsers of `nvidia-smi topo -m` and `nvlink`: how the GPUs and HCAs of a node are connected."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from orchestrator import errors
from orchestrator.model.problem import Problem
from orchestrator.model.site import Topology

_UNDERLINE = re.compile(r"\x1b\[[0-9;]*m")  # of the header
_TITLE = re.compile(r"(?:CPU|NUMA) Affinity|GPU NUMA ID|\S+")
# "NIC0: mlx5_0"; where the text ends within such a line, only a number shows that it is whole.
_LEGEND = re.compile(r"\s*(NIC[0-9]+): (\S*[0-9]|\S+(?=\s*\n))\s*")
_LINK = re.compile(r"SYS|NODE|PHB|PXB|PIX|SOC|C2C|NV[0-9]{1,2}")
_NUMBERS = re.compile(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*")
# Up to Hopper the first three; Blackwell's links count the others in their place. What forward
# error correction mends (`FEC Errors`, `Raw Errors`) grows on sound links too.
_NVLINK_ERRORS = frozenset(
    {"Replay Errors", "Recovery Errors", "CRC Errors"}
    | {"Malformed packet Errors", "Buffer overrun Errors", "Local link integrity Errors"}
    | {"Rx Errors", "Rx remote Errors", "Rx General Errors", "Tx discards"}
    | {"Link recovery successful events", "Link recovery failed events"}
    | {"Effective Errors", "Symbol Errors"}
)
# "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-...)", and below it "\t Link 0: Replay Errors: 0".
_NVLINK = re.compile(r"GPU (?P<gpu>[0-9]+): |\s+Link (?P<link>[0-9]+): (?P<words>.+)")


def parse(text: str) -> Topology:
    """Return the topology of a node, with a problem per line that cannot be read safely.

    The driver prints rows in the order of columns, so the `X` on the diagonal proves that the
    words of a row belong to their columns. A row that does not fit is not used.

    Raises:
        LogError: UNREADABLE; there is no table, or none of its rows fits its header.

    Source:
        Outputs of drivers 4xx to 59x; NVIDIA does not specify the format.
    """
    lines = _UNDERLINE.sub("", text).splitlines(keepends=True)
    head = next((at for at, line in enumerate(lines) if re.match(r"\s+GPU[0-9]+\b", line)), None)
    if head is None:
        raise _unreadable("no line has the titles GPU0, GPU1, ... of a table")
    titles = _TITLE.findall(lines[head])
    devices = [title for title in titles if " " not in title]
    columns = titles[len(devices) :]
    legend = {entry[1]: entry[2] for entry in map(_LEGEND.fullmatch, lines[head:]) if entry}
    gpus = tuple(device for device in devices if re.fullmatch("GPU[0-9]+", device))
    real = [legend.get(device, device) for device in devices[len(gpus) :]]
    hcas = tuple(name if real.count(name) == 1 else f"?{at}" for at, name in enumerate(real))
    names = (*gpus, *hcas)

    links: dict[str, dict[str, str]] = {}
    affinity: dict[str, tuple[str | None, str | None]] = dict.fromkeys(gpus, (None, None))
    problems = []
    # The driver cuts long names: mlx5_ib stands for mlx5_ib0. A NIC that is left has no legend.
    if cut := [name for name in hcas if not re.fullmatch(r"(?!NIC|mlx[0-9]+$)[^?].*[0-9]", name)]:
        problems.append(_problem(head, f"adapters without a whole name: {', '.join(cut)}"))
    rows = lines[head + 1 : head + 1 + len(devices)]
    for at, (device, line) in enumerate(zip_longest(devices, rows, fillvalue="")):
        first, *words = line.split() or [""]
        row, behind = dict(zip(names, words, strict=False)), words[len(names) :]
        is_whole = first == device and len(row) == len(devices) and line.endswith("\n")
        is_whole = is_whole and row.pop(names[at]) == "X" and not any(map(_LINK.match, behind))
        if not (is_whole and all(map(_LINK.fullmatch, row.values()))):
            needed = f"X for itself and a link for each of {len(devices)} devices"
            problems.append(_problem(head + 1 + at, f"{device} has not {needed}; not used"))
            continue
        links[names[at]] = row
        if device in affinity and columns:
            cells = line.split("\t")[1 + len(devices) :] if "\t" in line else behind
            found = _affinity(columns, cells, by_tabs="\t" in line)
            if found is None:
                seen = f"{device} has affinities {' '.join(behind)!r}"
                problems.append(_problem(head + 1 + at, seen))
            affinity[device] = found or (None, None)
    if not links:
        raise _unreadable(f"line {head + 1}: no row fits the {len(devices)} titles")
    wires = json.dumps({"gpus": gpus, "hcas": hcas, "links": links}, sort_keys=True)
    return Topology(
        links=links,
        digest=None if problems else hashlib.sha256(wires.encode()).hexdigest(),
        cpu_affinity={gpu: affinity[gpu][0] for gpu in gpus if "CPU Affinity" in columns},
        numa_affinity={gpu: affinity[gpu][1] for gpu in gpus if "NUMA Affinity" in columns},
        gpus=gpus,
        hcas=hcas,
        problems=tuple(problems),
    )


def _affinity(
    columns: list[str], cells: list[str], *, by_tabs: bool
) -> tuple[str | None, str | None] | None:
    """Return the CPUs and the NUMA node of a GPU; None where a cell cannot be told from another.

    Between the last two values drivers since 535 print a tab more than between their titles.
    """
    by_title = dict(zip(columns, (cell.strip() for cell in cells), strict=False))
    cpu, numa = by_title.get("CPU Affinity", ""), by_title.get("NUMA Affinity", "")
    # 0-31,64-95 and 0 with no tab between them are 0-31,64-950, which looks right.
    is_glued = "NUMA Affinity" in columns and cpu not in ("", "N/A") and not numa
    if is_glued or (not by_tabs and len(cells) != len(columns)):
        return None
    lists = [None if cell in ("", "N/A") else cell for cell in (cpu, numa)]
    if any(cell and not _NUMBERS.fullmatch(cell) for cell in lists):
        return None
    return lists[0], lists[1]


def _problem(at: int, seen: str) -> Problem:
    return Problem("UNREADABLE", f"nvidia-smi topo -m, line {at + 1}: {seen}")


def _unreadable(seen: str) -> errors.LogError:
    fix = "record it on the node itself with `nvidia-smi topo -m > FILE`"
    return errors.LogError(f"nvidia-smi topo -m: {seen}", code="UNREADABLE", fix=fix)


def nvlinks(text: str) -> Mapping[int, tuple[bool, ...]]:
    """Return by GPU which of its NVLinks are active, from `nvidia-smi nvlink --status`."""
    by_gpu: dict[int, tuple[bool, ...]] = {}
    for gpu, _, words in _links(text):
        by_gpu[gpu] = (*by_gpu.get(gpu, ()), "inactive" not in words.lower())
    return by_gpu


def nvlink_errors(text: str) -> Mapping[tuple[int, int], Mapping[str, int]]:
    """Return errors by GPU and link, counted above 0 by `nvidia-smi nvlink --errorcounters`.

    Source:
        Names up to Hopper as recorded in ``tests/samples/health``; those of Blackwell and their
        meaning as NVIDIA's DCGM lists them (``DCGM_FI_DEV_NVLINK_COUNT_*``).
    """
    counts: dict[tuple[int, int], dict[str, int]] = {}
    for gpu, link, words in _links(text):
        name, _, count = words.rpartition(": ")
        if name in _NVLINK_ERRORS and count.isdecimal() and int(count) > 0:
            counts.setdefault((gpu, link), {})[name] = int(count)
    return counts


def _links(text: str) -> Iterator[tuple[int, int, str]]:
    gpu = None
    for line in filter(None, map(_NVLINK.match, text.splitlines())):
        gpu = int(line["gpu"]) if line["gpu"] else gpu
        if gpu is not None and line["link"]:
            yield gpu, int(line["link"]), line["words"].strip()
