"""docs/architecture.md has every room of the program, and none that is not there."""

import pkgutil
import re
import tomllib

import orchestrator
from tests.docs.pages import ROOT, rows

PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_every_room_is_on_the_page() -> None:
    """Folders and single modules, each with what it holds."""
    there = {module.name for module in pkgutil.iter_modules(orchestrator.__path__)}
    told = [cells[0].strip("*`") for cells in rows(PAGE.replace("| **`", "| `"))]
    assert sorted(told) == sorted(there - {"__main__"})


def test_the_picture_has_the_rooms_of_the_contract() -> None:
    """What import-linter calls layers is in the picture."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = " ".join(contracts["contracts"][0]["layers"]).replace(":", " ").split()
    picture = set(re.findall("[a-z_]+", PAGE.partition("## The life")[0]))
    assert set(layers) - {"__main__"} <= picture
