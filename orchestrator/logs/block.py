"""Steps that only go on as expected, taken by the block; whatever is not stays for other eyes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from orchestrator.logs.format import Format, Step


class Course(NamedTuple):
    """How a run is expected to go on.

    Args:
        stride: iterations from one step to the next.
    """

    last: Step
    stride: int

    def numbers(self, count: int) -> range:
        """Of the next steps, so many."""
        begin = self.last.number + self.stride
        return range(begin, begin + count * self.stride, self.stride)


@dataclass(frozen=True, slots=True)
class Block:
    """Steps that follow each other, or a single one.

    Args:
        text: their lines; empty for a single one.
        lines: of the log, in which they stand.
        stamps, latencies_s: empty where none are printed.
        last: the last one of them.
    """

    form: Format
    text: bytes
    lines: Sequence[int]
    numbers: range
    stamps: Sequence[bytes]
    rates: list[float]
    latencies_s: Sequence[float]
    last: Step

    def goes_on(self, before: Step) -> bool:
        """Whether the writer of another step went on with these, in the order of time."""
        last, stamps = self.last, self.stamps
        if sorted(stamps) != list(stamps):  # of one form, they sort by their bytes
            return False
        if self.form.goes_back(stamps[0] if stamps else b"", before.stamp):
            return False
        writer = (before.rank, before.series, before.epoch)
        if (last.rank, last.series, last.epoch) != writer:
            return False
        return min(self.rates) > 0

    def agrees(self, batch: int | None, tolerance: float) -> bool:
        """Whether each latency is one, and times its rate the batch that a header tells."""
        if not self.latencies_s:
            return True
        if not all(self.latencies_s) or batch is None:
            return all(self.latencies_s)
        samples = [rate * it for rate, it in zip(self.rates, self.latencies_s, strict=True)]
        return batch * (1 - tolerance) < min(samples) <= max(samples) < batch * (1 + tolerance)

    def rows(self, first: int, last: int) -> slice:
        """Which of the steps have iterations between these two."""
        begin, stride = self.numbers.start, self.numbers.step
        start, stop = -((begin - first) // stride), (last - begin) // stride + 1
        return slice(max(0, start), max(0, stop))

    def steps(self, rows: slice) -> Iterator[Step]:
        """Some of its steps."""
        if not self.text:
            yield from [self.last][rows]
            return
        if self.last.words:
            texts = self.text.split(b"\n")[:-1]
            found = map(self.form.read, texts[rows], self.lines[rows])
            yield from filter(None, found)
            return
        rank, series, _, epoch, *_ = self.last
        numbers = self.numbers[rows]
        stamps = self.stamps[rows] or [b""] * len(numbers)
        values = zip(stamps, numbers, self.rates[rows], self.lines[rows], strict=True)
        for stamp, number, rate, line in values:
            yield Step(rank, series, stamp, epoch, number, rate, b"", b"", line)

    def evidence(self, rows: slice) -> bytes:
        """What copies of these steps have in common."""
        if self.last.words or not self.stamps:
            return b"".join([step.evidence + b"\n" for step in self.steps(rows)])
        places = zip(self.numbers[rows], self.stamps[rows], strict=True)
        return b"".join([b"%d %s\n" % place for place in places])


def single(form: Format, step: Step) -> Block:
    """One step as a block; its latency was judged when it was read."""
    stamps = (step.stamp,) if step.stamp else ()
    numbers = range(step.number, step.number + 1)
    return Block(form, b"", (step.line,), numbers, stamps, [step.rate], (), step)


@lru_cache(maxsize=16)
def printed(numbers: range) -> bytes:
    """Numbers as they are expected: to print them takes less time than to read what is there."""
    return (b"%d " * len(numbers) % tuple(numbers))[:-1]
