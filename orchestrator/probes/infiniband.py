"""RDMA: ports in `ibstat`, what programs can open, GIDs on Ethernet, OFED's version."""

import re
from collections.abc import Mapping
from typing import Any

from orchestrator import errors
from orchestrator.model.facts import Gid, InfinibandFacts, VerbsFacts
from orchestrator.model.problem import Problem
from orchestrator.model.site import HcaPort

_CA = re.compile(r"CA '([^']+)'")
_PORT = re.compile(r"Port ([0-9]{1,4}):")
_KEYS: Mapping[str, tuple[str, str]] = {
    # Blank for software adapters (rxe, siw): the kernel has no such files for them.
    "CA type": ("type", r".*"),
    "Firmware version": ("firmware", r".*"),
    "Node GUID": ("node_guid", r"0x[0-9a-fA-F]{16}"),
    "State": ("state", r".+"),
    "Physical state": ("physical_state", r".+"),
    # "100"; "2.5", one lane of SDR; "40 (FDR10)", whose signalling differs.
    "Rate": ("rate_gbps", r"[0-9]{1,9}(\.[0-9])?( \(FDR10\))?"),
    "Base lid": ("base_lid", r"[0-9]{1,9}"),
    "SM lid": ("sm_lid", r"[0-9]{1,9}"),
    # "IB" is libibumad's word where the kernel has no link_layer file.
    "Link layer": ("link_layer", r"InfiniBand|Ethernet|IB|Unknown|Unspecified"),
}
"""By ibstat's name of a value: ours, and the pattern of a whole value."""
_NUMBERS = ("rate_gbps", "base_lid", "sm_lid")

_OFED = re.compile(r"(?:MLNX_OFED_LINUX|OFED-internal|DOCA-OFED)-([0-9][0-9.-]*[0-9]):?")
_HCA = re.compile(r"hca_id:\s*([A-Za-z0-9_.-]+)")
_NONE = re.compile(r"No IB devices found|0 HCAs? found:?")
_COMPLAINT = re.compile(r"libibverbs: Warning: .+|Failed to .+|Unable to .+")
# One line a GID: adapter, port, place, address, interface, type. Empty places are left out.
_GID = re.compile(r"^(\S+) (\d+) (\d+) ([0-9a-f:]+) (\S+) (.+)$", re.MULTILINE)
GIDS_SCRIPT = r"""
for file in "$1"/*/ports/*/gids/*; do
    gid=$(cat "$file" 2>/dev/null) || continue
    case $gid in *[1-9a-f]*) ;; *) continue ;; esac
    place=${file##*/}; port=${file%/gids/*}; hca=${port%/ports/*}
    kind=$(cat "$port/gid_attrs/types/$place" 2>/dev/null)
    printf '%s %s %s %s %s %s\n' "${hca##*/}" "${port##*/}" "$place" "$gid" \
        "$(cat "$port/gid_attrs/ndevs/$place" 2>/dev/null || echo -)" "${kind:--}"
done
exit 0
"""


def parse(text: str) -> InfinibandFacts:
    """Return the ports of a node, with a problem per line that cannot be read safely.

    Raises:
        LogError: UNREADABLE; no port is described.

    Source:
        infiniband-diags, ``ibstat.c``: a block for each CA, and in it one for each port.
    """
    problems = []
    adapter: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    block = adapter
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        words = line.strip()
        key, _, value = (part.strip() for part in words.partition(":"))
        if title := _CA.fullmatch(words):
            adapter = block = {"name": title[1]}
        elif adapter and (title := _PORT.fullmatch(words)):
            block = {**adapter, "port": int(title[1])}
            found.append(block)
        elif adapter and key in _KEYS:
            # Where the text ends, a rate of 10 may be one of 100.
            is_whole = line.endswith("\n") or key == "Link layer"
            name, pattern = _KEYS[key]
            block[name] = None
            if is_whole and re.fullmatch(pattern, value):
                digits = value.partition(" ")[0]
                kind = float if "." in digits else int
                block[name] = kind(digits) if name in _NUMBERS else value or None
            else:
                problems.append(_problem(f"line {number}: cannot read {words[:60]!r}"))
        elif key == "ibpanic":
            problems.append(_problem(f"line {number}: {words}"))
    if not found:
        said = (text.strip().splitlines() or ["nothing"])[-1].strip()[:160]
        raise errors.LogError(
            f"ibstat: no line like CA 'mlx5_0' begins an adapter; the text says {said!r}",
            code="UNREADABLE",
            fix="install the InfiniBand user space (rdma-core or OFED), then `ibstat > FILE`",
        )
    for block in found:
        if lacking := [key for key, (name, _) in _KEYS.items() if name not in block]:
            where = f"{block['name']} port {block['port']}"
            problems.append(_problem(f"{where}: no {', '.join(lacking)}"))
    absent = dict.fromkeys(name for name, _ in _KEYS.values())
    ports = (HcaPort(**{**absent, **block}) for block in found)
    return InfinibandFacts(tuple(ports), tuple(problems))


def _problem(seen: str) -> Problem:
    return Problem("UNREADABLE", f"ibstat, {seen}")


def parse_verbs(text: str) -> VerbsFacts:
    """Return the adapters that `ibv_devinfo` opens, in the order printed, and each warning once.

    NCCL cannot use an active adapter whose user-space driver is missing; `ibstat` shows it.

    Raises:
        LogError: UNREADABLE; the text neither lists adapters nor says that there are none.

    Source:
        rdma-core, ``libibverbs/examples/devinfo.c``: a line ``hca_id:`` for each adapter opened.
    """
    lines = [line.strip() for line in text.splitlines()]
    hcas = tuple(match[1] for match in map(_HCA.fullmatch, lines) if match)
    warnings = tuple(dict.fromkeys(line for line in lines if _COMPLAINT.fullmatch(line)))
    if not hcas and not warnings and not any(map(_NONE.fullmatch, lines)):
        raise errors.LogError(
            "ibv_devinfo: no line like hca_id: mlx5_0, and none that says there are no adapters",
            code="UNREADABLE",
            fix="record it with `ibv_devinfo > FILE 2>&1`",
        )
    return VerbsFacts(hcas, warnings)


def ofed_version(text: str) -> str | None:
    """Return the version that ``ofed_info -s`` prints, such as ``4.9-0.1.7.0``."""
    versions = [match[1] for match in map(_OFED.fullmatch, text.split()) if match]
    return versions[0] if len(versions) == 1 else None


def gids_argv(root: str = "/sys/class/infiniband") -> tuple[str, ...]:
    return ("sh", "-c", GIDS_SCRIPT, "sh", root)


def parse_gids(text: str) -> tuple[Gid, ...]:
    """Return the GIDs, in the order printed.

    Source:
        Linux, Documentation/ABI/stable/sysfs-class-infiniband: gids, gid_attrs/types and ndevs.
    """
    return tuple(
        Gid(hca, int(port), int(index), address, interface, kind)
        for hca, port, index, address, interface, kind in _GID.findall(text)
    )
