"""The live view of a sweep: what a terminal shows while it runs, plain lines elsewhere."""

import threading
import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from orchestrator.words import duration

PLAIN_EVERY_S = 30.0
_IDLE = ("", 0, 0.0)


class Row:
    """One trial of a view and its attempts; used by one thread."""

    def __init__(self, view: "View", name: str, iterations: int, number: int) -> None:
        self.view, self.name, self._of, self.number = view, name, iterations, number
        # Attempt, iteration and rate change as one: another thread draws them.
        self._now = _IDLE
        self._began = self._printed_at = time.monotonic()

    def __enter__(self) -> "Row":
        return self

    def __exit__(self, *_: object) -> None:
        self._now = _IDLE

    @property
    def share(self) -> float:
        """Return the part of the running attempt that is done, from 0 to 1."""
        return min(self._now[1] / max(self._of, 1), 1.0)

    def attempt(self, number: int) -> None:
        self._began = self._printed_at = time.monotonic()
        self._now = (f"{self.name} a{number}", 0, 0.0)
        self.view.print(self, f"{self._now[0]}: started")

    def progress(self, iteration: int, rate: float) -> None:
        """Show the iteration that the attempt has reached, and its rate in samples per second."""
        self._now = (self._now[0], iteration, rate)
        if time.monotonic() - self._printed_at > PLAIN_EVERY_S:
            self._printed_at = time.monotonic()
            self.view.print(self, str(self))

    def ended(self, state: str, words: str, *, final: bool) -> None:
        """End the attempt; ``final`` if its trial needs no further one."""
        took = duration(time.monotonic() - self._began)
        line = f"{self._now[0]}: {state}, {words}, took {took}"
        self._now = _IDLE
        self.view.print(self, line, state, final=final)

    def __str__(self) -> str:
        attempt, iteration, rate = self._now
        took = duration(time.monotonic() - self._began)
        if not attempt:
            return ""
        if not iteration:
            return f"{attempt}: starting, {took}"
        return f"{attempt}: iteration {iteration} of {self._of}, {rate:.2f} samples/s, {took}"


class View:
    """A sweep while it runs: live on a ``terminal``, else plain lines by ``say``.

    Of ``total`` requested trials ``done`` were valid before. Drawing takes no lock of this class:
    printing a line waits for drawing, and would wait for ever.
    """

    def __init__(
        self, say: Callable[[str], None], terminal: Console | None, name: str, total: int, done: int
    ) -> None:
        self._say, self._name, self._total, self._before = say, name, total, done
        self._lock = threading.Lock()
        self._rows: dict[str, Row] = {}  # by trial, numbered in the order in which they began
        self._ended = self._bad = 0
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

    def trial(self, name: str, iterations: int, sweep: str = "") -> Row:
        """Return a row for a trial, as a context; trials of several sweeps may share names."""
        key = f"{sweep}/{name}"
        with self._lock:
            before = self._rows.get(key)
            number = before.number if before else self._before + len(self._rows) + 1
            row = Row(self, name, iterations, number)
            self._rows = {**self._rows, key: row}  # anew: another thread draws the old one
        return row

    def fewer(self, trials: int) -> None:
        with self._lock:
            self._total -= trials

    def print(self, row: Row, text: str, state: str = "", *, final: bool = False) -> None:
        """Print a line about a trial; one without a state only where there is no live view."""
        if self._over or (self._live and not state):
            return  # a lane that nobody waits for has nothing to say
        with self._lock:
            if final:
                self._ended += 1
                self._bad += state != "valid"
            left = self._estimate_remaining() if state not in ("", "interrupted") else None
            more = f", about {duration(left)} left" if left else ""
            self._say(f"[{row.number}/{self._total}] {text}{more}")

    def _estimate_remaining(self) -> float | None:
        """Estimate seconds by the trials that ended, and by the parts that running ones did."""
        if not self._ended or self._before + self._ended >= self._total:
            return None
        done = self._ended + sum(row.share for row in self._rows.values())
        left = max(self._total - self._before - done, 0.0)
        return (time.monotonic() - self._began) / done * left

    def __rich__(self) -> Text:
        left = self._estimate_remaining()
        head = (
            f"{self._name}: {self._before + self._ended} of {self._total} trials"
            + (f", {self._bad} not valid" if self._bad else "")
            + f", {duration(time.monotonic() - self._began)} elapsed"
            + (f", about {duration(left)} left" if left else "")
        )
        return Text("\n".join((head, *filter(None, map(str, self._rows.values())))))
