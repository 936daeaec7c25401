"""Compares the speeds of nodes: alone, in pairs, and in larger groups beside pairs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_high

from orchestrator import words
from orchestrator.model.problem import Problem
from orchestrator.model.report import PublishedResult, Report
from orchestrator.model.result import NodeSpeed, Result

LEAST_GAP = 0.01  # a smaller share is not reported
SCATTER = 2 * 1.4826  # two standard deviations, by the median absolute deviation
LEAST_SHARE = 2 / 3
LEAST_OF_PUBLISHED = 0.9

Ratio = tuple[tuple[str, ...], float]
"""The nodes of a trial, and its throughput over the median of its case's gangs."""


def compare_nodes(results: Sequence[Result]) -> tuple[NodeSpeed, ...]:
    """Return the speeds of nodes from one-node cases, or from two-node cases if there are none.

    A trial's ratio is its throughput over the median of its case's gangs, each gang by its own
    median. A node's speed is the median of its ratios; in pairs, where the slower node sets the
    pace, their maximum. A node of at least two trials is slow if even its best trial is slower than
    the median node by more than 1 % and by more than trials scatter.
    """
    alone = [ratio for result in results for ratio in _ratios(result, 1)]
    ratios = alone or [ratio for result in results for ratio in _ratios(result, 2)]
    while not alone:  # drop nodes with a single partner, which cannot be ranked
        partners: dict[str, set[str]] = defaultdict(set)
        for nodes, _ in ratios:
            for node in nodes:
                partners[node].update(nodes)
        kept = [pair for pair in ratios if all(len(partners[node]) > 2 for node in pair[0])]
        if len(kept) == len(ratios):
            break
        ratios = kept
    if not ratios:
        return ()
    by_node: dict[str, list[float]] = defaultdict(list)
    for nodes, ratio in ratios:
        for node in nodes:
            by_node[node].append(ratio)
    speeds = {node: median(own) if alone else max(own) for node, own in by_node.items()}
    middle = median_high(speeds.values())
    apart = median(abs(ratio / min(speeds[node] for node in nodes) - 1) for nodes, ratio in ratios)
    least = middle * (1 - max(LEAST_GAP, SCATTER * apart))
    return tuple(
        NodeSpeed(node, len(own), speeds[node] / middle, len(own) > 1 and max(own) < least)
        for node, own in sorted(by_node.items())
    )


def _ratios(result: Result, size: int) -> list[Ratio]:
    """Return the ratios of valid trials on ``size`` nodes; none if all ran on the same nodes."""
    by_gang: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for trial in result.valid:
        if trial.throughput and len(trial.nodes) == size:
            by_gang[trial.nodes].append(trial.throughput)
    if len(by_gang) < 2:
        return []
    # Each gang counts once, because a slow node may have run most trials.
    middle = median_high(median(own) for own in by_gang.values())
    return [(nodes, rate / middle) for nodes, own in by_gang.items() for rate in own]


def mark_slow_nodes(speeds: Sequence[NodeSpeed]) -> tuple[Problem, ...]:
    """Return SLOW-NODE if nodes are slow: each with its share, the worst first."""
    slow = sorted((it for it in speeds if it.is_slow), key=lambda it: it.speed)
    if not slow:
        return ()
    fast = [it.speed for it in speeds if not it.is_slow]
    first, *rest = [(it.node, f"{1 - it.speed / fmean(fast):.1%}") for it in slow]
    slower = ", ".join([f"{first[0]} is {first[1]}", *(f"{node} {share}" for node, share in rest)])
    than = words.count(len(fast), "other node")
    return (Problem("SLOW-NODE", f"{slower} slower than the {than}"),)


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes of one trial, its bus bandwidth in GB/s and as a share of the pairs' median."""

    nodes: tuple[str, ...]
    busbw: float
    share: float

    @property
    def is_slow(self) -> bool:
        """Return True if a third is missing: bus bandwidth does not depend on the number of ranks.

        Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth".
        """
        return self.share < LEAST_SHARE


def compare_groups(pairs: Result, together: Iterable[Result]) -> tuple[Group, ...]:
    """Return the groups of all valid trials; none if no trial of pairs is valid."""
    if pairs.statistics is None:
        return ()
    return tuple(
        Group(trial.nodes, trial.throughput, trial.throughput / pairs.statistics.median)
        for result in together
        for trial in result.valid
        if trial.throughput
    )


def find_smallest_slow(groups: Sequence[Group]) -> Iterator[Group]:
    """Yield the slow groups that contain no smaller slow group."""
    slow = [group for group in groups if group.is_slow]
    for group in slow:
        if not any({*part.nodes} < {*group.nodes} for part in slow):
            yield group


def find_better_published(report: Report) -> PublishedResult | None:
    """Return the lowest published bandwidth of such machines if the result is below 90 % of it."""
    (result,) = report.results
    known = report.published_for(result)
    lowest = min(known, key=lambda row: row.throughput, default=None)
    if lowest is None or result.median is None:
        return None
    return lowest if result.median < LEAST_OF_PUBLISHED * lowest.throughput else None
