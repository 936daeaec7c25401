"""docs/architecture.md has every room of the program, and none that is not there."""

import pkgutil
import re
import tomllib

import orchestrator
from orchestrator.schedulers.scheduler import Scheduler
from tests.docs.pages import ROOT, rows

PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
CALLED = {"yaml": "PyYAML"}


def test_every_room_is_on_the_page() -> None:
    """Folders and single modules, each with what it holds."""
    there = {module.name for module in pkgutil.iter_modules(orchestrator.__path__)}
    told = [cells[0].strip("*`") for cells in rows(PAGE.replace("| **`", "| `"))]
    assert sorted(told) == sorted(there - {"__main__"})


def test_the_homes_of_libraries_are_those_of_the_contract() -> None:
    """Each library stands in the sentence about them, and so does its home."""
    homes = next(contract for contract in CONTRACTS if contract["name"].endswith("has one home"))
    told = PAGE[PAGE.index("third-party library has one home") :].partition("\n\n")[0]
    for line in homes["ignore_imports"]:
        module, library = line.split(" -> ")
        assert CALLED.get(library, library) in told, library
        assert module.split(".")[1] in told, module


def test_the_picture_has_the_rooms_of_the_contract() -> None:
    """What import-linter calls layers is in the picture."""
    layers = {*" ".join(CONTRACTS[0]["layers"]).replace(":", " ").split()} - {"__main__"}
    folders = {name for name in layers if (ROOT / "orchestrator" / name).is_dir()}
    picture = PAGE.partition("## The life")[0]
    assert folders <= set(re.findall("([a-z_]+)/", picture))
    assert layers <= set(re.findall("[a-z_]+", picture))


def test_the_page_of_schedulers_has_every_method() -> None:
    """A new scheduler extends that class."""
    text = (ROOT / "docs/adding-a-scheduler.md").read_text(encoding="utf-8")
    told = re.findall(r"^   \| (`.*?) \|", text, re.MULTILINE)
    methods = {name for name in dir(Scheduler) if not name.startswith("_")}
    assert sorted(re.findall("`([a-z]+)`", " ".join(told))) == sorted(methods)
