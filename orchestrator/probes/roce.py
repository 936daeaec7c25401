"""GIDs of RDMA adapters on Ethernet: their addresses, by place, as the kernel lists them."""

import re
from collections.abc import Iterable

from orchestrator.model.facts import Gid

# One line a GID: adapter, port, place, address, interface, type. Empty places are left out.
SCRIPT = r"""
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
ROOT = "/sys/class/infiniband"
_LINE = re.compile(r"(\S+) (\d+) (\d+) ([0-9a-f:]+) (\S+) (.+)")


def argv(hcas: Iterable[str], root: str = ROOT) -> tuple[str, ...]:
    """The command that lists the GIDs of adapters."""
    return ("sh", "-c", SCRIPT, "sh", root, *hcas)


def parse(text: str) -> tuple[Gid, ...]:
    """The GIDs, in the order printed.

    Source:
        Linux, Documentation/ABI/stable/sysfs-class-infiniband: gids, gid_attrs/types and ndevs.
    """
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return tuple(
        Gid(match[1], int(match[2]), int(match[3]), match[4], match[5], match[6])
        for match in found
        if match
    )
