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


@contextmanager
def start(paths: Sequence[Path], read: Callable[[Path], T]) -> Iterator[Callable[[], list[T]]]:
    """Start processes that read files; yield a function that helps them and returns all results.

    The results are those of ``read``, in the order of the files. The share of a process that
    failed, for any reason, is read here; so errors are raised here.
    """
    count = max(1, min(len(os.sched_getaffinity(0)), len(paths) // FEW))
    own, *others = (paths[at::count] for at in range(count))
    with ExitStack() as stack:
        waits = [stack.enter_context(_fork(partial(map, read, share))) for share in others]

        def results() -> list[T]:
            found = dict(zip(own, map(read, own), strict=True))
            for share, wait in zip(others, waits, strict=True):
                found |= zip(share, wait() or map(read, share), strict=True)
            return [found[path] for path in paths]

        yield results


@contextmanager
def _fork(results: Callable[[], Iterable[T]]) -> Iterator[Callable[[], list[T]]]:
    """Start a process that makes results and nothing else; it ends with the context.

    Yields a function that waits for its end and returns the results, none if it failed.
    """
    with tempfile.TemporaryFile() as file:
        pid = os.fork()
        if not pid:
            try:
                for number in REQUESTS:
                    signal.signal(number, signal.SIG_DFL)
                pickle.dump([*results()], file)
                file.flush()
                os._exit(0)
            finally:
                os._exit(1)
        running = [pid]

        def wait() -> list[T]:
            _, status = os.waitpid(pid, 0)
            running.clear()
            file.seek(0)
            return [] if status else pickle.load(file)

        try:
            yield wait
        finally:
            if running:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
