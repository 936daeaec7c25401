"""The rates of a log over its iterations, as a figure shows them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum

POINTS = 120
"""The most points of a trace: a figure in a page has not many more pixels for it."""
TracePoint = tuple[int, int, float, float, float]
"""First and last iteration, and of the rates between them the lowest, the mean, the highest."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The rates that a log prints over its iterations.

    Args:
        first: iteration of the first step.
        stride: iterations from one step to the next.
        steps: how many there are.
        width: steps of a value, of the last one maybe fewer.
        lows, means, highs: of the rates of so many steps; all the same where it is one.
    """

    first: int
    stride: int
    steps: int
    width: int
    lows: Sequence[float]
    means: Sequence[float]
    highs: Sequence[float]

    def reduce(self) -> "Trace":
        """Return a copy with at most ``POINTS`` values; the trace itself if it is short enough."""
        width = -(-len(self.means) // POINTS)
        if width < 2:
            return self
        starts = range(0, len(self.means), width)

        def pieces(values: Sequence[float]) -> Iterable[list[float]]:
            return ([*values[at : at + width]] for at in starts)

        return replace(
            self,
            width=self.width * width,
            lows=[*map(min, pieces(self.lows))],
            means=[fsum(piece) / len(piece) for piece in pieces(self.means)],
            highs=[*map(max, pieces(self.highs))],
        )

    @property
    def points(self) -> Iterable[TracePoint]:
        """Return the trace as at most ``POINTS`` points."""
        it = self.reduce()
        end, ahead = it.first + it.steps * it.stride, it.width * it.stride
        begins = range(it.first, end, ahead)
        lasts = (min(begin + ahead, end) - it.stride for begin in begins)
        return zip(begins, lasts, it.lows, it.means, it.highs, strict=True)
