"""Probe what a data set can be prepared from, choose the way that fits, and read labels."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator import errors, words
from orchestrator.datasets import Dataset, Way
from orchestrator.model.findings import found
from orchestrator.model.site import Finding
from orchestrator.probes import Probe, number, read_values

LABEL_FILES = ("valprep.sh", "imagenet_2012_validation_synset_labels.txt")
LEAST_BYTES = 64 << 20  # for folders, notes and what a file system keeps for itself
_MOVE = re.compile(r"mv (ILSVRC2012_val_[0-9]{8}\.JPEG) (n[0-9]{8})/?")
_SYNSET = re.compile(r"n[0-9]{8}")
SCRIPT = r"""
target=$1 from=$2 home=$3 labels=$4; shift 4
export LC_ALL=C
real=$(readlink -m -- "$target") && echo "real $real"
partial=$real.partial
above=$(dirname "$real")
while [ ! -d "$above" ] && [ "$above" != / ]; do above=$(dirname "$above"); done
if [ ! -e "$real" ]; then echo 'target missing'
elif [ ! -d "$real" ]; then echo 'target file'
elif [ -n "$(ls -AU "$real" 2>/dev/null | head -n 1)" ]; then echo 'target there'
elif [ "$(stat -c %d "$real")" = "$(stat -c %d "$above")" ]; then echo 'target empty'
else echo 'target mount'
fi
if [ ! -e "$partial" ]; then echo 'partial none'
elif [ -f "$partial/notes/dataset" ]; then echo "partial $(cat "$partial/notes/dataset")"
else echo 'partial -'
fi
[ ! -d "$partial/set" ] || echo "have_kib $(du -sk "$partial/set" | cut -f 1)"
echo "free_kib $(df -Pk "$above" | awk 'NR == 2 {print $4}')"
last=$(ls "$home" 2>/dev/null | sed -n 's/^a\([0-9][0-9]*\)$/\1/p' | sort -n | tail -n 1)
echo "attempt ${last:-0}"
if [ -n "$from" ]; then
    [ "$(stat -L -c %d "$from" 2>/dev/null)" != "$(stat -c %d "$above")" ] || echo 'linkable yes'
    for name in $labels; do
        [ ! -f "$from/$name" ] || { echo "labels $name"; break; }
    done
    at=0
    while [ $# -ge 2 ]; do
        find -L "$from" -mindepth 1 -maxdepth "$2" -regextype posix-extended \
            -regex ".*/($1)" \( -type f -o -type d \) -printf '%s\n' 2>/dev/null |
            awk -v at="$at" '{ n += $1 } END { printf "need %d %d %.0f\n", at, NR, n }'
        at=$((at + 1))
        shift 2
    done
fi
echo end
"""


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of a node's target path and of the sources of a data set.

    Args:
        real: the path with all links followed.
        target: missing, empty, there, file, or mount: a finished set comes to its place by one
            rename, which no mount point allows.
        partial: name of the data set that was begun there; ``-`` for a folder of other origin.
        have_bytes: of what was begun.
        attempt: number of the last one that left a folder on the node.
        needs: count and bytes, in the order of all needs of all ways.
        labels: name of the file among the sources that tells classes.
    """

    real: str
    target: str
    partial: str | None
    have_bytes: int
    free_bytes: int
    attempt: int
    linkable: bool
    labels: str
    needs: tuple[tuple[int, int], ...]


def probe(dataset: Dataset, target: str, source: str | None, home: str) -> Probe[Observed]:
    """Return the probe of target, sources and disk, in one round trip.

    Args:
        target: the path where the data set is to be.
        source: the folder that the user named; None without one.
        home: the node's folder for attempts at this data set.
    """
    needs = (need for way in dataset.ways for need in way.needs)
    words = [word for need in needs for word in (need.pattern, "2" if need.many else "1")]
    arguments = (target, source or "", home, " ".join(LABEL_FILES))
    return Probe("look", ("sh", "-c", SCRIPT, "sh", *arguments, *words), parse)


def parse(text: str) -> Observed:
    """Parse the output of the script."""
    values = read_values(text)
    free_kib, attempt = number(values, "free_kib"), number(values, "attempt")
    needs = [re.fullmatch("[0-9]+ ([0-9]+) ([0-9]+)", said) for said in values.get("need", ())]
    if "end" not in values or free_kib is None or attempt is None or None in needs:
        raise errors.LogError(
            "the node did not say what lies there",
            code="DATA-LOOK",
            fix="look for `find`, `df` and `awk` on the node, and for a mount that does not answer",
        )
    last = {key: said[-1] for key, said in values.items()}
    partial = last.get("partial", "none")
    return Observed(
        real=last.get("real", ""),
        target=last.get("target", ""),
        partial=None if partial == "none" else partial,
        have_bytes=(number(values, "have_kib") or 0) * 1024,
        free_bytes=free_kib * 1024,
        attempt=attempt,
        linkable="linkable" in last,
        labels=last.get("labels", ""),
        needs=tuple((int(need[1]), int(need[2])) for need in needs if need),
    )


def choose_way(dataset: Dataset, observed: Observed) -> tuple[Way, int] | None:
    """Return the first way whose needs are met, and the bytes that it will still write."""
    at = 0
    for way in dataset.ways:
        needs = observed.needs[at : at + len(way.needs)]
        at += len(way.needs)
        if len(needs) == len(way.needs) and all(
            count >= need.least for need, (count, _) in zip(way.needs, needs, strict=True)
        ):
            source = sum(size for _, size in needs)
            whole = 0 if way.links and observed.linkable else round(source * way.share)
            return way, max(whole - observed.have_bytes, 0) + LEAST_BYTES
    return None


def findings(
    dataset: Dataset, node: str, path: str, observed: Observed, needed_bytes: int
) -> Iterator[Finding]:
    """Yield findings that prevent writing at the target path."""
    free_path = "a path that is free"
    if observed.target in ("file", "mount"):
        kind = "a file" if observed.target == "file" else "a mount point; a folder below it will do"
        yield found("DATA-TARGET", node, f"{path} is {kind}", free_path)
    if observed.partial not in (None, dataset.name):
        seen = f"{observed.real}.partial is there and no beginning of {dataset.name}"
        yield found("DATA-TARGET", node, seen, free_path)
    if needed_bytes > observed.free_bytes:
        free, needed = words.sizes(observed.free_bytes, needed_bytes)
        seen = f"{free} free for {observed.real}.partial"
        yield found("DISK-FULL", node, seen, f"at least {needed}")


def unmet(dataset: Dataset, node: str, source: str | None) -> Finding:
    """Return the finding that every way lacks sources."""
    names = (
        [need.pattern.replace("[.]", ".").replace("[0-9]", "N") for need in way.needs]
        for way in dataset.ways
    )
    needed = " or ".join(map(" and ".join, names))
    seen = f"{source} on the node has not all of it" if source else "no --from DIR"
    return found("DATA-SOURCE", node, seen, needed)


def parse_labels(text: str, name: str) -> bytes:
    """Return the class of each validation image for a script: lines ``FILE CLASS``, by file.

    Args:
        text: of valprep.sh, or a list of classes in the order of the images' numbers.
        name: of the file, for messages.

    Raises:
        LogError: LABELS; a line in neither form, or no line.
    """
    lines = [(at, line.strip()) for at, line in enumerate(text.splitlines(), 1)]
    lines = [(at, line) for at, line in lines if line and not line.startswith(("#", "mkdir "))]
    form = _MOVE if any(line.startswith("mv ") for _, line in lines) else _SYNSET
    classes: dict[str, str] = {}
    for image, (at, line) in enumerate(lines or [(1, "")], 1):
        match = form.fullmatch(line)
        if match is None:
            raise errors.LogError(
                f"{name}:{at}: {line[:60]!r}; needed lines"
                " `mv ILSVRC2012_val_00000293.JPEG n01440764/`,"
                " or one class such as n01440764 for each image in order",
                code="LABELS",
                fix="put another file there",
            )
        file, synset = match.groups() or (f"ILSVRC2012_val_{image:08}.JPEG", line)
        classes[file] = synset
    return "".join(f"{file} {classes[file]}\n" for file in sorted(classes)).encode()
