"""On which nodes the trials of each case ran, so that its repeats go round all of them."""

import threading
from collections import Counter
from collections.abc import Iterable

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
        """All nodes, those first on which the case ran least often; a canary stays at its own."""
        if trial.canary:
            return ()
        with self._lock:
            return tuple(sorted(self._nodes, key=lambda node: self._used[trial.case, node]))
