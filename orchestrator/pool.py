"""Threads that hold up no exit: what they wait for may never come."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Pool:
    """At most so many threads, begun as they are needed, given up when the program ends.

    ``ThreadPoolExecutor`` waits for its threads when the interpreter exits, and so would a
    command that was stopped wait for a node that does not answer.
    """

    def __init__(self, most: int) -> None:
        self._most = max(most, 1)
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._begun = 0

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Run ``work`` in a thread; the future holds its result or the exception it raised."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(error)

        if not self._idle.acquire(blocking=False) and self._begun < self._most:
            self._begun += 1
            threading.Thread(target=self._serve, daemon=True).start()
        self._jobs.put(job)
        return future

    def close(self) -> None:
        """Take no more work; each thread ends after the work it is at. Does not wait."""
        for _ in range(self._begun):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            self._idle.release()
