"""Compares the bus bandwidth of many nodes together with that of pairs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.model.report import PublishedResult, Report
from orchestrator.model.result import Result

LEAST_SHARE = 2 / 3
LEAST_OF_PUBLISHED = 0.9


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes of one trial.

    Args:
        busbw: in GB/s.
        share: of the median of pairs.
    """

    nodes: tuple[str, ...]
    busbw: float
    share: float

    @property
    def is_slow(self) -> bool:
        """True if a third is missing: bus bandwidth does not depend on the number of ranks.

        Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth".
        """
        return self.share < LEAST_SHARE


def groups(pairs: Result, together: Iterable[Result]) -> tuple[Group, ...]:
    """Return the groups of all valid trials; none if no trial of pairs is valid."""
    if pairs.statistics is None:
        return ()
    return tuple(
        Group(trial.nodes, trial.throughput, trial.throughput / pairs.statistics.median)
        for result in together
        for trial in result.valid
        if trial.throughput
    )


def smallest_slow(found: Sequence[Group]) -> Iterator[Group]:
    """Yield the slow groups that contain no smaller slow group."""
    slow = [group for group in found if group.is_slow]
    for group in slow:
        if not any({*part.nodes} < {*group.nodes} for part in slow):
            yield group


def below_published(report: Report) -> PublishedResult | None:
    """Return the lowest published bandwidth of such machines, if the result lacks a tenth of it."""
    (result,) = report.results
    known = report.published.get(result.case, ())
    lowest = min(known, key=lambda row: row.throughput, default=None)
    if lowest is None or result.statistics is None:
        return None
    return lowest if result.statistics.median < LEAST_OF_PUBLISHED * lowest.throughput else None
