"""Command lines that run in the process of the tests: quick, and seen by coverage."""

import json
import logging
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import debug_log, main
from orchestrator.cli.command import Face
from orchestrator.signals import REQUESTS, SIGNALS, Signals
from tests import ROOT, TESTS
from tests.conftest import Place, own_ports


@dataclass(frozen=True)
class Ended:
    """The output of a command and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def codes(self) -> list[str]:
        """The codes of the errors in its document."""
        return [error["code"] for error in self.document["errors"]]


@dataclass(frozen=True)
class Here:
    """A folder where a person works, whose commands run in this process."""

    folder: Path
    patch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    @property
    def state(self) -> Path:
        return self.folder / ".dlperf"

    def write(self, path: str, text: str) -> Path:
        """Write a file of the user; return its path."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)
        return self.folder / path

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text in a file of the user."""
        text = (self.folder / path).read_text()
        assert old in text
        (self.folder / path).write_text(text.replace(old, new))

    def session(self, *lines: str) -> str:
        """Run commands; return what a person sees of each, without the paths of this test."""
        shown = []
        for line in lines:
            ended = self(*shlex.split(line))
            shown.append(f"$ dlperf-orch {line}\n{ended.out}{ended.err}[{ended.code}]\n")
        return "".join(shown).replace(str(ROOT), "ROOT").replace(str(self.folder), "HERE")

    def __call__(self, *words: str, code: int | None = None, stdin: bytes = b"") -> Ended:
        """Run a command, which must have the exit code ``code`` if one is given."""
        self.captured.readouterr()
        with tempfile.TemporaryFile() as file, open(file.fileno(), closefd=False) as text:
            file.write(stdin)
            file.seek(0)
            kept = os.dup(0)
            os.dup2(file.fileno(), 0)
            self.patch.setattr(sys, "stdin", text)
            self.patch.setattr(sys, "argv", ["dlperf-orch", *words])
            try:
                with pytest.raises(SystemExit) as raised:
                    main()
            finally:
                os.dup2(kept, 0)
                os.close(kept)
                _forget()
        ended = Ended(int(raised.value.code or 0), *self.captured.readouterr())
        assert code in (None, ended.code), ended.err
        return ended


def _forget() -> None:
    """Let the next command find the process as a new one is."""
    Face.running = None
    vars(SIGNALS).update(vars(Signals()))
    for name in (debug_log.NAME, "paramiko"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True
        for handler in [it for it in logger.handlers if "pytest" not in type(it).__module__]:
            handler.close()
            logger.removeHandler(handler)


def _set_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Here]:
    handlers, mask = {number: signal.getsignal(number) for number in REQUESTS}, os.umask(0o077)
    for name in [name for name in os.environ if name.startswith("DLPERF_")]:
        monkeypatch.delenv(name)
    own = {"HOME": str(folder), "COLUMNS": "200", "TOY_PORT": str(own_ports())}
    own["DLPERF_LOCK"] = str(folder.parent / "machine.lock")  # apart from real sweeps
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    # As a program's own file has it; else help would name the runner of the tests.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None, raising=False)
    monkeypatch.chdir(folder)
    yield Here(folder, monkeypatch, capfd)
    os.umask(mask)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Here]:
    """An empty folder."""
    yield from _set_up(tmp_path, monkeypatch, capfd)


@pytest.fixture
def here(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Here]:
    """A folder with the toy workload, its playbook, its image and an inventory of two nodes."""
    if request.node.get_closest_marker("cluster"):
        request.getfixturevalue("machine")
    folder = Place.made(tmp_path / "place").folder
    monkeypatch.syspath_prepend(str(TESTS / "toy"))
    yield from _set_up(folder, monkeypatch, capfd)
