"""What programs see of RDMA: adapters that they can open, GIDs on Ethernet, OFED's version.

`ibstat` reads the kernel's files only. NCCL cannot use an active adapter whose user-space driver
is missing; `ibv_devinfo` does not list such an adapter.
"""

import re
from collections.abc import Iterable

from orchestrator import errors
from orchestrator.model.facts import Gid, VerbsFacts

_OFED = re.compile(r"(?:MLNX_OFED_LINUX|OFED-internal|DOCA-OFED)-([0-9][0-9.-]*[0-9]):?")
_HCA = re.compile(r"hca_id:\s*([A-Za-z0-9_.-]+)")
_NONE = re.compile(r"No IB devices found|0 HCAs? found:?")
_COMPLAINT = re.compile(r"libibverbs: Warning: .+|Failed to .+|Unable to .+")
_GID = re.compile(r"(\S+) (\d+) (\d+) ([0-9a-f:]+) (\S+) (.+)")
# One line a GID: adapter, port, place, address, interface, type. Empty places are left out.
GIDS_SCRIPT = r"""
root=$1; shift
for hca in "$@"; do
    for file in "$root/$hca"/ports/*/gids/*; do
        gid=$(cat "$file" 2>/dev/null) || continue
        case $gid in *[1-9a-f]*) ;; *) continue ;; esac
        place=${file##*/}; port=${file%/gids/*}
        kind=$(cat "$port/gid_attrs/types/$place" 2>/dev/null)
        printf '%s %s %s %s %s %s\n' "$hca" "${port##*/}" "$place" "$gid" \
            "$(cat "$port/gid_attrs/ndevs/$place" 2>/dev/null || echo -)" "${kind:--}"
    done
done
exit 0
"""
GIDS_ROOT = "/sys/class/infiniband"


def parse(text: str) -> VerbsFacts:
    """The adapters by name, in the order printed, and every mistake once.

    Raises:
        LogError: the text is neither a list of adapters nor says that there are none.

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


def gids_argv(hcas: Iterable[str], root: str = GIDS_ROOT) -> tuple[str, ...]:
    """The command that lists the GIDs of adapters."""
    return ("sh", "-c", GIDS_SCRIPT, "sh", root, *hcas)


def parse_gids(text: str) -> tuple[Gid, ...]:
    """The GIDs, in the order printed.

    Source:
        Linux, Documentation/ABI/stable/sysfs-class-infiniband: gids, gid_attrs/types and ndevs.
    """
    found = (_GID.fullmatch(line.strip()) for line in text.splitlines())
    return tuple(
        Gid(match[1], int(match[2]), int(match[3]), match[4], match[5], match[6])
        for match in found
        if match
    )
