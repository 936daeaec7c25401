"""The noise bound of a case: given, learnt from its earlier sweeps, or usual."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from orchestrator import words
from orchestrator.comparing.sides import Side, SideCase

USUAL = 0.01
FLOOR = 0.002  # as rustc-perf uses without history
SAME = ("image", "tasks")  # keys of the provenance; drivers and kernels may change
ENOUGH = 3  # sweeps; the single difference of two is chance
RECENT = 20  # sweeps; machines change
QUANTILE = 0.95


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest difference that counts as noise.

    Args:
        share: such as 0.01.
        sweeps: those from whose medians it was learnt.
    """

    share: float
    how: Literal["given", "learnt", "usual"]
    sweeps: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Return the bound and its origin in words."""
        origins = {
            "given": "given",
            "usual": "usual, for want of history",
            "learnt": f"learnt from {words.count(len(self.sweeps), 'earlier sweep')}",
        }
        return f"{self.share:.2%} ({origins[self.how]})"


def learn_bound(case: SideCase, earlier: Iterable[Side]) -> Bound:
    """Return the 95 % quantile of the differences between two earlier medians of a case.

    With too few medians it is ``USUAL``; with three, the largest difference. It does not grow with
    the length of the history.

    Args:
        earlier: sweeps, the newest first; those count that measured the same case with equal
            command lines on an equal image and the same nodes, at least twice.
    """
    found = (
        (side.origin, other.median)
        for side in earlier
        for other in side.cases
        if len(other.values) > 1 and other.median and other.case == case.case
        if other.nodes == case.nodes
        if all(case.provenance.get(name) == other.provenance.get(name) for name in SAME)
    )
    recent = dict(itertools.islice(found, RECENT))
    if len(recent) < ENOUGH:
        return Bound(USUAL, "usual")
    pairs = itertools.combinations(recent.values(), 2)
    apart = sorted(max(pair) / min(pair) - 1 for pair in pairs)
    share = apart[math.ceil(QUANTILE * len(apart)) - 1]
    return Bound(max(share, FLOOR), "learnt", tuple(recent))
