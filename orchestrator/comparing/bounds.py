"""The noise bound of a case: given, learnt from earlier sweeps of it, or usual."""

import itertools
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from orchestrator import words
from orchestrator.comparing.sides import Side, SideCase

USUAL = 0.01
FLOOR = 0.002  # what rustc-perf takes where it has no history
SAME = ("image", "tasks")  # of the provenance; drivers and kernels change under way
ENOUGH = 3  # sweeps: two have one difference, which is chance
RECENT = 20  # sweeps; older ones say less of today's machines
QUANTILE = 0.95


@dataclass(frozen=True, slots=True)
class Bound:
    """Up to which difference two results of a case count as the same.

    Args:
        share: such as 0.01.
        sweeps: from whose medians it was learnt.
    """

    share: float
    how: Literal["given", "learnt", "usual"]
    sweeps: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The bound and where it comes from."""
        origin = {
            "given": "given",
            "usual": "usual, for want of history",
            "learnt": f"learnt from {words.count(len(self.sweeps), 'earlier sweep')}",
        }
        return f"{self.share:.2%} ({origin[self.how]})"


def learnt(case: SideCase, earlier: Iterable[Side]) -> Bound:
    """Return what 95 % of the differences between two earlier medians of a case stay within.

    ``USUAL`` where there are too few medians. Of three medians it is the largest difference; it
    does not grow with the length of the history.

    Args:
        earlier: sweeps, the newest first; those count that measured the same case with equal
            command lines on an equal image and the same nodes, at least twice.
    """
    found = ((side.origin, median) for side in earlier for median in _medians(case, side))
    medians = list(itertools.islice(found, RECENT))
    if len(medians) < ENOUGH:
        return Bound(USUAL, "usual")
    pairs = itertools.combinations((median for _, median in medians), 2)
    apart = sorted(max(pair) / min(pair) - 1 for pair in pairs)
    share = apart[math.ceil(QUANTILE * len(apart)) - 1]
    return Bound(max(share, FLOOR), "learnt", tuple(sweep for sweep, _ in medians))


def _medians(case: SideCase, side: Side) -> Iterable[float]:
    for other in side.cases:
        if len(other.values) > 1 and _alike(case, other):
            yield statistics.median(other.values)


def _alike(case: SideCase, other: SideCase) -> bool:
    same = all(case.provenance.get(name) == other.provenance.get(name) for name in SAME)
    return same and other.case == case.case and other.nodes == case.nodes
