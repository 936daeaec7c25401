"""Every command of README and docs/ is run, or at least read by the program's own parser."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer

from tests.cluster import stubs
from tests.conftest import Place
from tests.docs import running
from tests.docs.commands import parse, resolve, split
from tests.docs.pages import PAGES, ROOT, Block, blocks, called, prose
from tests.docs.recorded import lay

# Their commands start gangs.
SWEEPING = [ROOT / "README.md", ROOT / "docs/commands.md"]
# Its commands are about the sweep that the other page has run.
NUMBERS = ROOT / "docs/commands-numbers.md"
STILL = [page for page in PAGES if page not in (*SWEEPING, NUMBERS)]
ALL = [block for page in PAGES for block in blocks(page) if block.language == "sh"]
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# Programs of others that pages call, whose options are their own matter.
OTHERS = {"pip", "test", "nvidia-smi", "ibstat", "ls", "ssh", "echo", ".venv/bin/python"}


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.name)
def test_commands_are_read_by_the_parser(block: Block) -> None:
    """An option or a command that is not there fails; so does a target that Makefile has not."""
    for words in split(block.text):
        if words[0] == "dlperf-orch":
            parse(words[1:])
        elif words[0] == "make":
            assert set(words[1:]) <= TARGETS, words
        else:
            assert words[0] in OTHERS, words


@pytest.mark.parametrize("words", [["swep", "smoke"], ["sweep", "smoke", "--case-s", "1x1"]])
def test_what_is_not_there_is_no_command(words: list[str]) -> None:
    """Neither a misspelt command nor a misspelt option gets through."""
    with pytest.raises(typer.BadParameter.__bases__[0]):
        parse(words)


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_commands_in_a_sentence_are_there(page: Path) -> None:
    """With the options that a sentence or a table names; arguments may be left out there."""
    for found in re.findall(r"`dlperf-orch ([^`-][^`]*)`", " ".join(prose(page).split())):
        if not found.startswith("COMMAND "):
            command, rest = resolve(shlex.split(found))
            known = {name for param in command.params for name in param.opts}
            assert {word for word in rest if word.startswith("-")} <= known, found


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_no_command_stands_where_it_is_not_run(page: Path) -> None:
    """Each block says what it is; what a command prints, or is only indented, is no command."""
    assert {block.language for block in blocks(page)} <= {"sh", "yaml", "python", "text"}
    printed = (block.text for block in blocks(page) if block.language == "text")
    assert not any(re.search(r"^(\$ |dlperf-orch |make |pip )", it, re.MULTILINE) for it in printed)
    assert not re.search(r"^    +(\$ |dlperf-orch |make |pip )", prose(page), re.MULTILINE)


def test_exceptions_are_named_by_blocks_that_are_there() -> None:
    """A block that was rewritten is run, unless it is named anew."""
    names = [block.name for block in ALL]
    assert len(set(names)) == len(names)
    assert {*running.ONLY_PARSED, *running.ON_THE_CLUSTER} <= set(names)


@pytest.fixture
def desk(place: Place) -> Place:
    """Where a reader works: recorded logs, and the toy program in place of the demo's."""
    folder = place.folder
    quick = (folder / "playbooks/toy.yaml").read_text().replace("[1x1, 2x2]", "[1x1, 1x2, 2x1]")
    (folder / "playbooks/smoke.yaml").write_text(quick.replace(": two", ": local"))
    shutil.copytree(ROOT / "images/reference-rn50", folder / "images/reference-rn50")
    shutil.copy(ROOT / "inventory/v100x4.yaml", folder / "inventory")
    lay(folder / "logs")
    return place


def run_page(page: Path, desk: Place) -> int:
    """Run what runs on any machine, with stubs that replay what programs of a node printed."""
    folder = desk.folder.parent
    if not (folder / "stubs").exists():  # of another page in the same folder
        stubs.write(folder / "stubs")
    path = f"{folder / 'stubs'}:{running.program(folder / 'bin')}"
    run = running.shell(desk.folder, {**desk.env(), "PATH": path})
    return running.read(page, desk.folder, run, running.runs_here)


@pytest.mark.parametrize("page", STILL, ids=called)
def test_the_commands_of_a_page_run(page: Path, desk: Place) -> None:
    """From top to bottom, in one folder; none fails."""
    run_page(page, desk)


@pytest.mark.cluster
@pytest.mark.parametrize("page", SWEEPING, ids=called)
def test_the_sweeps_of_a_page_run(page: Path, desk: Place) -> None:
    """With the toy program behind the demo's name, and nothing is left running."""
    assert run_page(page, desk) > 1
    if page.name == "commands.md":
        assert run_page(NUMBERS, desk) > 0
    assert desk.pids() == []


def test_files_of_pages_are_good(tmp_path: Path) -> None:
    """Every inventory and playbook that a page shows passes `check`."""
    found = [block for page in PAGES for block in blocks(page) if block.file]
    paths = [tmp_path / block.page / block.file for block in found]
    for block, path in zip(found, paths, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
    words = " ".join(map(str, paths))
    assert len(paths) > 6
    env = {**os.environ, "PATH": running.program(tmp_path / "bin"), "PYTHONPATH": str(ROOT)}
    done = running.shell(tmp_path, env)(f"dlperf-orch check {words}")
    assert done.returncode == 0, done.stdout + done.stderr
