"""The command line as a whole: help, what it loads, its streams, and faults of the program."""

import json
import os
import sys
from pathlib import Path

import pytest

from orchestrator import __version__
from orchestrator.cli import app
from orchestrator.cli.command import COMMANDS, GROUPS
from orchestrator.state.store import Store
from tests import ROOT, commands
from tests.cli.here import Here
from tests.commands import TELL, loaded
from tests.docs.commands import list_commands, parse, split

PROGRAM = [sys.executable, "-m", "orchestrator"]
ENV = commands.environment(PYTHONPATH=str(ROOT))
PRINTING = (
    "list workloads",
    "list playbooks --json",
    "schema playbook",
    "sweep smoke --dry-run",
    "--help",
    "--version",
)
OF_NODES = {"cryptography", "docker", "fabric", "paramiko", "requests", "tenacity"}
OURS = {"orchestrator.fleet", "orchestrator.runtimes", "orchestrator.transports"}


def test_version_is_the_packages(bare: Here) -> None:
    assert bare("--version", code=0).out == f"dlperf-orch {__version__}\n"


@pytest.mark.parametrize("words", [(), *((name,) for name in GROUPS)])
def test_help_lists_each_command_by_a_whole_sentence(bare: Here, words: tuple[str, ...]) -> None:
    """On a terminal of 80 columns no sentence is cut short; `-h` and no command do the same."""
    bare.patch.setenv("COLUMNS", "80")
    text = bare(*words, "-h", code=0).out
    assert text == bare(*words, "--help", code=0).out
    alone = bare(*words, code=2)
    assert (alone.out + alone.err).startswith(text)
    listed = [line for line in text.partition("Commands:\n")[2].splitlines() if line.strip()]
    names = {path.removeprefix(" ".join((*words, ""))).split()[0] for path in COMMANDS}
    if words:
        names = {path.split()[1] for path in COMMANDS if path.split()[0] == words[0]}
    assert {line.split()[0] for line in listed} == names
    assert [line for line in listed if line[-1] != "." or "..." in line] == []


@pytest.mark.parametrize(("words", "end"), [("status", "SWEEP"), ("logs", "TRIAL")])
def test_an_optional_argument_has_one_pair_of_brackets(bare: Here, words: str, end: str) -> None:
    assert bare(words, "--help").out.splitlines()[0].endswith(f" [{end}]")


def test_each_command_has_an_example_of_its_own() -> None:
    """The parser reads it, and help does not wrap it: a shell takes it as it is shown."""
    shown = 0
    for words, command in list_commands(app.app):
        mark, head, *given = (command.epilog or "").splitlines()
        assert (mark, head) == ("\b", "Examples:" if len(given) > 1 else "Example:")
        for line in given:
            assert line.startswith(f"  dlperf-orch {words}")
            (read,) = split(line)
            parse(read[1:])
        shown += len(given)
    assert shown > 30


def test_schemas_are_json_with_and_without_the_option(bare: Here) -> None:
    plain = bare("schema", "playbook", code=0)
    assert plain == bare("schema", "playbook", "--json", code=0)
    assert plain.document["title"] == "dlperf-orch playbook"


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        ("--version", {*OF_NODES, "rich", "yaml", "orchestrator.model.cluster"}),
        ("--help", {*OF_NODES, "rich", "yaml", "orchestrator.model.cluster"}),
        ("list workloads", {*OF_NODES, "yaml"}),
        ("list inventories", {*OF_NODES, "yaml"}),
        ("list playbooks", OF_NODES | OURS),
        ("schema inventory", OF_NODES | OURS),
        ("check inventory/local.yaml", OF_NODES | OURS),
        ("sweep smoke --dry-run --inventory local", OF_NODES),
        ("status", OF_NODES),
        ("list sweeps", OF_NODES | OURS),
    ],
)
def test_a_command_loads_no_library_that_it_does_not_use(
    tmp_path: Path, words: str, unused: set[str]
) -> None:
    """SSH and Docker take half a second to load, and some commands reach no node."""
    env = {**ENV, **TELL, "DLPERF_STATE": str(tmp_path)}
    names = loaded(commands.run([*PROGRAM, *words.split()], cwd=ROOT, env=env).stderr)
    assert "orchestrator.cli.app" in names
    assert not names & unused


def by_shell(folder: Path, script: str, command: str) -> tuple[int, str, str]:
    """Run a command as ``"$@"`` of a script; exit code, standard output and error."""
    words = ["sh", "-c", script, "sh", *PROGRAM, *command.split()]
    done = commands.run(words, cwd=folder, env=ENV)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", [*PRINTING, "sweep smok --json"])
def test_a_full_disk_is_a_local_error(tmp_path: Path, command: str) -> None:
    code, _, err = by_shell(tmp_path, 'exec "$@" >/dev/full', command)
    assert "ERROR STDOUT: standard output cannot be written: No space left on device." in err
    assert (code, "Traceback" in err) == (6, False)
    assert not [*tmp_path.rglob("traceback*")]


def test_a_closed_standard_output_is_a_local_error(tmp_path: Path) -> None:
    code, _, err = by_shell(tmp_path, 'exec "$@" >&-', "list workloads")
    assert code == 6
    assert "ERROR STDOUT: standard output cannot be written: it is closed." in err


@pytest.mark.parametrize("command", PRINTING)
def test_a_reader_that_has_gone_causes_no_error(tmp_path: Path, command: str) -> None:
    """The reader closes the pipe early, like ``| head -1``."""
    by_shell(tmp_path, '{ "$@"; echo $? >code; } 2>err | :', command)
    assert "ERROR" not in (tmp_path / "err").read_text()
    assert (tmp_path / "code").read_text().strip() in ("0", "1", "141")  # 1: click's own, of --help


@pytest.mark.parametrize("command", ["sweep smok --json", "status --json"])
def test_a_closed_standard_error_changes_no_exit_code(tmp_path: Path, command: str) -> None:
    """A cron job may close it; the document still has the error."""
    code, out, _ = by_shell(tmp_path, 'exec "$@" 2>&-', command)
    assert (code, json.loads(out)["exit_code"]) == (2, 2)


def test_a_terminal_without_utf8_gets_plain_tables(tmp_path: Path) -> None:
    script = 'LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii exec "$@"'
    code, out, _ = by_shell(tmp_path, script, "list playbooks")
    assert (code, "rn50-amp" in out, out.isascii()) == (0, True, True)


def test_a_fault_of_the_program_goes_to_a_file(bare: Here) -> None:
    """One line on the terminal and a document; the traceback is in the state folder."""
    bare.patch.setattr(Store, "sweeps", lambda _: 1 // 0)  # no input is known to cause a fault
    ended = bare("list", "sweeps", "--json", code=1)
    (error,) = ended.document["errors"]
    seen = "ZeroDivisionError: integer division or modulo by zero"
    assert (error["code"], error["message"]) == ("BUG", seen)
    assert ended.err.startswith(f"ERROR BUG: {seen}. Fix: report it with {bare.state}/traceback-")
    assert len(ended.err.splitlines()) == 1
    (kept,) = bare.state.glob("traceback-*.txt")
    assert "Traceback" in kept.read_text()


def test_a_traceback_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In /tmp anybody may have made a link with the name of the next process."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    monkeypatch.setenv("DLPERF_STATE", str(tmp_path))
    (tmp_path / f"traceback-{os.getpid()}.txt").symlink_to(precious)
    path = Path(app._write_traceback(ValueError("wrong")))
    assert precious.read_text() == "precious"
    assert "ValueError: wrong" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
