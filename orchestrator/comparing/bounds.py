"""The noise bound of a case: given, learnt from earlier sweeps of it, or usual."""

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
    """How far apart any two earlier medians of a case were; ``USUAL`` where there are too few.

    Args:
        earlier: sweeps; those count that measured the same case with equal command lines on an
            equal image and the same nodes, at least twice.
    """
    medians = [(side.origin, median) for side in earlier for median in _medians(case, side)]
    if len(medians) < ENOUGH:
        return Bound(USUAL, "usual")
    ordered = sorted(median for _, median in medians)
    apart = ordered[-1] / ordered[0] - 1
    return Bound(max(apart, FLOOR), "learnt", tuple(sweep for sweep, _ in medians))


def _medians(case: SideCase, side: Side) -> Iterable[float]:
    for other in side.cases:
        if len(other.values) > 1 and _alike(case, other):
            yield statistics.median(other.values)


def _alike(case: SideCase, other: SideCase) -> bool:
    same = all(case.provenance.get(name) == other.provenance.get(name) for name in SAME)
    return same and other.case == case.case and other.nodes == case.nodes
