"""docs/commands*.md has every command and option, docs/exit-codes.md every exit code."""

import re
from collections.abc import Iterator

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from orchestrator import errors
from orchestrator.cli.app import app
from tests.docs.pages import ROOT, rows

PAGES = sorted(ROOT.glob("docs/commands*.md"))
TEXTS = [page.read_text(encoding="utf-8") for page in PAGES]
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
# Told once, at the top of the page.
COMMON = {"--json", "--state", "--verbose", "--help"}
OPTION = re.compile(r"--[a-z][a-z-]*")
CLOSED_PIPE = 141  # no error of ours: nobody reads what would say it


def list_commands(group: TyperGroup, prefix: str = "") -> Iterator[tuple[str, TyperCommand]]:
    """Every command by its words."""
    for name in group.commands:
        words = f"{prefix}{name}"
        _, command, _ = group.resolve_command(typer.Context(group), [name])
        if isinstance(command, TyperGroup):
            yield from list_commands(command, f"{words} ")
        elif isinstance(command, TyperCommand):
            yield words, command


def sections() -> dict[str, list[str]]:
    """By command, the options of its table in order; several commands may share a heading."""
    found: dict[str, list[str]] = {}
    for part in (part for text in TEXTS for part in text.split("\n## ")[1:]):
        title, _, text = part.partition("\n")
        options = sorted(word for cells in rows(text) for word in OPTION.findall(cells[0]))
        found |= dict.fromkeys(title.split(", "), options)
    return found


def test_every_command_is_there_with_its_options() -> None:
    """Once, and no command or option that the program has not."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    having = {
        words: {name for param in command.params for name in param.opts if name.startswith("--")}
        for words, command in list_commands(group)
    }
    assert {words: sorted(options - COMMON) for words, options in having.items()} == sections()


def test_common_options_are_told_at_the_top() -> None:
    """With their short forms."""
    top = COMMANDS.partition("\n## ")[0]
    assert {word for cells in rows(top) for word in OPTION.findall(cells[0])} == COMMON


def test_every_exit_code_is_told() -> None:
    """And in which order they count, in the page's first lines."""
    text = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    told = [int(cells[0].strip("`")) for cells in rows(text)]
    assert told == sorted({*errors.PRECEDENCE, CLOSED_PIPE})
    order = [int(code) for code in re.findall(r"\d+", text.partition("\n|")[0])]
    assert order == [code for code in errors.PRECEDENCE if code > 2]
