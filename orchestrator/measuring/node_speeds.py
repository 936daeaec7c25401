"""The speeds of nodes, and which of them are slow, where cases ran on several nodes or pairs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise
from math import exp, log, sqrt
from statistics import fmean, geometric_mean, median

from orchestrator import nodeset, words
from orchestrator.model.node_speeds import NodeSpeed, NodeSpeeds
from orchestrator.model.problem import Problem
from orchestrator.model.result import Result

LEAST_GAP = 0.01  # a node that is less than 1 % slower is not named
ROUNDS = 100  # of the fit; it converges by a factor a round, faster the fuller the table is
CLOSE = 1e-12
NAMED = 3  # slow nodes of which each is told with its own lack
BEST = 2  # trials of a node in pairs: one alone is chance, and of more some had a slow partner
# Student's t, 97.5 %, of 1 to 10 degrees of freedom. Source: any table of it.
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, slots=True)
class _Point:
    """A valid trial on one node: the logarithm of its throughput."""

    case: int
    node: str
    value: float


@dataclass(frozen=True, slots=True)
class _Pair:
    """A valid trial on two nodes: the logarithm of its throughput over the median of its case."""

    nodes: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class _Fit:
    """What nodes add to the logarithm.

    Args:
        trials: of each node.
        weight: how much one of them tells of a node.
        deviation: of a single trial from the fit; None where nothing is left to tell it.
        freedom: degrees of it.
    """

    effects: Mapping[str, float]
    trials: Mapping[str, int]
    weight: float
    deviation: float | None
    freedom: int


def speeds(results: Sequence[Result]) -> NodeSpeeds:
    """The speeds of the nodes on which cases of one node ran; else of those that ran in pairs.

    A trial of one node is taken as the product of what its case and what its node can do. The
    slower of a pair sets the pace: a node can do what it did in its two best trials. The nodes are
    slow below a gap that is wider than 1 % and than chance: Student's t at 97.5 % for the two nodes
    beside it, with the deviation of all trials. So also half of the nodes may be slow.
    """
    points = _comparable(list(_points(results)))
    if len({point.node for point in points}) >= 2:
        return _named(_fitted(points))
    pairs = _of_several_partners(list(_pairs(results)))
    return _named(_best(pairs)) if pairs else NodeSpeeds()


def _named(fit: _Fit) -> NodeSpeeds:
    middle = median(fit.effects.values())
    nodes = tuple(
        NodeSpeed(node, fit.trials[node], exp(fit.effects[node] - middle))
        for node in sorted(fit.effects)
    )
    return NodeSpeeds(nodes, _slow(fit))


def marks(found: NodeSpeeds) -> tuple[Problem, ...]:
    """SLOW-NODE, if there are any: a few each with its own lack, many by their names and range."""
    if not found.slow:
        return ()
    speeds = {node.node: node.speed for node in found.nodes}
    fast = geometric_mean([speeds[node] for node in speeds if node not in found.slow])
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


def _points(results: Iterable[Result]) -> Iterable[_Point]:
    for index, result in enumerate(results):
        for trial in result.valid:
            if trial.throughput and len(trial.nodes) == 1:
                yield _Point(index, trial.nodes[0], log(trial.throughput))


def _pairs(results: Iterable[Result]) -> Iterable[_Pair]:
    for result in results:
        rates = [
            (trial.nodes, log(trial.throughput))
            for trial in result.valid
            if trial.throughput and len(trial.nodes) == 2
        ]
        for nodes, rate in rates:
            yield _Pair(nodes, rate - median(value for _, value in rates))


def _of_several_partners(pairs: Sequence[_Pair]) -> Sequence[_Pair]:
    """Without nodes that met one other node only: which of both is slow, nothing tells."""
    while True:
        partners: dict[str, set[str]] = defaultdict(set)
        for pair in pairs:
            for node in pair.nodes:
                partners[node].update(pair.nodes)
        told = [pair for pair in pairs if all(len(partners[node]) > 2 for node in pair.nodes)]
        if len(told) == len(pairs):
            return told
        pairs = told


def _best(pairs: Sequence[_Pair]) -> _Fit:
    values: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        for node in pair.nodes:
            values[node].append(pair.value)
    best = {node: fmean(nlargest(BEST, own)) for node, own in values.items()}
    trials = {node: len(own) for node, own in values.items()}
    rest = [pair.value - min(best[node] for node in pair.nodes) for pair in pairs]
    freedom = len(pairs) - len(best)
    squares = sum((value - fmean(rest)) ** 2 for value in rest)
    deviation = sqrt(squares / freedom) if freedom > 0 else None
    return _Fit(best, trials, 0.5, deviation, freedom)


def _comparable(points: Sequence[_Point]) -> list[_Point]:
    """The points of the most nodes that cases connect: two nodes without a common case are not."""
    by_case: dict[int, set[str]] = defaultdict(set)
    for point in points:
        by_case[point.case].add(point.node)
    groups: list[set[str]] = []
    for nodes in by_case.values():
        touching = [group for group in groups if group & nodes]
        groups = [group for group in groups if not group & nodes] + [nodes.union(*touching)]
    most = max(groups, key=len, default=set())
    return [point for point in points if point.node in most]


def _fitted(points: Sequence[_Point]) -> _Fit:
    by_node: dict[str, list[_Point]] = defaultdict(list)
    by_case: dict[int, list[_Point]] = defaultdict(list)
    for point in points:
        by_node[point.node].append(point)
        by_case[point.case].append(point)
    effects = dict.fromkeys(by_node, 0.0)
    bases: dict[int, float] = {}
    for _ in range(ROUNDS):
        before = effects
        bases = {
            case: fmean(point.value - effects[point.node] for point in those)
            for case, those in by_case.items()
        }
        effects = {
            node: fmean(point.value - bases[point.case] for point in those)
            for node, those in by_node.items()
        }
        if all(abs(effects[node] - before[node]) < CLOSE for node in effects):
            break
    freedom = len(points) - len(by_node) - len(by_case) + 1
    left = sum((point.value - bases[point.case] - effects[point.node]) ** 2 for point in points)
    trials = {node: len(those) for node, those in by_node.items()}
    return _Fit(effects, trials, 1, sqrt(left / freedom) if freedom else None, freedom)


def _slow(fit: _Fit) -> tuple[str, ...]:
    """The nodes below the highest such gap that has half of the nodes above it, else any."""
    if fit.deviation is None:
        return ()
    order = sorted(fit.effects, key=lambda node: fit.effects[node])
    told = {node: fit.weight * count for node, count in fit.trials.items()}
    chance = _student(fit.freedom) * fit.deviation
    below = [
        place
        for place, (low, high) in enumerate(pairwise(order), 1)
        if fit.effects[high] - fit.effects[low]
        > max(LEAST_GAP, chance * sqrt(1 / told[low] + 1 / told[high]))
    ]
    of_few = [place for place in below if 2 * place <= len(order)]
    slow = order[: max(of_few or below, default=0)]
    return tuple(sorted(slow))


def _student(freedom: int) -> float:
    """The 97.5 % quantile; over ten degrees by the first terms of its expansion (Fisher)."""
    if freedom <= len(T):
        return T[freedom - 1]
    return 1.960 + 2.372 / freedom + 2.822 / freedom**2
