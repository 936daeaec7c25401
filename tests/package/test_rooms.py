"""Rooms import each other as docs/architecture.md shows, and the check finds what does not."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest

from tests import ROOT, commands

TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
LAYERS, PURE, *_ = TOOLS["importlinter"]["contracts"]
FACE = {"__main__", "cli", "verbs", "console"}
WORK = {
    *("sweeping", "provisioning", "preparing_data", "collecting", "submitting", "verifying"),
    "inputs",
}
MOST_LOOSE = 12  # modules that live in no room
# What reads or writes, waits or asks the machine although no import shows it.
NAMES = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
METHODS = {
    *("read_text", "read_bytes", "write_text", "write_bytes", "open", "touch", "mkdir", "rmdir"),
    *("unlink", "iterdir", "glob", "rglob", "walk", "exists", "is_file", "is_dir", "is_symlink"),
    *("stat", "lstat", "resolve", "absolute", "realpath", "abspath", "expanduser", "cwd", "home"),
    *("sleep", "now", "utcnow", "today", "monotonic", "perf_counter", "system", "getenv"),
}


def modules(names: list[str]) -> set[str]:
    """Without the package's name; those of Python fall away."""
    return {name.removeprefix("orchestrator.") for name in names if "orchestrator." in name}


def list_io(text: str) -> list[str]:
    """List the calls in a module that do IO, wait or ask the machine, with their lines."""
    calls = (call for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call))
    return [
        f"line {call.lineno}: {ast.unparse(call.func)}"
        for call in calls
        if (getattr(call.func, "attr", "") in METHODS) or getattr(call.func, "id", "") in NAMES
    ]


def pure() -> Iterator[Path]:
    """The files of rules and nouns, and of what both sides may see."""
    for name in sorted(modules(PURE["source_modules"])):
        file = ROOT / "orchestrator" / f"{name}.py"
        yield from [file] if file.is_file() else file.with_suffix("").rglob("*.py")


def test_each_module_is_face_or_edge_or_pure() -> None:
    """One list each, so that no module escapes the contract of its side."""
    placed = [name.strip() for layer in LAYERS["layers"] for name in layer.split(":")]
    edges, free = modules(PURE["forbidden_modules"]), modules(PURE["source_modules"])
    assert sorted([*FACE, *WORK, *edges, *free]) == sorted(placed)


def test_coverage_counts_every_rule_and_noun() -> None:
    """A new rule is held to 100 % like the others."""
    [rules] = [layer.split(" : ") for layer in LAYERS["layers"] if "measuring" in layer]
    counted = TOOLS["coverage"]["report"]["include"]
    names = [Path(pattern).relative_to("orchestrator").parts[0] for pattern in counted]
    assert sorted([*rules, "report", "comparing", "logs", "model"]) == sorted(
        name.removesuffix(".py") for name in names
    )


def test_rules_and_nouns_call_nothing_that_does_io() -> None:
    """Not by a builtin, nor by a method of a path or a clock that was passed to them."""
    found = {str(file.relative_to(ROOT)): list_io(file.read_text()) for file in pure()}
    # Files that are as constant as a module, since they are a part of the package.
    assert len(found.pop("orchestrator/model/findings.py")) == 1
    assert len(found.pop("orchestrator/report/page.py")) == 1
    assert len(found) > 100
    assert {file: calls for file, calls in found.items() if calls} == {}


def test_no_module_with_an_underscore_is_used_outside_its_room() -> None:
    """A room may change such a module without a look elsewhere."""
    package, found = ROOT / "orchestrator", []
    for file in package.rglob("*.py"):
        room = file.relative_to(package).parts[0]
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orchestrator."):
                names = [f"{node.module}.{alias.name}".split(".")[1:] for alias in node.names]
                found += [
                    (file, name)
                    for name in names
                    if name[0] != room and any(re.match("_[^_]", word) for word in name)
                ]
    assert found == []


def test_few_modules_live_in_no_room() -> None:
    """And each room says who lives there."""
    package = ROOT / "orchestrator"
    loose = [file.stem for file in package.glob("*.py") if file.stem != "__init__"]
    assert len(loose) <= MOST_LOOSE
    rooms = [folder / "__init__.py" for folder in package.iterdir() if any(folder.glob("*.py"))]
    assert all(ast.get_docstring(ast.parse(room.read_text())) for room in rooms)
    assert not [file.name for file in (package / "verbs").glob("_*.py") if file.stem != "__init__"]


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("state/store", "from orchestrator.measuring import medians", "verbs > face"),
        ("verbs/stop", "from orchestrator.verbs import status", "no verb"),
        ("stray", "", "verbs > face"),
        ("measuring/medians", "from orchestrator.state import store", "rules and nouns"),
        ("model/log", "def stop():\n    import time", "rules and nouns"),
        ("state/store", "import yaml", "each third-party"),
    ],
)
def test_a_broken_promise_fails_the_check(
    tmp_path: Path, module: str, line: str, broken: str
) -> None:
    """lint-imports, as ``make check`` runs it, on this package with one wrong line."""
    copy(ROOT / "pyproject.toml", tmp_path)
    copytree(
        ROOT / "orchestrator", tmp_path / "orchestrator", ignore=ignore_patterns("__pycache__")
    )
    with (tmp_path / "orchestrator" / f"{module}.py").open("a") as file:
        file.write(f"\n{line}\n")
    linter = Path(sys.executable).with_name("lint-imports")
    ended = commands.run([linter, "--no-cache"], cwd=tmp_path)
    [contract] = [row for row in ended.stdout.splitlines() if " BROKEN" in row]
    assert contract.startswith(broken)
