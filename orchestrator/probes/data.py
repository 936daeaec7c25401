"""Probes for data sets: a short look at one, and a count with a digest that nodes can compare.

The look comes first and reads as programs do: names, then first bytes. It finds mounts that hang,
and files that a node's root may read but a container's root, who has fewer rights, may not.

Reading 1.28 million names takes minutes, so the node keeps the count. The count is valid until a
folder of the two uppermost levels, or a file of the uppermost, changes its time or size.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import partial

from orchestrator import errors
from orchestrator.model.site import DataDigest, DataState
from orchestrator.probes import Probe, number, read_values
from orchestrator.probes.sections import Output, Section

PREFIX = "data."  # before the names of sections that look at data sets
LIMIT_S = 10
# $1: a folder or a file. Prints its state, and the first path below it that cannot be opened, among
# at most 100 names, 20 below each of these, and one more level. In older shells `[ -r ]` is true
# for any root, so files and folders are opened.
LOOK = r"""
look() {
    if [ -f "$1" ] || [ -d "$1" ]; then { true <"$1"; } 2>/dev/null && return; fi
    printf 'unreadable\n%s\n' "$1"
    exit 0
}
[ "$1" = . ] || [ -e "$1" ] || { echo missing; exit 0; }
look "$1"
[ -d "$1" ] || { echo present; exit 0; }
[ -n "$(ls -AU -- "$1" 2>/dev/null)" ] || { echo empty; exit 0; }
tops=0
for top in "$1"/*; do
    [ "$top" != "$1/*" ] && [ $((tops += 1)) -le 100 ] || break
    look "$top"
    middles=0
    for middle in "$top"/*; do
        [ "$middle" != "$top/*" ] && [ $((middles += 1)) -le 20 ] || break
        look "$middle"
        for bottom in "$middle"/*; do
            [ "$bottom" = "$middle/*" ] || look "$bottom"
            break
        done
    done
done
echo present
"""
# $1: the script above; $2: a path. A container's root may read what owner and group of a file may.
# Folders above the path do not matter, since the path is mounted by itself.
CONTAINED = r"""
drop='setpriv --clear-groups --bounding-set=-all --inh-caps=-all'
if [ "$(id -u)" = 0 ] && [ -d "$2" ] && cd -- "$2" && $drop true 2>/dev/null; then
    exec $drop sh -c "$1" sh .
fi
exec sh -c "$1" sh "$2"
"""
SCRIPT = r"""
folder=$1 kept=$2 fresh=$3
[ -e "$folder" ] || { echo 'problem missing'; exit 0; }
umask 077
[ -d "${kept%/*}" ] || mkdir -p "${kept%/*}" || exit 1
export LC_ALL=C
stamp=$({
    find -L "$folder" -maxdepth 2 -type d -printf '%P\t%T@\n' &&
        find -L "$folder" -maxdepth 1 -type f -printf '%P\t%s\t%T@\n' || echo unreadable
} | sort | sha256sum)
stamp=${stamp%% *} before=
[ ! -f "$kept" ] || read -r before <"$kept"
if [ "$fresh" = no ] && [ "$before" = "stamp $stamp" ]; then
    cat "$kept"
    echo 'cached yes'
    exit 0
fi
work=$(mktemp -d "$kept.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
find -L "$folder" -type f -printf '%s\t%P\n' >"$work/files" || {
    echo 'problem unreadable'
    exit 0
}
{
    echo "stamp $stamp"
    echo "digest $(sort "$work/files" | sha256sum | cut -d ' ' -f 1)"
    awk -F '\t' '{n += $1} END {printf "files %.0f\nsize_bytes %.0f\n", NR, n}' "$work/files"
    if [ -d "$folder/train" ]; then
        echo "train_files $(cut -f 2- "$work/files" | grep -c '^train/')"
        echo "train_folders $(find -L "$folder/train" -mindepth 1 -maxdepth 1 -type d | wc -l)"
    fi
    echo 'end'
} >"$work/kept"
mv "$work/kept" "$kept"
cat "$kept"
"""


def section(name: str, path: str, *, contained: bool = False) -> Section:
    """Return the look at a path; ``contained``: with the rights of an unprivileged container."""
    argv = ("sh", "-c", CONTAINED, "sh", LOOK) if contained else ("sh", "-c", LOOK, "sh")
    return Section(name, (*argv, path), LIMIT_S)


def state(output: Output) -> DataState:
    """Return the state of a data set, ``hung`` if the check did not end in time."""
    if output.exit_code is None:
        return "hung"
    states: tuple[DataState, ...] = ("present", "empty", "missing")
    return next((state for state in states if output.out.strip() == state), "unreadable")


def states(outputs: Mapping[str, Output]) -> dict[str, DataState]:
    """Return the states of data sets by name."""
    return {
        name.removeprefix(PREFIX): state(output)
        for name, output in outputs.items()
        if name.startswith(PREFIX)
    }


def probe(path: str, folder: str, *, fresh: bool) -> Probe[DataDigest]:
    """Count and hash one data set: minutes for ImageNet, then kept in the node's folder.

    Args:
        fresh: count again, even if an answer is kept.
    """
    name = hashlib.sha256(path.encode()).hexdigest()[:16]
    arguments = (path, f"{folder}/data/{name}.txt", "yes" if fresh else "no")
    return Probe("data", ("sh", "-c", SCRIPT, "sh", *arguments), partial(parse, path=path))


def parse(text: str, path: str) -> DataDigest:
    """Return count, size and digest in the script's output.

    Raises:
        LogError: DATA-MISSING, the node has not or cannot read all of it; DATA-DIFF, the output is
            not whole.
    """
    values = read_values(text)
    if "problem" in values:
        raise errors.LogError(
            f"{path}: {values['problem'][0]}, in part or as a whole",
            code="DATA-MISSING",
            fix="make the data set readable for the user that logs in",
        )
    digest, files = values.get("digest", [""])[0], number(values, "files")
    size_bytes = number(values, "size_bytes")
    is_whole = "end" in values and re.fullmatch("[0-9a-f]{64}", digest)
    if not is_whole or files is None or size_bytes is None:
        raise errors.LogError(
            f"{path}: the node's answer is not whole",
            code="DATA-DIFF",
            fix="look for a full disk or a missing `find` there",
        )
    return DataDigest(
        path=path,
        digest=digest,
        files=files,
        size_bytes=size_bytes,
        train_files=number(values, "train_files"),
        train_folders=number(values, "train_folders"),
        cached="cached" in values,
    )
