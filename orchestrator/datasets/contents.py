"""Probe what a node has of a data set, and judge whether that is complete."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator import errors
from orchestrator.datasets import Classes, Dataset, NamedFiles, Part, Shards
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
Lack = tuple[str, str]  # what was seen, what was needed


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


def judge(dataset: Dataset, node: str, path: str, contents: Contents) -> Iterator[Finding]:
    """Return findings about one node's data set.

    An incomplete set that programs can still read is a warning; one they cannot is an error.
    """
    for part, seen in zip(dataset.parts, contents, strict=True):
        folder = f"{path}/{part.folder}" if part.folder else path
        # What programs cannot do without, and what they can.
        broken: list[Lack]
        short: list[Lack]
        if isinstance(part, Classes) and isinstance(seen, ClassesSeen):
            broken, short = _classes(part, folder, seen)
        elif isinstance(part, Shards) and isinstance(seen, dict):
            broken, short = _shards(part, folder, seen)
        else:
            sizes = _matching(part, seen)
            names = part.names if isinstance(part, NamedFiles) else ()
            gone = [name for name in names if name not in sizes]
            broken = [(f"no {name} in {folder}", "every file of the set") for name in gone]
            broken, short = [*broken, *_empty(folder, sizes)], []
        for have, needed in broken:
            fix = f"prepare {dataset.name} again, at a path that is free"
            yield found("DATA-PARTS", node, have, needed, fix)
        for have, needed in short:
            fix = "mention it with the result; throughput hardly depends on it, accuracy does"
            yield found("DATA-INCOMPLETE", node, have, needed, fix)


def counted(dataset: Dataset, contents: Contents) -> str:
    """Describe the number of files in each part."""
    words = []
    for part, seen in zip(dataset.parts, contents, strict=True):
        where = part.folder or (part.stem.rstrip("-") if isinstance(part, Shards) else "files")
        if isinstance(seen, ClassesSeen):
            words.append(f"{where}: {seen.files} files of {seen.folders} classes")
        else:
            words.append(f"{where}: {len(_matching(part, seen))} files")
    return ", ".join(words)


def _classes(part: Classes, folder: str, seen: ClassesSeen) -> tuple[list[Lack], list[Lack]]:
    whole = f"{part.files} files in {part.folders} folders"
    have = f"{seen.files} files in {seen.folders} folders of {folder}"
    broken: list[Lack] = []
    if not seen.files and not part.optional:
        broken.append((have, whole))
    elif seen.empty_folders:
        broken.append((f"{seen.empty_folders} folders of {folder} are empty", "files in each"))
    if seen.empty_files:
        broken.append((f"{seen.empty_files} files of {folder} have no byte", "images"))
    short = [(have, whole)] if (seen.files, seen.folders) != (part.files, part.folders) else []
    if seen.odd:
        odd = f"{seen.odd} entries of {folder} are neither a class nor an image of one"
        short.append((odd, "a folder for each class, and files in it"))
    return broken, [] if broken and not seen.files else short


def _shards(part: Shards, folder: str, seen: FileSizes) -> tuple[list[Lack], list[Lack]]:
    sizes = _matching(part, seen)
    if not sizes:
        there = _abbreviate(sorted(seen)) if seen else "no file"
        lack = (f"{there} in {folder}", f"{part.name(0, part.count)} and so on")
        return ([], [lack]) if part.optional else ([lack], [])
    if part.with_total:
        totals = {int(name.rpartition("-")[2]) for name in sizes}
    else:
        totals = {max(int(name.removeprefix(part.stem)) for name in sizes) + 1}
    if len(totals) > 1:
        counts = ", ".join(str(total) for total in sorted(totals))
        return [(f"files of {folder} tell of {counts} files in all", "one number")], []
    (total,) = totals
    if total > part.count * 100:  # a name that was made up; nobody wants a list of what it lacks
        return [(f"{folder} tells of {total} files", f"about {part.count}")], []
    gone = [name for at in range(total) if (name := part.name(at, total)) not in sizes]
    broken = [(f"{folder} lacks {_abbreviate(gone)}", f"all of {total} files")] if gone else []
    short = []
    if total != part.count:
        short.append((f"{total} files {part.stem}* in {folder}", f"{part.count}"))
    return [*broken, *_empty(folder, sizes)], short


def _empty(folder: str, sizes: FileSizes) -> list[Lack]:
    empty = sorted(name for name, size in sizes.items() if not size)
    return [(f"{_abbreviate(empty)} in {folder} without a byte", "records in it")] if empty else []


def _matching(part: Part, seen: ClassesSeen | FileSizes) -> FileSizes:
    if isinstance(part, Classes) or isinstance(seen, ClassesSeen):
        return {}
    return {name: size for name, size in seen.items() if re.fullmatch(part.pattern, name)}


def _abbreviate(names: Sequence[str]) -> str:
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
