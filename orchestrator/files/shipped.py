"""Playbooks, inventories and images: in the current folder, else shipped with the package."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Kind = Literal["playbooks", "inventory", "images"]

_PACKAGE = Path(__file__).resolve().parents[1]
# A wheel carries the folders inside the package; a checkout has them beside it.
_ROOT = _PACKAGE / "shipped" if (_PACKAGE / "shipped").is_dir() else _PACKAGE.parent

SCRIPTS = _ROOT / "images" / "scripts"
"""Scripts that the Dockerfiles of several images share."""


def find(kind: Kind, name: str) -> Path | None:
    """Find the file that ``name`` means: a path, a name in this folder, or a shipped name.

    A plain word is a name first: a file that happens to lie here under it hides no other.
    """
    path, named = Path(name), _candidates(kind, name)
    is_word = "/" not in name and not path.suffix
    return next(filter(_is_there, (*named, path) if is_word else (path, *named)), None)


def names(kind: Kind) -> dict[str, Path]:
    """Map each file of a kind by its name; files of this folder hide shipped ones."""
    paths: dict[str, Path] = {}
    for root in (Path(), _ROOT):
        pattern = "*/image.yaml" if kind == "images" else "*.yaml"
        for path in sorted((root / kind).glob(pattern)):
            paths.setdefault(path.parent.name if kind == "images" else named(path), path)
    return paths


def named(path: Path) -> str:
    """Return the name of a playbook in folders and on nodes: ``my-sweep`` of ``my sweep.yaml``."""
    return re.sub(r"\s+", "-", path.stem.strip())


def _is_there(path: Path) -> bool:
    """Return True unless it is missing or a folder; ``source.read`` refuses special files."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:  # longer than the name of a file can be
        return False


def _candidates(kind: Kind, name: str) -> Iterator[Path]:
    plain = name.removeprefix(f"{kind}/").removesuffix(".yaml")
    if "/" in plain or plain in ("", ".", ".."):
        return
    if kind == "playbooks" and (spaced := names(kind).get(plain)):
        yield spaced
    for root in (Path(), _ROOT):
        yield root / kind / (f"{plain}/image.yaml" if kind == "images" else f"{plain}.yaml")
