"""One run of OneFlow's GPT: what its arguments, its table and nvidia-smi say."""

from math import isfinite

from orchestrator.workloads import _gpt_arguments
from orchestrator.workloads._arguments import Arguments
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._gpt_arguments import Vocabulary
from orchestrator.workloads._gpt_table import ROWS, Row, Span, Table
from orchestrator.workloads._order import Order, Place, Promise

_TOLERANCE = 0.03
"""Between a row's rate x latency and the global batch size; both are rounded to 5 decimals."""


class Run:
    """What one run says, and what is wrong with it."""

    def __init__(self, window: tuple[int, int] | None, notes: Notes) -> None:
        self._window = window
        self._notes = notes
        self._damage = ("", 0)
        self._damaged_at = 0
        self._table = Table(window)
        self.header = Arguments(_gpt_arguments.TABLE, notes)
        self.padded: Vocabulary | None = None
        self.order = Order(1, notes)
        self.memory_mib: int | None = None

    @property
    def has_begun(self) -> bool:
        return bool(self.order.steps or self.header.keys)

    @property
    def _interval(self) -> int | None:
        return self.header.number("log_interval")

    def add(self, row: Row) -> None:
        """Take the next row."""
        before = self.order.last.number if self.order.last else 0
        self.order.add(Place(0, row.number), row.rate, row.line)
        self._check(row)
        self._table.add(row)
        if self._window:
            first, last = self._window
            self._blame(inside=before < last and first < row.number)

    def _check(self, row: Row) -> None:
        """Note a row whose numbers cannot be, or contradict the arguments."""
        where = f"line {row.line}: step {row.number}"
        if row.is_lost:
            self._notes.add("LOSS-NOT-FINITE", f"{where}: the loss is not finite")
        if row.latency_s.is_nan():
            seen = f"{where}: the latency is not a positive number"
            self._notes.add("NOT-FINITE", seen, sort="latency")
            return
        samples, batch = row.rate * float(row.latency_s), _gpt_arguments.batch(self.header)
        if batch and isfinite(samples) and abs(samples / batch - 1) > _TOLERANCE:
            seen = f"{where}: {row.rate:g} samples/s x {row.latency_s} s are {samples:.1f} samples"
            self._notes.add("RATE-MISMATCH", f"{seen}; the header says {batch}", sort="row")

    def repeat(self, row: Row) -> None:
        """Take the last row again."""
        self._notes.add("DUP-STEPS", f"line {row.line}: step {row.number} is there again")
        self._table.repeat(row)

    def damage(self, seen: str) -> None:
        """Remember a broken row until it is known whether the window misses it."""
        first, times = self._damage
        self._damage, self._damaged_at = (first or seen, times + 1), self.order.steps

    def _blame(self, *, inside: bool) -> None:
        """Note the rows that were broken."""
        (seen, times), self._damage = self._damage, ("", 0)
        if times:
            code = "MALFORMED" if inside else "MALFORMED-OUTSIDE"
            where = "inside the window" if inside else "outside the window"
            self._notes.add(code, f"{seen}, {where}", sort="row", times=times)

    def close(self) -> None:
        """Note what only the whole run shows."""
        steps, last = self.order.steps, self.order.last
        if self._window:
            self._blame(inside=not last or last.number < self._window[1])
        else:
            self._blame(inside=steps - self._damaged_at < ROWS)
        iterations = self.header.number("iterations")
        self.order.judge(Promise(self._interval, iterations, iterations, 1))
        _gpt_arguments.judge(self.header, self.padded, self._notes)

    def span(self) -> Span | None:
        """The rows to measure; None, with a note of what is missing, if they are not all there."""
        stride = self.order.stride(self._interval)
        span = self._table.span(stride)
        if span is None and self.order.steps:
            self._notes.add("WINDOW", self._lack(stride))
        return span

    def _lack(self, stride: int) -> str:
        rows = f"{self.order.steps} rows, {self.order.extent}"
        if self._window is None:
            return f"the table has {rows}; needed its last {ROWS}, one every {stride} steps"
        begin, end = self._window
        needed = f"needed one every {stride} steps, up to {end}"
        return f"the window {begin}-{end}: the table has {rows}; {needed}"
