"""Compares the speeds of nodes, if cases ran on several nodes or pairs of them."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, median, median_high

from orchestrator import nodeset, words
from orchestrator.model.node_speeds import NodeSpeed, NodeSpeeds
from orchestrator.model.problem import Problem
from orchestrator.model.result import Result

LEAST_GAP = 0.01  # a smaller share is not reported
SCATTER = 2 * 1.4826  # two standard deviations, by the median absolute deviation
NAMED = 3  # slow nodes that are reported with a share of their own

Ratio = tuple[tuple[str, ...], float]
"""The nodes of a trial, and its throughput over the median of its case's gangs."""


def speeds(results: Sequence[Result]) -> NodeSpeeds:
    """Return the speeds of nodes by cases of one node, or without such cases by those of two.

    A trial's ratio is its throughput over the median of its case's gangs, each gang by its own
    median. A node's speed is the median of its ratios; in pairs, where the slower node sets the
    pace, their maximum. A node of at least two trials is slow if even its best trial is slower than
    the median node by more than 1 % and by more than trials scatter.
    """
    alone = [ratio for result in results for ratio in _ratios(result, 1)]
    if alone:
        by_node = _by_node(alone)
        return _compare(alone, by_node, {node: median(own) for node, own in by_node.items()})
    pairs = _of_several_partners([ratio for result in results for ratio in _ratios(result, 2)])
    by_node = _by_node(pairs)
    return _compare(pairs, by_node, {node: max(own) for node, own in by_node.items()})


def _compare(
    ratios: Sequence[Ratio], by_node: dict[str, list[float]], speeds: dict[str, float]
) -> NodeSpeeds:
    if not speeds:
        return NodeSpeeds()
    middle = median_high(speeds.values())
    apart = median(abs(ratio / min(speeds[node] for node in nodes) - 1) for nodes, ratio in ratios)
    least = middle * (1 - max(LEAST_GAP, SCATTER * apart))
    order = sorted(speeds)
    return NodeSpeeds(
        tuple(NodeSpeed(node, len(by_node[node]), speeds[node] / middle) for node in order),
        tuple(node for node in order if len(by_node[node]) > 1 and max(by_node[node]) < least),
    )


def marks(found: NodeSpeeds) -> tuple[Problem, ...]:
    """Return SLOW-NODE if nodes are slow: each of a few with its share, many with their range."""
    if not found.slow:
        return ()
    speeds = {node.node: node.speed for node in found.nodes}
    fast = fmean([speeds[node] for node in speeds if node not in found.slow])
    lacks = {node: round(1 - speeds[node] / fast, 3) for node in found.slow}
    worst, *others = sorted(lacks, key=lambda node: (-lacks[node], node))
    if len(others) < NAMED:
        rest = [f"{node} {lacks[node]:.1%}" for node in others]
        slower = ", ".join([f"{worst} is {lacks[worst]:.1%}", *rest])
    else:
        least = f"{lacks[others[-1]]:.1%} to " if lacks[others[-1]] < lacks[worst] else ""
        slower = f"{nodeset.fold(found.slow)} are {least}{lacks[worst]:.1%}"
    than = words.count(len(speeds) - len(lacks), "other node")
    return (Problem("SLOW-NODE", f"{slower} slower than the {than}"),)


def _ratios(result: Result, size: int) -> list[Ratio]:
    """Return the ratios of valid trials on so many nodes; none if all ran on the same nodes."""
    rates = [
        (trial.nodes, trial.throughput)
        for trial in result.valid
        if trial.throughput and len(trial.nodes) == size
    ]
    if len({nodes for nodes, _ in rates}) < 2:
        return []
    by_gang: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for nodes, rate in rates:
        by_gang[nodes].append(rate)
    # Each gang counts once, because a slow node may have run most trials.
    middle = median_high(median(own) for own in by_gang.values())
    return [(nodes, rate / middle) for nodes, rate in rates]


def _by_node(ratios: Sequence[Ratio]) -> dict[str, list[float]]:
    by_node: dict[str, list[float]] = defaultdict(list)
    for nodes, ratio in ratios:
        for node in nodes:
            by_node[node].append(ratio)
    return by_node


def _of_several_partners(pairs: Sequence[Ratio]) -> Sequence[Ratio]:
    """Drop nodes with a single partner, which cannot be ranked."""
    while True:
        partners: dict[str, set[str]] = defaultdict(set)
        for nodes, _ in pairs:
            for node in nodes:
                partners[node].update(nodes)
        kept = [pair for pair in pairs if all(len(partners[node]) > 2 for node in pair[0])]
        if len(kept) == len(pairs):
            return kept
        pairs = kept
