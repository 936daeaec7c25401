"""How fast nodes are beside one another, from cases that ran on several of them, or on pairs.

Source: ``docs/measuring.md``: the ratios of trials to the medians of their cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from orchestrator import nodeset
from orchestrator.verifying.cases import DerivedCase
from orchestrator.verifying.marks import Mark

LEAST_GAP = 0.01
DEVIATIONS = 2 * 1.4826
TOLD_ONE_BY_ONE = 3


@dataclass(frozen=True, slots=True)
class NodeSpeeds:
    """Speed over that of the median node, by name, with how many trials tell it."""

    speeds: dict[str, tuple[int, float]]
    marks: list[Mark]


def compared(cases: Sequence[DerivedCase]) -> NodeSpeeds:
    """Compare nodes that ran the same case alone; without any, those that ran it in pairs."""
    trials = [trial for case in cases for trial in _over_median(case, 1)]
    alone = bool(trials)
    if not alone:
        trials = _with_partners([it for case in cases for it in _over_median(case, 2)])
    names = sorted({node for nodes, _ in trials for node in nodes})
    if not names:
        return NodeSpeeds({}, [])
    own = {name: [ratio for nodes, ratio in trials if name in nodes] for name in names}
    raw = {name: median(own[name]) if alone else max(own[name]) for name in names}
    middle = sorted(raw.values())[len(names) // 2]
    off = median(abs(ratio / min(raw[node] for node in nodes) - 1) for nodes, ratio in trials)
    below = middle * (1 - max(LEAST_GAP, DEVIATIONS * off))
    slow = [name for name in names if len(own[name]) > 1 and max(own[name]) < below]
    speeds = {name: (len(own[name]), raw[name] / middle) for name in names}
    return NodeSpeeds(speeds, _marks(slow, {name: speed for name, (_, speed) in speeds.items()}))


def _over_median(case: DerivedCase, count: int) -> list[tuple[tuple[str, ...], float]]:
    rates = [
        (tuple(trial.nodes), trial.derived.throughput)
        for trial in case.valid
        if trial.derived.throughput and len(trial.nodes) == count
    ]
    if len({nodes for nodes, _ in rates}) < 2:
        return []
    middle = median(rate for _, rate in rates)
    return [(nodes, rate / middle) for nodes, rate in rates]


def _with_partners(
    pairs: list[tuple[tuple[str, ...], float]],
) -> list[tuple[tuple[str, ...], float]]:
    """Leave out nodes that met one other only, until every node met two."""
    lone = {""}
    while lone:
        met: dict[str, set[str]] = {}
        for nodes, _ in pairs:
            for node in nodes:
                met.setdefault(node, set()).update(nodes)
        lone = {node for node, others in met.items() if len(others) < 3}
        pairs = [(nodes, ratio) for nodes, ratio in pairs if not lone.intersection(nodes)]
    return pairs


def _marks(slow: Sequence[str], speeds: dict[str, float]) -> list[Mark]:
    if not slow:
        return []
    fast = fmean(speed for node, speed in speeds.items() if node not in slow)
    lacks = sorted((round(speeds[node] / fast - 1, 3), node) for node in slow)
    facts = [fact for lack, node in lacks for fact in (node, f"{-lack:.1%}")]
    if len(slow) > TOLD_ONE_BY_ONE:
        reach = sorted({lack for lack, _ in lacks[:: len(lacks) - 1]}, reverse=True)
        facts = [nodeset.fold(slow), *(f"{-lack:.1%}" for lack in reach)]
    return [Mark("SLOW-NODE", (*facts, f"{len(speeds) - len(slow)} other node"))]
