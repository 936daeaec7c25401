"""What trials are run with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.console import Voice
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.history import History
from orchestrator.model.plan import TrialPlan
from orchestrator.model.site import Site
from orchestrator.plan import Recipe
from orchestrator.schedulers.fanout import Fanout
from orchestrator.schedulers.locks import Locks
from orchestrator.signals import Signals
from orchestrator.store import Sweep
from orchestrator.transports import Transport


@dataclass(slots=True)
class Bench:
    """Everything that trials are run with.

    Args:
        history: by trial; a trial's own is touched by the lane alone that runs it.
        lanes: how many trials run at once.
    """

    sweep: Sweep
    recipe: Recipe
    site: Site
    fanout: Fanout
    transports: Mapping[str, Transport]
    signals: Signals
    voice: Voice
    locks: Locks
    begun: Callable[[Sweep], None]
    history: dict[str, History] = field(default_factory=dict)
    lanes: int = 1

    def attempt(self, trial: TrialPlan, number: int) -> Attempt:
        """An attempt of a trial of this sweep."""
        return attempt_of(self.sweep, self.recipe.cluster, trial, number)


def attempt_of(sweep: Sweep, cluster: Cluster, trial: TrialPlan, number: int) -> Attempt:
    """An attempt, with where its tasks keep their files: here, or on nodes that are elsewhere.

    Tasks on nodes that the cluster does not have are left out.
    """
    here = str(sweep.attempt_folder(trial.name, number).resolve())
    folders = {
        node.name: here if node.is_here else f"{node.folder}/{sweep.id}/{trial.name}/a{number}"
        for node in cluster.members
    }
    tasks = tuple(task for task in trial.tasks if task.node in folders)
    mine = {task.node: folders[task.node] for task in tasks}
    whole = Attempt(sweep.id, trial.name, number, mine, trial.port, tasks, trial.log_rank)
    return replace(whole, log_bytes=cluster.log_bytes)
