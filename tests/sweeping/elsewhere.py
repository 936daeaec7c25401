"""An attempt on a node that keeps its files elsewhere, and the sweep that fetches them."""

import hashlib
from pathlib import Path

from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, GangEnd, TaskEnd
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Task
from orchestrator.model.problem import Problem
from orchestrator.schedulers.fanout import Fanout
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import closing
from orchestrator.transports.local import LocalTransport

LOG = b"Iteration: 1\n" * 50_000  # 650 kB
TASK = Task("left", 0, ("true",), {}, (), ())
CLUSTER = Cluster.model_validate_json(
    '{"name": "far", "defaults": {"runtime": "process"}, "nodes":'
    ' [{"name": "left", "address": "10.0.0.1"}]}'
)


def attempt(sweep: Sweep, there: Path) -> Attempt:
    return Attempt(sweep.id, "t", 1, {"left": str(there)}, 20_000, (TASK,))


def elsewhere() -> Fanout:
    """A node that is not the controller's, reached without SSH."""
    fleet = Fleet(CLUSTER, {"left": LocalTransport("left")})
    return Fanout(fleet, Path("state"), lambda: False)


def end(log: bytes) -> TaskEnd:
    return TaskEnd("left", 0, 0, "exited", len(log), hashlib.sha256(log).hexdigest(), 1.0)


def done(log: bytes) -> GangEnd:
    """The gang that ended well with this log."""
    return GangEnd("done", (end(log),))


def sweep_in(state: Path) -> Sweep:
    return Sweep(state / "sweeps" / "x-20260101-000000-abcdef")


def close(
    sweep: Sweep, nodes: Scheduler, attempt: Attempt, gang: GangEnd | None = None
) -> tuple[Problem, ...]:
    """End an attempt, copy its files and let its nodes go; what is missing of the files."""
    missing = closing.end_and_copy(sweep, nodes, attempt, gang)
    closing.forget_folders(sweep, nodes, attempt)
    return missing
