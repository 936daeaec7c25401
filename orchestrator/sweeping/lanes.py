"""Lanes: threads that take work from one queue while the main thread waits and hears signals."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from typing import TypeVar

from orchestrator import errors
from orchestrator.fleet import Pool

T = TypeVar("T")


def run(
    items: Iterable[T],
    do: Callable[[T], None],
    *,
    lanes: int,
    may_begin: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    """Call ``do`` for every item, in that many threads; return once all threads have ended.

    After an error no item is begun, and the other lanes finish theirs. An exception from a signal
    handler is raised at once, without waiting for the lanes: they are daemon threads.

    Args:
        may_begin: called by one lane at a time before each item; once false, none begins.
        say: given a line about an error while other lanes are still at work.

    Raises:
        DlperfError: the gravest of the lanes' errors; its cause names the others.
    """
    pool, lock, closed = Pool(lanes), threading.Lock(), threading.Event()
    iterator = iter(items)

    def lane() -> None:
        try:
            while True:
                with lock:
                    may_go_on = not closed.is_set() and may_begin()
                    item = next(iterator, None) if may_go_on else None
                if item is None:
                    return
                do(item)
        finally:
            closed.set()

    failures: list[BaseException] = []
    try:
        ends = [pool.submit(lane) for _ in range(lanes)]
        for ended in futures.as_completed(ends):
            error = ended.exception()
            if error is not None:
                failures.append(error)
                if not all(end.done() for end in ends):
                    say(f"{_words(error)}; what runs is finished, nothing new is started")
    finally:
        closed.set()
        pool.close()
    if failures:
        raise _join_failures(failures)


def _join_failures(failures: Sequence[BaseException]) -> BaseException:
    """Return the gravest error, which names the others; a bug of this program counts most."""
    ours = [failure for failure in failures if isinstance(failure, errors.DlperfError)]
    faults = [failure for failure in failures if not isinstance(failure, errors.DlperfError)]
    gravest = faults[0] if faults else errors.gravest(ours)
    others = dict.fromkeys(_words(failure) for failure in failures)
    others.pop(_words(gravest))
    if others and isinstance(gravest, errors.DlperfError):
        gravest.cause += f" (also failed: {'; '.join(others)})"
    elif others:
        gravest.add_note(f"also failed: {'; '.join(others)}")
    return gravest


def _words(failure: BaseException) -> str:
    if not isinstance(failure, errors.DlperfError):
        return f"{type(failure).__name__}: {failure}"
    where = "".join(f" {key}={value}" for key, value in failure.where.items())
    return f"{failure.code}{where}: {failure.cause}"
