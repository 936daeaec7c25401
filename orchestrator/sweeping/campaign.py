"""Everything that is open while a sweep runs, as one object."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.console import Voice
from orchestrator.deadlines import GATES_S, GRACE_S
from orchestrator.model.attempt import Limits
from orchestrator.model.history import History
from orchestrator.model.plan import Trial
from orchestrator.model.site import Site
from orchestrator.planning.plan import Recipe
from orchestrator.runtimes.process import inherited_environment
from orchestrator.schedulers import Scheduler
from orchestrator.signals import Signals
from orchestrator.state.store import Store, Sweep


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks for a sweep.

    Args:
        begun: called with the sweep whenever a gang of it runs.
    """

    voice: Voice
    signals: Signals
    begun: Callable[[Sweep], None]


@dataclass(frozen=True, slots=True)
class Campaign:
    """A sweep while it runs.

    Args:
        histories: by trial; a trial's own is touched by the lane alone that runs it.
        next: held by the lane that asks for nodes: whoever needs many of them is not passed by.
        failed: set once a lane has failed; no attempt begins after that.
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

    @property
    def voice(self) -> Voice:
        """What tells people."""
        return self.caller.voice

    @property
    def stopping(self) -> bool:
        """Whether a signal asked for the end."""
        return self.caller.signals.stopping()

    def history(self, trial: Trial) -> History:
        """What is known of a trial's attempts."""
        return self.histories.setdefault(trial.name, History())

    @property
    def limits(self) -> Limits:
        """What bounds each attempt."""
        method = self.recipe.experiment.method
        most = self.recipe.cluster.log_bytes
        return Limits(method.time_limit_s, method.stall_limit_s, GRACE_S, GATES_S, most)

    @property
    def iterations(self) -> int:
        """Those that a trial's log will show."""
        return self.recipe.workload.last_iteration(self.recipe.experiment.method.iterations)

    @property
    def inherited_env(self) -> Mapping[str, str]:
        """What tasks take over from this program's environment; those elsewhere take nothing."""
        here = self.recipe.cluster.is_here and not self.recipe.cluster.in_containers
        return inherited_environment() if here else {}
