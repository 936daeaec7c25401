"""A gang that is watched with fewer threads than it has nodes."""

import os
import time
from pathlib import Path

import pytest

from orchestrator.deadlines import NODE_LOST_S
from orchestrator.fleet import Pool
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Task
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.schedulers.gangs import Gangs, Wait
from orchestrator.transports.local import LocalTransport

pytestmark = pytest.mark.cluster
LIMITS = Limits(time_s=60, stall_s=60, grace_s=1, create_s=30)


def test_a_node_that_waits_for_its_turn_to_be_asked_is_not_silent(tmp_path: Path) -> None:
    """All threads ask others for longer than a silent node is given: its program's end counts."""
    task = Task("n1", 0, ("sh", "-c", "echo done"), {}, (), ())
    attempt = Attempt(f"s{os.getpid()}", "turn", 1, {"n1": str(tmp_path)}, 29500, (task,))
    runtimes = {"n1": ProcessRuntime(LocalTransport("n1"))}
    pool = Pool(1)
    gangs = Gangs(runtimes, lambda: False)
    try:
        assert gangs.launch(attempt, LIMITS)
        pool.submit(lambda: time.sleep(NODE_LOST_S + 1))
        began = time.monotonic()
        end = Wait(attempt, LIMITS, runtimes, pool).run(lambda _: None, lambda: False)
        lasted_s = time.monotonic() - began
    finally:
        gangs.clear(attempt)
        pool.close()
    assert lasted_s > NODE_LOST_S
    assert (end.reason, [task_end.why for task_end in end.ends]) == ("done", ["exited"])


def test_time_in_which_the_controller_stood_still_is_no_silence(tmp_path: Path) -> None:
    """As after Ctrl-Z, or on a laptop that slept: what ended well meanwhile counts."""
    words = ("sh", "-c", "echo begins; sleep 3; echo done")
    task = Task("n1", 0, words, {}, (), ())
    attempt = Attempt(f"s{os.getpid()}", "pause", 1, {"n1": str(tmp_path)}, 29500, (task,))
    runtimes = {"n1": ProcessRuntime(LocalTransport("n1"))}
    limits = Limits(time_s=7, stall_s=5, grace_s=1, create_s=30)
    pauses = [NODE_LOST_S + 1]

    def stand_still() -> bool:
        time.sleep(pauses.pop() if pauses else 0)
        return False

    pool = Pool(2)
    gangs = Gangs(runtimes, lambda: False)
    try:
        assert gangs.launch(attempt, limits)
        end = Wait(attempt, limits, runtimes, pool).run(lambda _: None, stand_still)
    finally:
        gangs.clear(attempt)
        pool.close()
    assert (end.reason, [task_end.why for task_end in end.ends]) == ("done", ["exited"])
