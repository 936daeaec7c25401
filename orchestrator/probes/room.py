"""Room for a task's files: asked by writing, since ``df`` shows neither quotas nor all faults."""

import re
from collections.abc import Iterator

from orchestrator import errors, words

# `tmpfs 1048576 1048576 0 100% /var/tmp`; where inodes are made as needed `- 0 0 0 - /data`.
_DF = re.compile(r" (\d+) +\d+% +(/.*)$")
FULL = ("No space left on device", "Disk quota exceeded")
# Prints four lines for every folder that cannot take 4 MiB in 16 files: the folder, its bytes and
# its inodes as `df` has them, and what `mktemp`, `touch` or `dd` printed first.
SCRIPT = r"""
export LC_ALL=C
[ "$1" = container ] || set -- "$@" /dev/shm "${TMPDIR:-/tmp}"
shift
for folder in "$@"; do
    while [ ! -d "$folder" ] && [ "$folder" != / ]; do folder=$(dirname "$folder"); done
    why=$(
        exec 2>&1
        work=$(mktemp -d "$folder/.dlperf-room.XXXXXX") || { echo "$work"; exit 1; }
        trap 'rm -rf "$work"' EXIT
        cd "$work" && touch 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 &&
            dd if=/dev/zero of=1 bs=65536 count=64 conv=fsync
    ) || for line in "$folder" "$(df -Pk "$folder")" "$(df -Pi "$folder")" "${why%%
*}"; do
        echo "${line##*
}"
    done
done
"""


def argv(folder: str, *, in_container: bool) -> tuple[str, ...]:
    """Return the command that writes into the folder and, for plain processes, where they write."""
    return "sh", "-c", SCRIPT, "sh", "container" if in_container else "plain", folder


def parse(text: str, **where: str) -> Iterator[errors.UnfitError]:
    """Yield DISK-FULL, or WRITE for another cause, for each folder in the command's output."""
    lines = iter(text.splitlines())
    for folder, disk, names, said in zip(lines, lines, lines, lines, strict=False):
        kib, inodes, why = _DF.search(disk), _DF.search(names), said.rpartition(": ")[2]
        free = words.size(int(kib[1]) << 10) if kib else "unknown space"
        free += f" and {inodes[1]} inodes are free" if inodes else " is free"
        cause = f"{folder} cannot take 4 MiB in 16 files: {why}; {free}"
        mount = kib[2] if kib else folder
        if why in FULL:
            more = " (or raise the quota of its user)" if why == FULL[1] else ""
            fix = (
                f"remove files{more}: `du -xah {mount} | sort -h | tail` shows the largest,"
                " `dlperf-orch clean` removes those of finished sweeps; then run the same command"
            )
            yield errors.UnfitError(cause, code="DISK-FULL", fix=fix, **where)
        else:
            fix = f"mend the file system at {mount} (see `dmesg`), then run the same command"
            yield errors.UnfitError(cause, code="WRITE", fix=fix, **where)
