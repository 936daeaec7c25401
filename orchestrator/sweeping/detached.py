"""sweep --detach: a sweep that goes on without a terminal once it is seen to be under way."""

import os
import select
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from orchestrator import disk
from orchestrator.console import Voice
from orchestrator.signals import Stopped
from orchestrator.state.sweep import Sweep

LOOK_S = 0.1
PIECE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Child:
    """Describe the background process to the command that started it.

    Args:
        pipe: it writes the id of its sweep there once a gang runs.
        messages: the file in the state folder that its standard error goes to.
        stream: that file, open for reading.
    """

    pid: int
    pipe: int
    messages: Path
    stream: BinaryIO


class Begun:
    """Called in the background process, with its sweep, when the first gang runs."""

    def __init__(self, pipe: int, messages: Path) -> None:
        self._pipe, self._messages = pipe, messages
        self._lock = threading.Lock()

    def __call__(self, sweep: Sweep) -> None:
        with self._lock:
            if self._pipe < 0:
                return
            self._messages.rename(sweep.folder / self._messages.name)
            os.dup2(2, 1)
            with suppress(BrokenPipeError):  # the command that started it did not wait
                os.write(self._pipe, sweep.id.encode())
            os.close(self._pipe)
            self._pipe = -1


def fork(state: Path) -> Child | Begun:
    """Split into two processes: the command, and one without a terminal that runs the sweep.

    Returns:
        In the command, the other process; in that one, what it calls when the first gang runs.

    Raises:
        StoreError, LocalError: there is still one process.
    """
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())

    def messages_of(pid: int) -> Path:
        return state.resolve() / f"detached-{moment}-{pid}.log"

    path = messages_of(os.getpid())
    with disk.on_disk(path, "STORE-RIGHTS", "choose another folder with --state"):
        disk.make_folder(path.parent)
        messages = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        stream = open(path, "rb")  # noqa: SIM115 - read after its name has changed
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        os.close(messages)
        return Child(pid, ours, messages_of(pid), stream)
    os.setsid()
    path = path.rename(messages_of(os.getpid()))
    stream.close()
    os.close(ours)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(messages, 2)
    return Begun(theirs, path)


def follow(child: Child, voice: Voice) -> int:
    """Copy the background process's messages until its first gang runs, then say how to find it.

    Returns:
        0 once it runs; its own exit code if it ended before that.

    Raises:
        Stopped: by a closed terminal; the background process goes on.
    """
    with child.stream:
        try:
            sweep = _sweep_id(child)
        except Stopped as stopped:
            if stopped.number == signal.SIGHUP:
                raise
            os.kill(child.pid, stopped.number)
            sweep = _sweep_id(child)
    if not sweep:
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        child.messages.unlink(missing_ok=True)
        return code if code >= 0 else 128 - code  # 128 + n for signal n
    log = child.messages.parent / "sweeps" / sweep / child.messages.name
    voice.result(f"sweep {sweep} runs in the background, pid {child.pid}; its messages: {log}")
    state = f" --state {child.messages.parent}"
    for words in (f"status {sweep}", f"logs --sweep {sweep} --follow", f"stop {sweep}"):
        voice.result(f"  dlperf-orch {words}{state}")
    return voice.finish({"sweep": sweep, "controller": child.pid, "log": str(log)})


def _sweep_id(child: Child) -> str:
    """Return the id of the sweep once a gang runs; empty if the process ended before that."""
    while True:
        ready, _, _ = select.select([child.pipe], [], [], LOOK_S)
        while piece := child.stream.read(PIECE_BYTES):
            with suppress(OSError):  # nobody looks
                os.write(2, piece)
        if ready:
            return os.read(child.pipe, PIECE_BYTES).decode()
