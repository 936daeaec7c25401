"""The classes of validation images, from a labels file of the user's."""

import re

from orchestrator import errors

NAMES = ("valprep.sh", "imagenet_2012_validation_synset_labels.txt")
MOST_LINES = 1_000_000
_MOVE = re.compile(r"mv (ILSVRC2012_val_[0-9]{8}\.JPEG) (n[0-9]{8})/?")
_SYNSET = re.compile(r"n[0-9]{8}")
_NEEDED = (
    "needed lines `mv ILSVRC2012_val_00000293.JPEG n01440764/`,"
    " or one class such as n01440764 for each image in order"
)


def parse(text: str, name: str) -> dict[str, str]:
    """Parse the class of each file, by its name.

    Args:
        text: of valprep.sh, or a list of classes in the order of the images' numbers.
        name: of the file, for messages.

    Raises:
        LogError: LABELS; a line in neither form, or an image in two classes.
    """
    lines = [line.strip() for line in text.splitlines()]
    numbered = [(at, line) for at, line in enumerate(lines, 1) if line and not line.startswith("#")]
    if len(numbered) > MOST_LINES:
        raise _wrong(f"{name}: {len(numbered)} lines; needed 50000")
    moves = [(at, line) for at, line in numbered if not line.startswith("mkdir ")]
    is_script = any(line.startswith("mv ") for _, line in moves)
    classes: dict[str, str] = {}
    for number, (at, line) in enumerate(moves, 1):
        match = (_MOVE if is_script else _SYNSET).fullmatch(line)
        if match is None:
            raise _wrong(f"{name}:{at}: {line[:60]!r}; {_NEEDED}")
        file = match[1] if is_script else f"ILSVRC2012_val_{number:08}.JPEG"
        synset = match[2] if is_script else line
        if classes.setdefault(file, synset) != synset:
            raise _wrong(f"{name}:{at}: {file} is of {classes[file]} and of {synset}")
    if not classes:
        raise _wrong(f"{name}: nothing in it; {_NEEDED}")
    return classes


def lines(labels: dict[str, str]) -> str:
    """Format labels for a shell, one ``FILE CLASS`` a line, sorted by file."""
    return "".join(f"{file} {labels[file]}\n" for file in sorted(labels))


def _wrong(words: str) -> errors.LogError:
    return errors.LogError(words, code="LABELS", fix="give another file with --labels")
