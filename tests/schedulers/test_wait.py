"""A gang that is watched with fewer threads than it has nodes."""

import os
import time
from pathlib import Path

import pytest

from orchestrator.deadlines import NODE_LOST_S
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Task
from orchestrator.schedulers.fanout import Fanout
from orchestrator.schedulers.gang import Gang
from orchestrator.transports.local import LocalTransport

pytestmark = pytest.mark.cluster
LIMITS = Limits(time_s=60, stall_s=60, grace_s=1, create_s=30)
CLUSTER = Cluster.model_validate_json(
    '{"name": "one", "defaults": {"runtime": "process"}, "nodes":'
    ' [{"name": "n1", "address": "10.0.0.1"}]}'
)


def node() -> Fanout:
    """This machine as a node."""
    return Fanout(Fleet(CLUSTER, {"n1": LocalTransport("n1")}), Path("state"), lambda: False)


def test_a_node_that_waits_for_its_turn_to_be_asked_is_not_silent(tmp_path: Path) -> None:
    """All threads ask others for longer than a silent node is given: its program's end counts."""
    task = Task("n1", 0, ("sh", "-c", "echo done"), {}, (), ())
    attempt = Attempt(f"s{os.getpid()}", "turn", 1, {"n1": str(tmp_path)}, 29500, (task,))
    runtime, gangs = Fleet(CLUSTER, {"n1": LocalTransport("n1")}).runtime("n1", ""), node()
    try:
        assert gangs.launch(attempt, LIMITS)
        gang = Gang(attempt, LIMITS, lambda _: runtime)
        for _ in range(3):
            gang.pool.submit(lambda: time.sleep(NODE_LOST_S + 1))
        began = time.monotonic()
        end = gang.run(lambda _: None, lambda: False)
        lasted_s = time.monotonic() - began
    finally:
        gangs.clear(attempt)
    assert lasted_s > NODE_LOST_S
    assert (end.reason, [task_end.why for task_end in end.ends]) == ("done", ["exited"])


def test_time_in_which_the_controller_stood_still_is_no_silence(tmp_path: Path) -> None:
    """As after Ctrl-Z, or on a laptop that slept: what ended well meanwhile counts."""
    words = ("sh", "-c", "echo begins; sleep 3; echo done")
    task = Task("n1", 0, words, {}, (), ())
    attempt = Attempt(f"s{os.getpid()}", "pause", 1, {"n1": str(tmp_path)}, 29500, (task,))
    limits = Limits(time_s=7, stall_s=5, grace_s=1, create_s=30)
    pauses = [NODE_LOST_S + 1]

    def stand_still() -> bool:
        time.sleep(pauses.pop() if pauses else 0)
        return False

    runtime, gangs = Fleet(CLUSTER, {"n1": LocalTransport("n1")}).runtime("n1", ""), node()
    try:
        assert gangs.launch(attempt, limits)
        end = Gang(attempt, limits, lambda _: runtime).run(lambda _: None, stand_still)
    finally:
        gangs.clear(attempt)
    assert (end.reason, [task_end.why for task_end in end.ends]) == ("done", ["exited"])
