"""Many files read side by side, by a process per core."""

import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from orchestrator.signals import REQUESTS

T = TypeVar("T")

FEW = 50
"""Files; a process for fewer costs more than it saves."""
PORTIONS = 256
"""At most: the number of each is a byte."""


@contextmanager
def start(paths: Sequence[Path], read: Callable[[Path], T]) -> Iterator[Callable[[], list[T]]]:
    """Start processes that read files; yield a function that helps them and returns all results.

    The results are those of ``read``, in the order of the files. Files that another process did
    not finish, for any reason, are read here; so errors are raised here.
    """
    portions = _Portions(paths, read)
    others = min(len(os.sched_getaffinity(0)), len(paths) // FEW) - 1
    with ExitStack() as stack:
        stack.callback(portions.close)
        processes = [stack.enter_context(_Process(portions)) for _ in range(others)]

        def results() -> list[T]:
            found = dict(portions)
            for process in processes:
                found.update(process.results())
            return [
                result
                for number in range(portions.count)
                for result in found.get(number) or portions.read(number)
            ]

        yield results


class _Portions(Generic[T]):
    """Files by portions; whoever goes through them is given those that nobody else has taken."""

    def __init__(self, paths: Sequence[Path], read: Callable[[Path], T]) -> None:
        self._paths = paths
        self._read = read
        self._size = -(-len(paths) // PORTIONS) or 1
        self.count = -(-len(paths) // self._size)
        self._numbers, numbers = os.pipe()
        os.write(numbers, bytes(range(self.count)))
        os.close(numbers)

    def __iter__(self) -> Iterator[tuple[int, list[T]]]:
        while number := os.read(self._numbers, 1):
            yield number[0], self.read(number[0])

    def read(self, number: int) -> list[T]:
        start = number * self._size
        return [self._read(path) for path in self._paths[start : start + self._size]]

    def close(self) -> None:
        os.close(self._numbers)


class _Process(Generic[T]):
    """A process of its own that reads portions; it ends with the context."""

    def __init__(self, portions: _Portions[T]) -> None:
        self._portions = portions
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the context
        self._pid = 0

    def __enter__(self) -> "_Process[T]":
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
        """Read in the new process, which leaves nothing but its results."""
        try:
            for number in REQUESTS:
                signal.signal(number, signal.SIG_DFL)
            for portion in self._portions:
                pickle.dump(portion, self._file)
            pickle.dump(None, self._file)
            self._file.flush()
            os._exit(0)
        finally:
            os._exit(1)

    def results(self) -> Iterable[tuple[int, list[T]]]:
        """By the numbers of portions, once the process has ended; none if it failed."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        self._file.seek(0)
        return () if status else iter(partial(pickle.load, self._file), None)
