"""sweep --detach: a sweep that goes on without a terminal once it is seen to be under way."""

import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from orchestrator import disk
from orchestrator.console import Voice
from orchestrator.signals import Stopped
from orchestrator.state.store import Sweep

LOOK_S = 0.1
PIECE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Child:
    """The process that goes on, as the command sees it that started it.

    Args:
        pipe: where it says the id of its sweep once that is under way.
        messages: where it says everything on the way, in the state folder, by its pid.
        said: those, as they come.
        results: what it prints before it is under way.
    """

    pid: int
    pipe: int
    messages: Path
    said: BinaryIO
    results: BinaryIO


class Begun:
    """Called by the process that goes on, with its sweep, when the first task runs."""

    def __init__(self, pipe: int, messages: Path) -> None:
        self._pipe, self._messages = pipe, messages
        self._lock = threading.Lock()

    def __call__(self, sweep: Sweep) -> None:
        with self._lock:
            if self._pipe < 0:
                return
            self._messages.rename(sweep.folder / self._messages.name)
            os.dup2(2, 1)
            with suppress(BrokenPipeError):  # whoever started it did not wait
                os.write(self._pipe, sweep.id.encode())
            os.close(self._pipe)
            self._pipe = -1


def fork(state: Path) -> Child | Begun:
    """Go on as two processes; the one without a terminal is given what it calls when under way.

    Raises:
        StoreError, LocalError: there is still one process.
    """
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = _messages(state, moment)
    with disk.on_disk(path, "STORE-RIGHTS", "choose another folder with --state"):
        disk.make_folder(path.parent)
        messages = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        said = open(path, "rb")  # noqa: SIM115 - read after its name has changed
    results = TemporaryFile()  # noqa: SIM115 - both processes go on with it
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        os.close(messages)
        return Child(pid, ours, _messages(state, moment, pid), said, results)
    os.setsid()
    path = path.rename(_messages(state, moment))
    said.close()
    os.close(ours)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(results.fileno(), 1)
    os.dup2(messages, 2)
    return Begun(theirs, path)


def _messages(state: Path, moment: str, pid: int | None = None) -> Path:
    return state.resolve() / f"detached-{moment}-{pid or os.getpid()}.log"


def follow(child: Child, voice: Voice) -> int:
    """Show what the other process says until it is under way, and how to find it then; exit code.

    Raises:
        Stopped: by a closed terminal; the other process goes on.
    """
    with child.said as messages:
        try:
            sweep = _said(child, messages)
        except Stopped as stopped:
            if stopped.number == signal.SIGHUP:
                raise
            os.kill(child.pid, stopped.number)
            sweep = _said(child, messages)
    if not sweep:
        return _ended(child)
    log = child.messages.parent / "sweeps" / sweep / child.messages.name
    voice.result(f"sweep {sweep} runs on by itself, pid {child.pid}; its messages: {log}")
    state = f" --state {child.messages.parent}"
    for words in (f"status {sweep}", f"logs --sweep {sweep} --follow", f"stop {sweep}"):
        voice.result(f"  dlperf-orch {words}{state}")
    said = {"sweep": sweep, "controller": child.pid, "log": str(log)}
    voice.document({"exit_code": 0, **said})
    return 0


def _said(child: Child, messages: BinaryIO) -> str:
    """The id of the sweep that is under way; empty if the process has ended."""
    while True:
        ready, _, _ = select.select([child.pipe], [], [], LOOK_S)
        while piece := messages.read(PIECE_BYTES):
            with suppress(OSError):  # nobody looks
                os.write(2, piece)
        if ready:
            return os.read(child.pipe, PIECE_BYTES).decode()


def _ended(child: Child) -> int:
    """What it printed is printed here; its exit code."""
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    child.results.seek(0)
    sys.stdout.write(child.results.read().decode())
    sys.stdout.flush()
    child.messages.unlink(missing_ok=True)
    return code if code >= 0 else 128 - code
