"""How fast nodes are beside one another, from cases that ran on several of them, or on pairs.

Source: ``docs/measuring.md``: least squares over logarithms, of pairs the two best trials; a gap of
more than 1 % and more than chance by Student's t.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt
from statistics import fmean, median

from orchestrator import nodeset
from orchestrator.verifying.cases import DerivedCase
from orchestrator.verifying.marks import Mark

LEAST_GAP = 0.01
TOLD_ONE_BY_ONE = 3
# 97.5 %, of 1 to 10 degrees of freedom. Source: any table of Student's t.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, slots=True)
class NodeSpeeds:
    """Speed over that of the median node, by name, with how many trials tell it."""

    speeds: dict[str, tuple[int, float]]
    marks: list[Mark]


Point = tuple[int, str, float]
"""A case, a node, and the logarithm of a throughput."""


def compared(cases: Sequence[DerivedCase]) -> NodeSpeeds:
    """The nodes that cases connect, the most of them; none where there are fewer than two."""
    points = _connected(
        [
            (number, trial.nodes[0], log(trial.derived.throughput))
            for number, case in enumerate(cases)
            for trial in case.valid
            if trial.derived.throughput and len(trial.nodes) == 1
        ]
    )
    nodes = sorted({node for _, node, _ in points})
    if len(nodes) < 2:
        return _of_pairs(cases)
    counts = {node: sum(of == node for _, of, _ in points) for node in nodes}
    effects, left = _fitted(points, nodes)
    freedom = len(points) - len(nodes) - len({number for number, _, _ in points}) + 1
    slow = _slow(effects, {**counts}, sqrt(left / freedom), freedom) if freedom else []
    return _told(effects, counts, slow)


def _of_pairs(cases: Sequence[DerivedCase]) -> NodeSpeeds:
    """The slower of a pair sets the pace; nodes that met one other only are not compared."""
    pairs = [pair for case in cases for pair in _over_median(case)]
    lone = {""}
    while lone:
        met: dict[str, set[str]] = {}
        for pair, _ in pairs:
            for node in pair:
                met.setdefault(node, set()).update(pair)
        lone = {node for node, others in met.items() if len(others) < 3}
        pairs = [(pair, value) for pair, value in pairs if not lone.intersection(pair)]
    if not pairs:
        return NodeSpeeds({}, [])
    best = {
        node: fmean(sorted(value for pair, value in pairs if node in pair)[-2:]) for node in met
    }
    counts = {node: sum(node in pair for pair, _ in pairs) for node in met}
    rest = [value - min(best[node] for node in pair) for pair, value in pairs]
    freedom = len(pairs) - len(best)
    slow = []
    if freedom > 0:
        left = sum((value - fmean(rest)) ** 2 for value in rest)
        halves = {node: count / 2 for node, count in counts.items()}
        slow = _slow(best, halves, sqrt(left / freedom), freedom)
    return _told(best, counts, slow)


def _over_median(case: DerivedCase) -> list[tuple[tuple[str, ...], float]]:
    rates = [
        (tuple(trial.nodes), log(trial.derived.throughput))
        for trial in case.valid
        if trial.derived.throughput and len(trial.nodes) == 2
    ]
    return [(pair, rate - median(value for _, value in rates)) for pair, rate in rates]


def _told(effects: dict[str, float], counts: dict[str, int], slow: Sequence[str]) -> NodeSpeeds:
    middle = median(effects.values())
    speeds = {node: (counts[node], exp(effects[node] - middle)) for node in sorted(effects)}
    return NodeSpeeds(speeds, _marks(slow, effects))


def _connected(points: Sequence[Point]) -> list[Point]:
    groups: list[set[str]] = []
    for number in sorted({number for number, _, _ in points}):
        nodes = {node for of, node, _ in points if of == number}
        touching = [group for group in groups if group & nodes]
        groups = [group for group in groups if not group & nodes] + [nodes.union(*touching)]
    most = max(groups, key=len, default=set())
    return [point for point in points if point[1] in most]


def _fitted(points: Sequence[Point], nodes: Sequence[str]) -> tuple[dict[str, float], float]:
    """What each node adds, the first one nothing, and the squares that are left.

    Within each case the case's own mean drops out; what is left is solved by elimination.
    """
    size = len(nodes)
    rows = [[0.0] * (size + 1) for _ in nodes]
    for number in sorted({number for number, _, _ in points}):
        own = [(nodes.index(node), value) for of, node, value in points if of == number]
        mean = fmean(value for _, value in own)
        for place, value in own:
            rows[place][place] += 1
            rows[place][size] += value - mean
            for other, _ in own:
                rows[place][other] -= 1 / len(own)
    effects = dict(zip(nodes, [0.0, *_solved([row[1:] for row in rows[1:]])], strict=True))
    left = 0.0
    for number in sorted({number for number, _, _ in points}):
        rest = [value - effects[node] for of, node, value in points if of == number]
        left += sum((value - fmean(rest)) ** 2 for value in rest)
    return effects, left


def _solved(rows: list[list[float]]) -> list[float]:
    """Gauss and Jordan, with pivots."""
    for place in range(len(rows)):
        pivot = max(range(place, len(rows)), key=lambda row: abs(rows[row][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        rows[place] = [value / rows[place][place] for value in rows[place]]
        for other, row in enumerate(rows):
            if other != place:
                times = row[place]
                rows[other] = [it - times * own for it, own in zip(row, rows[place], strict=True)]
    return [row[-1] for row in rows]


def _slow(
    effects: dict[str, float], told: dict[str, float], deviation: float, freedom: int
) -> list[str]:
    """The nodes below the widest-reaching gap that is no chance."""
    order = sorted(effects, key=lambda node: effects[node])
    chance = deviation * _student(freedom)
    gaps = [
        place
        for place, (low, high) in enumerate(pairwise(order), 1)
        if effects[high] - effects[low]
        > max(LEAST_GAP, chance * sqrt(1 / told[low] + 1 / told[high]))
    ]
    few = [place for place in gaps if 2 * place <= len(order)]
    return sorted(order[: max(few or gaps, default=0)])


def _student(freedom: int) -> float:
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    return 1.960 + 2.372 / freedom + 2.822 / freedom**2


def _marks(slow: Sequence[str], effects: dict[str, float]) -> list[Mark]:
    if not slow:
        return []
    fast = fmean(effect for node, effect in effects.items() if node not in slow)
    lacks = sorted((round(exp(effects[node] - fast) - 1, 3), node) for node in slow)
    facts = [fact for lack, node in lacks for fact in (node, f"{-lack:.1%}")]
    if len(slow) > TOLD_ONE_BY_ONE:
        reach = sorted({lack for lack, _ in lacks[:: len(lacks) - 1]}, reverse=True)
        facts = [nodeset.fold(slow), *(f"{-lack:.1%}" for lack in reach)]
    return [Mark("SLOW-NODE", (*facts, f"{len(effects) - len(slow)} other node"))]
