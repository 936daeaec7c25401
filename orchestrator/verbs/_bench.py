"""What trials are run with, and what the events of a sweep say of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.console import Voice
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import JSON
from orchestrator.model.plan import TrialPlan
from orchestrator.model.site import Site
from orchestrator.plan import Recipe
from orchestrator.schedulers.fanout import Fanout
from orchestrator.schedulers.locks import Locks
from orchestrator.signals import Signals
from orchestrator.store import Sweep
from orchestrator.transports import Transport


@dataclass(frozen=True, slots=True)
class Closed:
    """What events.jsonl says of an attempt that has an outcome.

    Args:
        sha256: of the log that was measured; None if none was.
        outcome: sha256 of the outcome beside the log; empty where none was written.
    """

    state: str
    sha256: str | None
    outcome: str


@dataclass(slots=True)
class History:
    """What is known of one trial's attempts so far.

    Args:
        unlogged: the open attempt has its folder here, and events.jsonl does not tell of it.
    """

    attempts: int = 0
    state: str = "planned"
    open_attempt: int = 0
    open_port: int = 0
    unlogged: bool = False
    closed: dict[int, Closed] = field(default_factory=dict)

    def close(self, number: int, closed: Closed) -> None:
        """Take note of an attempt's outcome."""
        self.state, self.open_attempt = closed.state, 0
        self.closed[number] = closed


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
    begun: Callable[[Sweep], None]
    history: dict[str, History] = field(default_factory=dict)

    def attempt(self, trial: TrialPlan, number: int) -> Attempt:
        """An attempt of a trial of this sweep."""
        return attempt_of(self.sweep, self.recipe.cluster, trial, number)


def histories(sweep: Sweep) -> dict[str, History]:
    """By trial name, what the sweep's events say of it.

    An attempt whose folder is here although no event tells of it counts as begun and open: its
    number is not used again, and whatever may run of it is dealt with.

    Raises:
        StoreError: the events are damaged.
    """
    found: dict[str, History] = {}
    for event in sweep.events():
        trial, number = event.get("trial"), event.get("attempt")
        if not isinstance(trial, str) or not isinstance(number, int):
            continue
        history = found.setdefault(trial, History())
        if event["event"] == "intent":
            history.attempts = max(history.attempts, number)
            history.open_attempt, history.open_port = number, _port(event)
        elif event["event"] == "outcome":
            history.attempts = max(history.attempts, number)
            history.close(number, _closed(event))
    for trial, number in sweep.attempts():
        history = found.setdefault(trial, History())
        if number > history.attempts:
            history.attempts = history.open_attempt = number
            history.open_port, history.unlogged = sweep.attempt_port(trial, number), True
    return found


def _port(event: Mapping[str, JSON]) -> int:
    port = event.get("port")
    return port if isinstance(port, int) else 0


def _closed(event: Mapping[str, JSON]) -> Closed:
    sha256, outcome = event.get("sha256"), event.get("outcome")
    return Closed(
        str(event.get("state", "failed")),
        sha256 if isinstance(sha256, str) else None,
        outcome if isinstance(outcome, str) else "",
    )


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
