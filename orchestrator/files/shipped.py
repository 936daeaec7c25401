"""Playbooks, inventories and images: in the current folder, else shipped with the package."""

import contextlib
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
    path = Path(name)
    named: list[Path] = []
    plain = name.removeprefix(f"{kind}/").removesuffix(".yaml")
    if "/" not in plain and plain not in ("", ".", ".."):
        file = f"{plain}/image.yaml" if kind == "images" else f"{plain}.yaml"
        named = [root / kind / file for root in (Path(), _ROOT)]
    is_word = "/" not in name and not path.suffix
    for candidate in (*named, path) if is_word else (path, *named):
        with contextlib.suppress(OSError):  # longer than the name of a file can be
            if candidate.exists() and not candidate.is_dir():
                return candidate
    return None


def names(kind: Kind) -> dict[str, Path]:
    """Map each file of a kind by its name; files of this folder hide shipped ones."""
    paths: dict[str, Path] = {}
    for root in (Path(), _ROOT):
        pattern = "*/image.yaml" if kind == "images" else "*.yaml"
        for path in sorted((root / kind).glob(pattern)):
            paths.setdefault(path.parent.name if kind == "images" else path.stem, path)
    return paths
