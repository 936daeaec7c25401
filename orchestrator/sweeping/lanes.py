"""Lanes: threads that do work while the main thread gives it out and hears signals."""

from collections.abc import Callable, Sequence
from concurrent import futures
from functools import partial
from typing import TypeVar

from orchestrator import errors
from orchestrator.fleet import Pool

T = TypeVar("T")
R = TypeVar("R")


def run(
    give: Callable[[], T | None],
    do: Callable[[T], R],
    *,
    lanes: int,
    say: Callable[[str], None],
    may_begin: Callable[[], bool] = lambda: True,
    ended: Callable[[T, R], object] = lambda _item, _result: None,
) -> None:
    """Call ``do`` for every item, in that many threads; return once all have ended.

    After an error no item is begun, and the other lanes finish theirs. An exception from a signal
    handler is raised at once, without waiting for the lanes: they are daemon threads.

    Args:
        give: returns the next item; None if none can begin until another has ended.
        say: given a line about an error while other lanes are still at work.
        may_begin: called before each item; once false, none begins.
        ended: given an item and its result; no two at a time, and before the next item begins.

    Raises:
        DlperfError: the gravest of the lanes' errors; its cause names the others.
    """
    pool, running = Pool(lanes), dict[futures.Future[R], T]()
    failures: list[BaseException] = []
    is_open = True
    try:
        while True:
            while is_open and len(running) < lanes:
                is_open = may_begin()
                item = give() if is_open else None
                if item is None:
                    break
                running[pool.submit(partial(do, item))] = item
            if not running:
                break
            for future in futures.wait(running, return_when=futures.FIRST_COMPLETED).done:
                item, error = running.pop(future), future.exception()
                if error is None:
                    ended(item, future.result())
                    continue
                failures.append(error)
                is_open = False
                if not all(other.done() for other in running):
                    say(f"{_words(error)}; what runs is finished, nothing new is started")
    except Exception:  # of give or ended: what runs is finished all the same
        futures.wait(running)
        raise
    finally:
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
