"""What a data set holds: how many files, how much, and a digest that nodes can compare.

Reading 1.28 million names takes minutes, so the answer is kept on the node. It holds until a folder
of the two uppermost levels or a file of the uppermost changes its time or size.
"""

import hashlib
import re

from orchestrator import errors
from orchestrator.model.site import DataDigest
from orchestrator.probes import Probe

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
    """Counts and hashes one data set: minutes for ImageNet, then kept on the node.

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
    """Count, size and digest in the script's output.

    Raises:
        LogError: DATA-MISSING, the node has not or cannot read all of it; DATA-DIFF, the output is
            not whole.
    """
    lines = text.splitlines()
    fields = dict(line.partition(" ")[::2] for line in lines)
    if "problem" in fields:
        raise errors.LogError(
            f"{path}: {fields['problem']}, in part or as a whole",
            code="DATA-MISSING",
            fix="make the data set readable for the user that logs in",
        )
    digest = fields.get("digest", "")
    if "end" not in fields or not re.fullmatch("[0-9a-f]{64}", digest):
        raise errors.LogError(
            f"{path}: the node's answer is not whole",
            code="DATA-DIFF",
            fix="look for a full disk or a missing `find` there",
        )
    files, size_bytes = _number(fields, "files"), _number(fields, "size_bytes")
    if files is None or size_bytes is None:
        raise errors.LogError(f"{path}: the files were not counted", code="DATA-DIFF")
    return DataDigest(
        path=path,
        digest=digest,
        files=files,
        size_bytes=size_bytes,
        train_files=_number(fields, "train_files"),
        train_folders=_number(fields, "train_folders"),
        cached=fields.get("cached") == "yes",
    )


def _number(fields: dict[str, str], key: str) -> int | None:
    word = fields.get(key, "").strip()
    return int(word) if re.fullmatch("[0-9]+", word) else None
