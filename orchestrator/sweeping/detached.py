"""sweep --detach: a sweep that goes on without a terminal once it is seen to be under way."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from orchestrator import disk
from orchestrator.console import Voice
from orchestrator.signals import Stopped
from orchestrator.state.sweep import Sweep

LOOK_S = 0.1
PIECE_BYTES = 64 << 10


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


def fork(state: Path) -> Begun | Callable[[Voice], int]:
    """Split into two processes: the command, and one without a terminal that runs the sweep.

    Return in that one what it calls when the first gang runs; in the command, a function that
    follows it until then, and returns the exit code.

    Raises:
        StoreError, LocalError: there is still one process.
    """
    named = f"detached-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{{}}.log"
    path = state.resolve() / named.format(os.getpid())
    with disk.on_disk(path, "STORE-RIGHTS", "choose another folder with --state"):
        disk.make_folder(path.parent)
        messages = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        stream = open(path, "rb")  # noqa: SIM115 - read after its name has changed
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        os.close(messages)
        return partial(_follow, pid, ours, path.with_name(named.format(pid)), stream)
    os.setsid()
    path = path.rename(path.with_name(named.format(os.getpid())))
    stream.close()
    os.close(ours)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(messages, 2)
    return Begun(theirs, path)


def _follow(pid: int, pipe: int, messages: Path, stream: BinaryIO, voice: Voice) -> int:
    """Follow the background process, which goes on after Stopped by a closed terminal."""
    with stream:
        try:
            sweep = _copy_messages(pipe, stream)
        except Stopped as stopped:
            if stopped.number == signal.SIGHUP:
                raise
            os.kill(pid, stopped.number)
            sweep = _copy_messages(pipe, stream)
    if not sweep:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        messages.unlink(missing_ok=True)
        return code if code >= 0 else 128 - code  # 128 + n for signal n
    log = messages.parent / "sweeps" / sweep / messages.name
    voice.result(f"sweep {sweep} runs in the background, pid {pid}; its messages: {log}")
    for words in (f"status {sweep}", f"logs --sweep {sweep} --follow", f"stop {sweep}"):
        voice.result(f"  dlperf-orch {words} --state {messages.parent}")
    return voice.finish({"sweep": sweep, "controller": pid, "log": str(log)})


def _copy_messages(pipe: int, stream: BinaryIO) -> str:
    """Return the id of the sweep once a gang runs; empty if the process ended before that."""
    while True:
        ready, _, _ = select.select([pipe], [], [], LOOK_S)
        while piece := stream.read(PIECE_BYTES):
            with suppress(OSError):  # nobody looks
                os.write(2, piece)
        if ready:
            return os.read(pipe, PIECE_BYTES).decode()
