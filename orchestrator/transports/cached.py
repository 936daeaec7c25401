"""A value that threads share: made by the first that needs it, while the others wait.

Python 3.11's ``cached_property`` has one lock for all objects, so a silent node would block all
others; that of later versions has no lock.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """Holds what ``make`` returns for as long as ``good`` says so, and gives it to ``end`` after.

    A failure is raised to all threads that waited: ten calls to a dead machine take as long
    as one.
    """

    def __init__(
        self,
        make: Callable[[], T],
        good: Callable[[T], bool] = lambda _: True,
        end: Callable[[T], None] = lambda _: None,
    ) -> None:
        self._make, self._good, self._end = make, good, end
        self._lock = threading.Lock()
        self._future: Future[T] | None = None

    def get(self) -> T:
        """Return the value, made now if there is none; raise what making it raised."""
        with self._lock:
            before, future = self._future, Future[T]()
            if before and (not before.done() or self._holds(before)):
                future = before
            self._future = future
        if future is not before:
            self._finish(before)
            try:
                future.set_result(self._make())
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result()

    def drop(self) -> None:
        """End the value, if there is one; the next ``get`` makes another."""
        with self._lock:
            before, self._future = self._future, None
        self._finish(before)

    def _finish(self, future: "Future[T] | None") -> None:
        def end(made: "Future[T]") -> None:
            if made.exception() is None:
                self._end(made.result())

        if future:  # what is still being made ends as soon as it is there
            future.add_done_callback(end)

    def _holds(self, future: "Future[T]") -> bool:
        return future.exception() is None and self._good(future.result())
