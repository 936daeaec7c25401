"""On which nodes the trials of each case ran, so that its repeats go round all of them.

Repeats of a case of two nodes go round the pairs: in rounds in which a node is in one pair.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Sequence

from orchestrator.model.case import Case
from orchestrator.model.plan import Trial


class Rotation:
    """Counts the attempts of each case on each node; several lanes use it at once."""

    def __init__(self) -> None:
        self._nodes: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._used: Counter[tuple[Case, str]] = Counter()

    def begin(self, nodes: Iterable[str]) -> None:
        """Have these nodes take turns; before that, none is preferred to another."""
        self._nodes = tuple(nodes)

    def add(self, trial: Trial, nodes: Iterable[str]) -> None:
        """An attempt of the trial was given these nodes."""
        with self._lock:
            self._used.update((trial.case, node) for node in nodes)

    def order(self, trial: Trial) -> tuple[str, ...]:
        """All nodes, those to take first at the beginning; a canary stays at its own.

        That is a repeat's own pair, then those on which the case ran least often.
        """
        if trial.canary:
            return ()
        own = pair(self._nodes, trial.repeat) if trial.case.nodes == 2 else ()
        with self._lock:
            used = {node: self._used[trial.case, node] for node in self._nodes}
        return tuple(sorted(self._nodes, key=lambda node: (node not in own, used[node])))


def pair(nodes: Sequence[str], repeat: int) -> tuple[str, ...]:
    """The two nodes of a repeat, counted from 1; of an odd number of nodes one sits out a round.

    Rounds are those of a tournament by the circle method, in the order of cubes:
    rounds that follow one another tell nodes apart badly where there are hundreds.
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
