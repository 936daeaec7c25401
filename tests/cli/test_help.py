"""What `--help` shows: whole sentences, and examples that the program's own parser reads."""

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from orchestrator.cli.app import app
from tests.conftest import Place
from tests.docs.pages import Block
from tests.docs.test_commands import lines, parse
from tests.docs.test_options import commands


@pytest.mark.parametrize("words", [(), ("data",), ("inspect",)])
def test_each_command_is_told_by_a_whole_sentence(place: Place, words: tuple[str, ...]) -> None:
    """On a terminal of 80 columns none is cut short."""
    listed = place.run(*words, "-h", COLUMNS="80").stdout.partition("Commands:")[2]
    assert listed.count("\n") > 2
    assert [line for line in listed.splitlines() if line.strip() and line[-1] != "."] == []
    assert "..." not in listed


def test_each_command_has_an_example_of_its_own() -> None:
    """Which the parser reads, and which the page of no other command shows."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    shown = 0
    for words, command in commands(group):
        head, *given = (command.epilog or "").removeprefix("\b\n").splitlines()
        assert head == ("Examples:" if len(given) > 1 else "Example:")
        for line in given:
            assert line.startswith(f"  dlperf-orch {words}")
            (read,) = lines(Block("help", "sh", line))
            parse(read[1:])
        shown += len(given)
    assert shown > 30


def test_examples_keep_their_lines(place: Place) -> None:
    """Help is wrapped at 80 columns; an example that is would not be taken by a shell."""
    shown = place.run("collect", "--help", COLUMNS="80").stdout.splitlines()
    at = shown.index("  Examples:")
    assert [line.strip() for line in shown[at + 1 : at + 3]] == [
        "dlperf-orch collect --lang zh --out report-zh",
        "dlperf-orch collect --logs old --workload ngc_pytorch_rn50 --window 20:120",
    ]
