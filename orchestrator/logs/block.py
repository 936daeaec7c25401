"""Steps that only go on as expected, taken by the block; whatever is not stays for other eyes."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.logs.format import Format, Step


@dataclass(frozen=True, slots=True)
class Block:
    """Steps that follow each other, or a single one, by column.

    Args:
        text: their lines; empty for a single one.
        lines: of the log, in which they stand.
        stamps, latencies: empty where none are printed.
        last: the last one of them.
    """

    form: Format
    text: bytes
    lines: Sequence[int]
    numbers: range
    stamps: Sequence[bytes]
    rates: Sequence[float]
    latencies: Sequence[bytes]
    last: Step

    def agrees(self, batch: int | None, tolerance: float) -> bool:
        """Whether each latency is one, and times its rate the batch that a header tells."""
        latencies_s = list(map(float, self.latencies))
        if not latencies_s:
            return True
        if not all(latencies_s) or batch is None:
            return all(latencies_s)
        samples = [rate * it for rate, it in zip(self.rates, latencies_s, strict=True)]
        return batch * (1 - tolerance) < min(samples) <= max(samples) < batch * (1 + tolerance)

    def rows(self, first: int, last: int) -> slice:
        """Which of the steps have iterations between these two."""
        begin, stride = self.numbers.start, self.numbers.step
        start, stop = -((begin - first) // stride), (last - begin) // stride + 1
        return slice(max(0, start), max(0, stop))

    def evidence(self, rows: slice) -> Sequence[bytes]:
        """What copies of these steps have in common."""
        if not self.text:
            return [self.last.evidence][rows]
        if self.last.words:
            found = (self.form.read(line, 0) for line in self.text.split(b"\n")[:-1][rows])
            return [step.evidence for step in found if step]
        numbers = self.numbers[rows]
        stamps = self.stamps[rows] or [b""] * len(numbers)
        return [b"%d %s" % place for place in zip(numbers, stamps, strict=True)]


def single(form: Format, step: Step) -> Block:
    """One step as a block; its latency was judged when it was read."""
    stamps, latencies = (tuple(filter(None, (it,))) for it in (step.stamp, step.latency))
    numbers = range(step.number, step.number + 1)
    return Block(form, b"", (step.line,), numbers, stamps, [step.rate], latencies, step)
