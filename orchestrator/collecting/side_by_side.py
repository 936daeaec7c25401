"""Many files read side by side, by a process per core."""

import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

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
    size = -(-len(paths) // PORTIONS) or 1
    portions = [paths[at : at + size] for at in range(0, len(paths), size)]
    numbers, end = os.pipe()
    os.write(end, bytes(range(len(portions))))
    os.close(end)

    def read_portions() -> Iterator[tuple[int, list[T]]]:
        """Read portions that no other process has taken, until none is left."""
        while number := os.read(numbers, 1):
            yield number[0], [read(path) for path in portions[number[0]]]

    others = min(len(os.sched_getaffinity(0)), len(paths) // FEW) - 1
    with ExitStack() as stack:
        stack.callback(os.close, numbers)
        processes = [stack.enter_context(_fork(read_portions)) for _ in range(others)]

        def results() -> list[T]:
            found = dict(read_portions())
            for wait in processes:
                found.update(wait())
            return [
                result
                for number, portion in enumerate(portions)
                for result in found.get(number) or map(read, portion)
            ]

        yield results


@contextmanager
def _fork(results: Callable[[], Iterable[T]]) -> Iterator[Callable[[], Iterable[T]]]:
    """Start a process that makes results and nothing else; it ends with the context.

    Yields a function that waits for its end and returns the results, none if it failed.
    """
    with tempfile.TemporaryFile() as file:
        pid = os.fork()
        if not pid:
            try:
                for number in REQUESTS:
                    signal.signal(number, signal.SIG_DFL)
                for result in results():
                    pickle.dump(result, file)
                pickle.dump(None, file)
                file.flush()
                os._exit(0)
            finally:
                os._exit(1)
        running = [pid]

        def wait() -> Iterable[T]:
            _, status = os.waitpid(pid, 0)
            running.clear()
            file.seek(0)
            return () if status else iter(partial(pickle.load, file), None)

        try:
            yield wait
        finally:
            if running:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
