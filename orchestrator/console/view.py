"""The live view of a sweep: what a terminal shows while it runs, plain lines elsewhere."""

import itertools
import threading
import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from orchestrator.words import duration

PLAIN_EVERY_S = 30.0


class Row:
    """One running trial of a view and its attempts; used by one thread."""

    def __init__(self, view: "View", name: str, iterations: int) -> None:
        self._view, self._name, self._of = view, name, iterations
        # Attempt, iteration and rate change as one: another thread draws them.
        self._now = ("", 0, 0.0)
        self._began = self._printed_at = time.monotonic()
        self.number = 0

    def __enter__(self) -> "Row":
        self._view.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._view.leave(self)

    @property
    def share(self) -> float:
        """Return the part of the running attempt that is done, from 0 to 1."""
        attempt, iteration, _ = self._now
        return min(iteration / self._of, 1.0) if attempt and self._of else 0.0

    def attempt(self, number: int) -> None:
        """Begin an attempt."""
        self._began = self._printed_at = time.monotonic()
        self._now = (f"{self._name} a{number}", 0, 0.0)
        self._view.begin_attempt(self, f"{self._now[0]}: started")

    def progress(self, iteration: int, rate: float) -> None:
        """Show the iteration that the attempt has reached, and its rate in samples per second."""
        self._now = (self._now[0], iteration, rate)
        if time.monotonic() - self._printed_at > PLAIN_EVERY_S:
            self._printed_at = time.monotonic()
            self._view.print_progress(self)

    def ended(self, state: str, words: str, *, final: bool) -> None:
        """End the attempt; ``final`` if its trial needs no further one."""
        took = duration(time.monotonic() - self._began)
        line = f"{self._now[0]}: {state}, {words}, took {took}"
        self._now = ("", 0, 0.0)
        self._view.end_attempt(self, line, state, final=final)

    def __str__(self) -> str:
        attempt, iteration, rate = self._now
        took = duration(time.monotonic() - self._began)
        if not attempt:
            return ""
        if not iteration:
            return f"{attempt}: starting, {took}"
        return f"{attempt}: iteration {iteration} of {self._of}, {rate:.2f} samples/s, {took}"


class View:
    """A sweep while it runs: live on a terminal, plain lines elsewhere.

    Each trial has a row while it runs, and a number of its own. Drawing takes no lock of this
    class: printing a line waits for drawing, and would wait for ever.

    Args:
        say: prints a line that stays.
        terminal: where the live view is drawn; None for plain lines.
        total: trials that were requested of this sweep.
        done: those of them that were valid already.
    """

    def __init__(
        self, say: Callable[[str], None], terminal: Console | None, name: str, total: int, done: int
    ) -> None:
        self._say, self._name, self._total, self._before = say, name, total, done
        self._lock = threading.Lock()
        self._rows: tuple[Row, ...] = ()
        self._final: frozenset[int] = frozenset()
        self._bad = self._most = 0
        self._over = False
        self._began = time.monotonic()
        # What is drawn is true only while it runs: nothing of it stays behind.
        self._live = (
            Live(self, console=terminal, refresh_per_second=4, transient=True) if terminal else None
        )

    def __enter__(self) -> "View":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        if self._live:
            self._live.stop()

    def trial(self, name: str, iterations: int) -> Row:
        """Return a row for a trial, as a context to run it in, with the iterations of its log."""
        return Row(self, name, iterations)

    def fewer(self, trials: int) -> None:
        """Subtract trials that need not be run."""
        with self._lock:
            self._total -= trials

    def enter(self, row: Row) -> None:
        """Show the row, with the first number that is free."""
        with self._lock:
            taken = self._final | {other.number for other in self._rows}
            numbers = itertools.count(self._before + 1)
            row.number = next(number for number in numbers if number not in taken)
            self._rows = (*self._rows, row)

    def leave(self, row: Row) -> None:
        """Take the row away; its number is free unless its trial is done."""
        with self._lock:
            self._rows = tuple(other for other in self._rows if other is not row)

    def begin_attempt(self, row: Row, text: str) -> None:
        with self._lock:
            self._most = max(self._most, sum(bool(str(other)) for other in self._rows))
            if not self._live:
                self._line(row, text)

    def print_progress(self, row: Row) -> None:
        """Print a plain line of how far the row's trial is, if there is no live view."""
        if not self._live:
            with self._lock:
                self._line(row, str(row))

    def end_attempt(self, row: Row, text: str, state: str, *, final: bool) -> None:
        with self._lock:
            if final:
                self._final |= {row.number}
                self._bad += state != "valid"
            left = None if state == "interrupted" else self._estimate_remaining()
            self._line(row, text + (f", about {duration(left)} left" if left else ""))

    def _line(self, row: Row, text: str) -> None:
        if not self._over:  # a lane that nobody waits for has nothing to say
            self._say(f"[{row.number}/{self._total}] {text}")

    def _estimate_remaining(self) -> float | None:
        """Estimate seconds by the trials that ended, and by running ones if several ran at once."""
        ended = len(self._final)
        if not ended or self._before + ended >= self._total:
            return None
        done = ended + (self._running() if self._most > 1 else 0.0)
        left = max(self._total - self._before - done, 0.0)
        return (time.monotonic() - self._began) / done * left

    def _running(self) -> float:
        return sum(row.share for row in self._rows)

    def __rich__(self) -> Group:
        left, finished = self._estimate_remaining(), self._before + len(self._final)
        head = (
            f"{self._name}: {finished} of {self._total} trials"
            + (f", {self._bad} not valid" if self._bad else "")
            + f", {duration(time.monotonic() - self._began)} elapsed"
            + (f", about {duration(left)} left" if left else "")
        )
        completed = min(finished + self._running(), self._total)
        bar = ProgressBar(total=self._total, completed=completed)
        running = [Text(words) for row in self._rows if (words := str(row))]
        return Group(Text(head), *(running or [Text("")]), bar)
