"""The live view of a sweep: what a terminal shows while it runs, plain lines elsewhere."""

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

PLAIN_EVERY_S = 30.0


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, as short as they can be said."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class View:
    """A sweep while it runs: live on a terminal, plain lines elsewhere.

    Args:
        say: prints a line that stays.
        terminal: where the live view is drawn; None for plain lines.
        total: trials that this sweep has been asked for.
        done: those of them that needed no run.
    """

    def __init__(
        self, say: Callable[[str], None], terminal: Console | None, name: str, total: int, done: int
    ) -> None:
        self._say, self._name, self._total = say, name, total
        self._before = self._done = done
        self._bad = 0
        self._trial, self._of = "", 0
        self._iteration, self._rate = 0, 0.0
        self._began = self._trial_began = self._said = time.monotonic()
        # What is drawn is true only while it runs: nothing of it stays behind.
        self._live = (
            Live(self, console=terminal, refresh_per_second=4, transient=True) if terminal else None
        )

    def __enter__(self) -> "View":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def trial(self, name: str, attempt: int, iterations: int) -> None:
        """A trial's attempt starts."""
        self._trial, self._of = f"{name} a{attempt}", iterations
        self._iteration, self._rate = 0, 0.0
        self._trial_began = self._said = time.monotonic()
        if not self._live:
            self._say(f"[{self._done + 1}/{self._total}] {self._trial}: started")

    def progress(self, iteration: int, rate: float) -> None:
        """The running trial has come to an iteration, at a rate in samples per second."""
        self._iteration, self._rate = iteration, rate
        if not self._live and time.monotonic() - self._said > PLAIN_EVERY_S:
            self._said = time.monotonic()
            self._say(f"[{self._done + 1}/{self._total}] {self._trial}: {self._progress()}")

    def ended(self, state: str, words: str, *, final: bool) -> None:
        """The running attempt ended; ``final`` if its trial needs no further one."""
        took = duration(time.monotonic() - self._trial_began)
        number = self._done + 1
        self._done += final
        self._bad += final and state != "valid"
        left = self._left()
        line = f"[{number}/{self._total}] {self._trial}: {state}, {words}, took {took}"
        self._say(line + (f", about {duration(left)} left" if left else ""))
        self._trial = ""

    def _progress(self) -> str:
        took = duration(time.monotonic() - self._trial_began)
        if not self._iteration:
            return f"starting, {took}"
        return f"iteration {self._iteration} of {self._of}, {self._rate:.2f} samples/s, {took}"

    def _left(self) -> float | None:
        done = self._done - self._before
        if not done or self._done >= self._total:
            return None
        return (time.monotonic() - self._began) / done * (self._total - self._done)

    def __rich__(self) -> Group:
        """What the terminal shows now."""
        left = self._left()
        head = (
            f"{self._name}: {self._done} of {self._total} trials"
            + (f", {self._bad} not valid" if self._bad else "")
            + f", {duration(time.monotonic() - self._began)} elapsed"
            + (f", about {duration(left)} left" if left else "")
        )
        share = self._iteration / self._of if self._of else 0.0
        bar = ProgressBar(total=self._total, completed=min(self._done + share, self._total))
        now = f"{self._trial}: {self._progress()}" if self._trial else ""
        return Group(Text(head), Text(now), bar)
