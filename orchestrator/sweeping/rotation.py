"""Rotate the repeats of each case over all nodes, by a count of where its trials ran.

Repeats of a case of two nodes rotate over pairs, in rounds in which each node is in one pair.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Sequence

from orchestrator.model.case import Case
from orchestrator.model.plan import Trial


class Rotation:
    """Count the attempts of each case on each node; several lanes use it at once."""

    def __init__(self) -> None:
        self._nodes: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._used: Counter[tuple[Case, str]] = Counter()

    def begin(self, nodes: Iterable[str]) -> None:
        """Have these nodes take turns; before that, none is preferred to another."""
        self._nodes = tuple(nodes)

    def add(self, trial: Trial, nodes: Iterable[str]) -> None:
        """Record that an attempt of the trial was given these nodes."""
        with self._lock:
            self._used.update((trial.case, node) for node in nodes)

    def order(self, trial: Trial) -> tuple[str, ...]:
        """Return the nodes in the order in which to take them; empty for a canary, which stays.

        A repeat's own pair is first, then the nodes on which the case ran least often.
        """
        if trial.canary:
            return ()
        own = pair(self._nodes, trial.repeat) if trial.case.nodes == 2 else ()
        with self._lock:
            used = {node: self._used[trial.case, node] for node in self._nodes}
        return tuple(sorted(self._nodes, key=lambda node: (node not in own, used[node])))


def pair(nodes: Sequence[str], repeat: int) -> tuple[str, ...]:
    """Return the two nodes of a repeat, counted from 1; one of an odd number rests each round.

    Rounds are those of a tournament by the circle method, in the order of cubes: consecutive
    rounds pair the same nodes too often on large clusters.
    """
    if len(nodes) < 2:
        return ()
    turn, at = divmod(repeat - 1, len(nodes) // 2)
    others = len(nodes) - 1 + len(nodes) % 2
    shift = turn**3 % others
    if len(nodes) % 2 == 0 and at == 0:
        return nodes[others], nodes[shift]
    at += len(nodes) % 2
    return nodes[(shift + at) % others], nodes[(shift - at) % others]
