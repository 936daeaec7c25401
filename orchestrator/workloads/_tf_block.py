"""Steps that only go on as expected, read by the block instead of line by line.

A log may have millions of them. Whatever is out of the ordinary is left to the reader of lines.
"""

import re
from collections.abc import Sequence
from operator import le
from typing import NamedTuple

from orchestrator.workloads._dll_line import Step

LEAST, MOST = 16, 64
"""Lines of a block; with few at most, one step out of order has few others read twice."""

_ROW = (
    rb"(?:(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    rb"\[\d{1,9},(%s\d{1,9})\]<stdout>:)?"
    rb"DLL (%s\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}) - \(\d{1,9}, (%s\d{1,15})\)"
    rb" (%simgs_per_sec|total_ips) : (%s\d{1,15}\.\d{1,17})"
    rb"(?:  [a-z]\w{0,40} : \d{1,15}(?:\.\d{1,17})?(?:e-\d\d)?)* ?\n"
)
_FIELDS = re.compile(_ROW % ((b"",) * 5))
_ROWS = re.compile(rb"(?:%s){%d,%d}" % (_ROW % ((b"?:",) * 5), LEAST, MOST))


class Block(NamedTuple):
    """Steps that follow each other and the step before them.

    Args:
        end: where they end in the text.
    """

    rank: bytes
    numbers: range
    stamps: Sequence[bytes]
    rates: Sequence[float]
    end: int

    def step(self, row: int, line: int) -> Step:
        """One of its steps, the first of which is in ``line``."""
        number, stamp, rate = self.numbers[row], self.stamps[row], self.rates[row]
        return Step(self.rank, stamp, 0, number, rate, line + row)


def read(text: bytes, at: int, last: Step, metric: str, stride: int) -> Block | None:
    """The steps from ``at`` on as a block; None where the next lines must be read one by one.

    Args:
        metric: what the run calls its rates.
        stride: iterations from one line to the next.
    """
    whole = _ROWS.match(text, at)
    if not whole:
        return None
    fields = _FIELDS.findall(text, at, whole.end())
    ranks, stamps, said, metrics, printed = zip(*fields, strict=True)
    numbers = range(last.number + stride, last.number + stride * (len(said) + 1), stride)
    alike = set(ranks) == {last.rank} and set(metrics) == {metric.encode()}
    rates = list(map(float, printed))
    if not alike or tuple(map(int, said)) != tuple(numbers) or not all(rates):
        return None
    if not all(map(le, (last.stamp, *stamps), stamps)):  # as bytes they sort like the clock
        return None
    return Block(last.rank, numbers, stamps, rates, whole.end())
