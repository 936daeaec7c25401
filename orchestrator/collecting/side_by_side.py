"""Many files read side by side, by a process per core."""

import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from orchestrator.signals import REQUESTS

T = TypeVar("T")

FEW = 50
"""Files; a process for fewer costs more than it saves."""


def read_all(paths: Sequence[Path], read: Callable[[Path], T]) -> list[T]:
    """What ``read`` makes of files, in their order.

    What a process of its own could not finish, whyever, is read here; so errors are raised here.
    """
    count = min(len(os.sched_getaffinity(0)), len(paths) // FEW)
    if count < 2:
        return [read(path) for path in paths]
    with ExitStack() as stack:
        shares = [stack.enter_context(_Share(paths[at::count], read)) for at in range(1, count)]
        results = [[read(path) for path in paths[::count]], *(share.results() for share in shares)]
    return [results[at % count][at // count] for at in range(len(paths))]


class _Share(Generic[T]):
    """Files that a process of their own reads; it ends with the context."""

    def __init__(self, paths: Sequence[Path], read: Callable[[Path], T]) -> None:
        self._paths = paths
        self._read = read
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the context
        self._pid = 0

    def __enter__(self) -> "_Share[T]":
        self._pid = os.fork()
        if not self._pid:
            self._work()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._file.close()

    def _work(self) -> NoReturn:
        """Read them all in the new process, which leaves nothing but their results."""
        try:
            for number in REQUESTS:
                signal.signal(number, signal.SIG_DFL)
            pickle.dump([self._read(path) for path in self._paths], self._file)
            self._file.flush()
            os._exit(0)
        finally:
            os._exit(1)

    def results(self) -> list[T]:
        """Of the process, once it has ended; of its files, if it failed."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        if status:
            return [self._read(path) for path in self._paths]
        self._file.seek(0)
        found: list[T] = pickle.load(self._file)
        return found
