"""What trials are run with, and what the events of a sweep say of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.console import Voice
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import TrialPlan
from orchestrator.model.site import Site
from orchestrator.plan import Recipe
from orchestrator.schedulers.fanout import Fanout
from orchestrator.signals import Signals
from orchestrator.store import Sweep
from orchestrator.transports import Transport
from orchestrator.verbs._locks import Locks


@dataclass(slots=True)
class History:
    """What events.jsonl says of one trial so far."""

    attempts: int = 0
    state: str = "planned"
    open_attempt: int = 0
    open_port: int = 0
    sha256: str = ""


@dataclass(slots=True)
class Bench:
    """Everything that trials are run with."""

    sweep: Sweep
    recipe: Recipe
    site: Site
    fanout: Fanout
    transports: Mapping[str, Transport]
    signals: Signals
    voice: Voice
    locks: Locks
    history: dict[str, History] = field(default_factory=dict)

    def attempt(self, trial: TrialPlan, number: int) -> Attempt:
        """An attempt of a trial of this sweep."""
        return attempt_of(self.sweep, self.recipe.cluster, trial, number)


def histories(sweep: Sweep) -> dict[str, History]:
    """By trial name, what the sweep's events say of it."""
    found: dict[str, History] = {}
    for event in sweep.events():
        trial, number = event.get("trial"), event.get("attempt")
        if not isinstance(trial, str) or not isinstance(number, int):
            continue
        history = found.setdefault(trial, History())
        if event["event"] == "intent":
            history.attempts = max(history.attempts, number)
            port = event.get("port")
            history.open_attempt, history.open_port = number, port if isinstance(port, int) else 0
        elif event["event"] == "outcome":
            history.state = str(event.get("state"))
            history.sha256 = str(event.get("sha256"))
            history.open_attempt = 0
    return found


def attempt_of(sweep: Sweep, cluster: Cluster, trial: TrialPlan, number: int) -> Attempt:
    """An attempt, with where its tasks keep their files: here, or on nodes that are elsewhere.

    Tasks on nodes that the cluster does not have are left out.
    """
    here = str(sweep.attempt_folder(trial.name, number).resolve())
    folders = {
        node.name: here
        if node.transport == "local"
        else f"{node.folder}/{sweep.id}/{trial.name}/a{number}"
        for node in cluster.members
    }
    tasks = tuple(task for task in trial.tasks if task.node in folders)
    mine = {task.node: folders[task.node] for task in tasks}
    whole = Attempt(sweep.id, trial.name, number, mine, trial.port, tasks, trial.log_rank)
    return replace(whole, log_bytes=cluster.log_bytes)
