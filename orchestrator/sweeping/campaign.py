"""Hold everything that is open while a sweep runs in one object."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.console import Voice
from orchestrator.deadlines import GATES_S, GRACE_S
from orchestrator.model.attempt import Limits
from orchestrator.model.case import Case
from orchestrator.model.plan import Trial
from orchestrator.model.site import Site
from orchestrator.model.sweep import History
from orchestrator.planning.plan import Recipe
from orchestrator.runtimes.process import inherited_environment
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping.requested import Caller


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


@dataclass(frozen=True, slots=True)
class Campaign:
    """A sweep while it runs.

    Args:
        histories: by trial; a trial's own is touched by the lane alone that runs it.
        next: held by the lane that requests nodes, so that wide trials do not starve.
        failed: set once a lane has failed; no attempt begins after that.
        strict: trials that the state of their nodes marks do not count.
        less: the option that the command line must lack to resume this sweep; or empty.
        rotation: on which nodes each case ran so far.
    """

    store: Store
    sweep: Sweep
    recipe: Recipe
    site: Site
    scheduler: Scheduler
    caller: Caller
    histories: dict[str, History] = field(default_factory=dict)
    next: threading.Lock = field(default_factory=threading.Lock)
    failed: threading.Event = field(default_factory=threading.Event)
    strict: bool = False
    less: str = ""
    rotation: Rotation = field(default_factory=Rotation)

    @property
    def voice(self) -> Voice:
        return self.caller.voice

    @property
    def stopping(self) -> bool:
        """Return True once a signal has asked the sweep to end."""
        return self.caller.signals.stopping()

    def history(self, trial: Trial) -> History:
        """Return the attempts of a trial so far; the history is empty if it never ran."""
        return self.histories.setdefault(trial.name, History())

    @property
    def limits(self) -> Limits:
        method = self.recipe.experiment.method
        most = self.recipe.cluster.log_bytes
        return Limits(method.time_limit_s, method.stall_limit_s, GRACE_S, GATES_S, most)

    @property
    def iterations(self) -> int:
        """Return the last iteration that a trial's log will show."""
        return self.recipe.workload.last_iteration(self.recipe.experiment.method.iterations)

    @property
    def inherited_env(self) -> Mapping[str, str]:
        """Return the variables that tasks inherit; empty unless all are processes here."""
        here = self.recipe.cluster.shares_files and not self.recipe.cluster.in_containers
        return inherited_environment() if here else {}
