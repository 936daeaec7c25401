"""Probe for a data set: number of files, bytes, and a digest that nodes can compare.

Reading 1.28 million names takes minutes, so the answer is kept on the node. It holds until a folder
of the two uppermost levels or a file of the uppermost changes its time or size.
"""

import hashlib
import re

from orchestrator import errors
from orchestrator.model.site import DataDigest
from orchestrator.probes import Probe, number, read_values

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


def probe(path: str, folder: str, *, fresh: bool) -> Probe[DataDigest]:
    """Count and hash one data set: minutes for ImageNet, then kept on the node.

    Args:
        path: the data set on the node.
        folder: the node's folder, where answers are kept.
        fresh: count again, even if an answer is kept.
    """
    name = hashlib.sha256(path.encode()).hexdigest()[:16]
    arguments = (path, f"{folder}/data/{name}.txt", "yes" if fresh else "no")

    def parse_answer(text: str) -> DataDigest:
        return parse(text, path)

    return Probe("data", ("sh", "-c", SCRIPT, "sh", *arguments), parse_answer)


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
