"""Probe what a node has of a data set, and judge whether that is complete."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator import errors, words
from orchestrator.datasets import Classes, Dataset, NamedFiles, Shards
from orchestrator.model.findings import found
from orchestrator.model.site import Finding
from orchestrator.probes import Probe

MOST_NAMES = 20_000
MOST_SHOWN = 3
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


COUNTS = ("folders", "files", "empty_folders", "empty_files", "odd")
"""Counts of a folder of classes: ``odd`` is neither a class's folder nor a file in one."""
Contents = tuple[dict[str, int], ...]
"""In the order of a data set's parts: of classes the counts, else sizes in bytes by file name."""
Lack = tuple[str, str, str]  # code, what was seen, what was needed


def probe(dataset: Dataset, path: str) -> Probe[Contents]:
    """Return the probe that lists ``path`` on a node."""
    asked = [
        word
        for part in dataset.parts
        for word in ("classes" if isinstance(part, Classes) else "files", part.folder)
    ]
    argv = ("sh", "-c", SCRIPT, "sh", path, str(MOST_NAMES), *asked)
    return Probe("contents", argv, lambda text: parse(text, dataset, path))


def parse(text: str, dataset: Dataset, path: str) -> Contents:
    """Parse the contents from the script's output.

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
    contents = tuple(
        dict.fromkeys(COUNTS, 0) if isinstance(part, Classes) else {} for part in dataset.parts
    )
    for line in lines:
        if match := _CLASSES.fullmatch(line):
            at, *numbers = map(int, match.groups())
            contents[at].update(zip(COUNTS, numbers, strict=True))
        elif match := _FILE.fullmatch(line):
            contents[int(match[1])][match[3]] = int(match[2])
    return contents


def judge(dataset: Dataset, node: str, path: str, contents: Contents) -> Iterator[Finding]:
    """Yield findings about one node's data set.

    An incomplete set that programs can still read is a warning; one they cannot is an error.
    """
    for part, seen in zip(dataset.parts, contents, strict=True):
        folder = f"{path}/{part.folder}" if part.folder else path
        if isinstance(part, Classes):
            lacks = _judge_classes(part, folder, seen)
        else:
            lacks = _judge_files(part, folder, seen)
        for code, have, needed in lacks:
            yield found(code, node, have, needed)


def counted(dataset: Dataset, contents: Contents) -> str:
    """Describe the number of files in each part."""
    parts = []
    for part, seen in zip(dataset.parts, contents, strict=True):
        where = part.folder or (part.stem.rstrip("-") if isinstance(part, Shards) else "files")
        if isinstance(part, Classes):
            parts.append(f"{where}: {seen['files']} files of {seen['folders']} classes")
        else:
            parts.append(f"{where}: {words.count(len(_matching(part, seen)), 'file')}")
    return ", ".join(parts)


def _judge_classes(part: Classes, folder: str, seen: Mapping[str, int]) -> Iterator[Lack]:
    whole = f"{part.files} files in {part.folders} folders"
    have = f"{seen['files']} files in {seen['folders']} folders of {folder}"
    if not seen["files"] and not part.optional:
        yield "DATA-PARTS", have, whole
        return
    if seen["empty_folders"]:
        empty = f"{seen['empty_folders']} folders of {folder} are empty"
        yield "DATA-PARTS", empty, "files in each"
    if seen["empty_files"]:
        yield "DATA-PARTS", f"{seen['empty_files']} files of {folder} have no byte", "images"
    if (seen["files"], seen["folders"]) != (part.files, part.folders):
        yield "DATA-INCOMPLETE", have, whole
    if seen["odd"]:
        odd = f"{seen['odd']} entries of {folder} are neither a class nor an image of one"
        yield "DATA-INCOMPLETE", odd, "a folder for each class, and files in it"


def _judge_files(part: Shards | NamedFiles, folder: str, seen: Mapping[str, int]) -> Iterator[Lack]:
    sizes = _matching(part, seen)
    if isinstance(part, NamedFiles):
        names = part.names
    elif sizes:
        total = max(int(name.rpartition("-")[2]) for name in sizes) + (not part.with_total)
        names = tuple(part.name(at, total) for at in range(min(total, MOST_NAMES)))
    else:
        there = _abbreviate(sorted(seen)) if seen else "no file"
        code = "DATA-INCOMPLETE" if part.optional else "DATA-PARTS"
        yield code, f"{there} in {folder}", f"{part.name(0, part.count)} and so on"
        return
    if empty := sorted(name for name, size in sizes.items() if not size):
        yield "DATA-PARTS", f"{_abbreviate(empty)} in {folder} without a byte", "records in it"
    if gone := [name for name in names if name not in sizes]:
        yield "DATA-PARTS", f"{folder} lacks {_abbreviate(gone)}", f"all of {len(names)} files"
    elif isinstance(part, Shards) and len(sizes) != part.count:
        seen_files = f"{words.count(len(sizes), 'file')} {part.stem}* in {folder}"
        yield "DATA-INCOMPLETE", seen_files, f"{part.count}"


def _matching(part: Shards | NamedFiles, seen: Mapping[str, int]) -> dict[str, int]:
    return {name: size for name, size in seen.items() if re.fullmatch(part.pattern, name)}


def _abbreviate(names: Sequence[str]) -> str:
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
