"""Probe for the parts of a data set that a node has: the script and its parser."""

import re
from dataclasses import dataclass

from orchestrator import errors
from orchestrator.datasets import Classes, Dataset
from orchestrator.probes import Probe

MOST_NAMES = 20_000
SCRIPT = r"""
path=$1 most=$2; shift 2
export LC_ALL=C
[ -e "$path" ] || { echo 'problem missing'; exit 0; }
[ -d "$path" ] || { echo 'problem no folder'; exit 0; }
at=0
while [ $# -ge 2 ]; do
    folder=$path${2:+/$2}
    if [ ! -d "$folder" ]; then
        [ "$1" = files ] || echo "classes $at 0 0 0 0 0"
    elif [ "$1" = files ]; then
        find -L "$folder" -mindepth 1 -maxdepth 1 -printf "file $at %y %s %f\n" |
            awk -v most="$most" '
                NR <= most { print }
                END { if (NR > most) print "problem " NR " names in one folder" }'
    else
        { find -L "$folder" -mindepth 1 -maxdepth 2 -printf '%d %y %s %h\n' ||
            echo unreadable; } 2>/dev/null | awk -v at="$at" '
            $0 == "unreadable" { print "problem unreadable" }
            $1 == 1 && $2 == "d" { folders++; next }
            $1 == 2 && $2 == "f" {
                files++
                if ($3 == 0) empty++
                sub(/^[^ ]* [^ ]* [^ ]* /, "")
                if (!($0 in seen)) { seen[$0] = 1; filled++ }
                next
            }
            { odd++ }
            END {
                print "classes " at, folders + 0, files + 0, folders - filled, empty + 0, odd + 0
            }'
    fi
    at=$((at + 1))
    shift 2
done
echo end
"""
_CLASSES = re.compile(r"classes ([0-9]+) ([0-9]+) ([0-9]+) (-?[0-9]+) ([0-9]+) ([0-9]+)")
_FILE = re.compile(r"file ([0-9]+) f ([0-9]+) (.*)")


@dataclass(frozen=True, slots=True)
class ClassesSeen:
    """A folder of classes, counted.

    Args:
        empty_folders: without a file.
        empty_files: of no byte.
        odd: what is neither a class's folder nor a file in one.
    """

    folders: int = 0
    files: int = 0
    empty_folders: int = 0
    empty_files: int = 0
    odd: int = 0


FileSizes = dict[str, int]
"""Sizes in bytes of the files right in a folder, by name."""
Contents = tuple[ClassesSeen | FileSizes, ...]


def probe(dataset: Dataset, path: str) -> Probe[Contents]:
    """Return the probe that lists ``path`` on a node, in the order of the data set's parts."""
    words = [
        word
        for part in dataset.parts
        for word in ("classes" if isinstance(part, Classes) else "files", part.folder)
    ]
    argv = ("sh", "-c", SCRIPT, "sh", path, str(MOST_NAMES), *words)
    return Probe("contents", argv, lambda text: parse(text, dataset, path))


def parse(text: str, dataset: Dataset, path: str) -> Contents:
    """Parse the contents from the script's output, in the order of the data set's parts.

    Raises:
        LogError: DATA-MISSING, the node has not or cannot read all of it; DATA-DIFF, the output is
            not whole.
    """
    lines = text.splitlines()
    problem = next((line.partition(" ")[2] for line in lines if line.startswith("problem ")), "")
    if problem:
        raise errors.LogError(
            f"{path}: {problem}; needed {dataset.title}",
            code="DATA-MISSING",
            fix="put the data set there (`dlperf-orch data prepare`), or correct the inventory",
        )
    if not lines or lines[-1] != "end":
        raise errors.LogError(
            f"{path}: the node's answer is not whole",
            code="DATA-DIFF",
            fix="look for `find` and `awk` there",
        )
    counts = [ClassesSeen() for _ in dataset.parts]
    sizes: list[FileSizes] = [{} for _ in dataset.parts]
    for line in lines:
        if match := _CLASSES.fullmatch(line):
            at, *numbers = map(int, match.groups())
            counts[at] = ClassesSeen(*numbers)
        elif match := _FILE.fullmatch(line):
            sizes[int(match[1])][match[3]] = int(match[2])
    return tuple(
        counts[at] if isinstance(part, Classes) else sizes[at]
        for at, part in enumerate(dataset.parts)
    )
