"""Commands as pages and help show them, read by the program's own parser."""

import re
import shlex
from collections.abc import Iterator

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from orchestrator.cli.app import app


def list_commands(
    of: typer.Typer | TyperGroup, prefix: str = ""
) -> Iterator[tuple[str, TyperCommand]]:
    """Yield every command by its words."""
    group = get_command(of) if isinstance(of, typer.Typer) else of
    assert isinstance(group, TyperGroup)
    for name in group.commands:
        words = f"{prefix}{name}"
        _, command, _ = group.resolve_command(typer.Context(group), [name])
        if isinstance(command, TyperGroup):
            yield from list_commands(command, f"{words} ")
        elif isinstance(command, TyperCommand):
            yield words, command


def split(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a script."""
    for line in text.replace("\\\n", " ").splitlines():
        command = re.sub(r"\s#.*|>\s*\S+", "", line)
        for part in re.split(r"\|\|?|&&", command):
            yield shlex.split(part)


def resolve(words: list[str]) -> tuple[TyperCommand | TyperGroup, list[str]]:
    """Return the command that words begin with, and the words for it; or a group."""
    command = get_command(app)
    while isinstance(command, TyperGroup) and words:
        name, found, words = command.resolve_command(typer.Context(command), words)
        assert found is not None, name
        command = found
    assert isinstance(command, TyperCommand | TyperGroup)
    return command, words


def parse(words: list[str]) -> None:
    """Read a command line as the program does, and do nothing."""
    command, rest = resolve(words)
    assert command.make_context(str(command.name), rest).command is command
