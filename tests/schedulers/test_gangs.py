"""Gangs while they run: none disturbs another, and a node is silent only if it gives no answer."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.deadlines import NODE_LOST_S
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Task
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.schedulers.fanout import Fanout
from orchestrator.schedulers.gang import Gang
from orchestrator.transports import Completed
from orchestrator.transports.local import LocalTransport
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
LIMITS = Limits(time_s=120, stall_s=120, grace_s=1, create_s=60)
DEAF = ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
SILENT = tuple(f"n{number}" for number in range(1, 7))
NODES = [{"name": name, "address": f"10.0.0.{name[1:]}"} for name in (*SILENT, "n7")]
CLUSTER = Cluster.model_validate_json(
    json.dumps({"name": "seven", "defaults": {"runtime": "process"}, "nodes": NODES})
)


class Node(LocalTransport):
    """This machine as a node that may stop answering."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.answers = threading.Event()
        self.answers.set()

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        self.answers.wait(60)
        return super().run(argv, timeout_s=timeout_s)

    def get(self, path: str, offset: int = 0, *, own: bool = False) -> bytes | None:
        self.answers.wait(60)
        return super().get(path, offset, own=own)


class Gangs:
    """A gang of six nodes, and one of another node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes = {name: Node(name) for name in (*SILENT, "n7")}
        self.runtimes = {name: ProcessRuntime(node) for name, node in self.nodes.items()}
        self.fanout = Fanout(Fleet(CLUSTER, self.nodes), folder, lambda: self.stop)
        self.many = self._attempt(folder / "many", SILENT)
        self.other = self._attempt(folder / "other", ("n7",))
        self.stop = False
        self.ends: dict[str, GangEnd] = {}

    def _attempt(self, folder: Path, names: tuple[str, ...]) -> Attempt:
        tasks = tuple(Task(name, rank, DEAF, {}, (), ()) for rank, name in enumerate(names))
        folders = dict.fromkeys(names, str(folder))
        return Attempt(f"s{os.getpid()}", folder.name, 1, folders, 29500, tasks)

    def run(self, attempt: Attempt) -> None:
        """Run a gang from its start to its end, as a lane does."""
        assert self.fanout.launch(attempt, LIMITS)
        self.ends[attempt.trial] = self.fanout.wait(attempt, LIMITS, lambda _: None)
        self.fanout.clear(attempt)

    def runs(self, attempt: Attempt) -> bool:
        """Return whether all gates of a gang have opened."""
        gates = Path(attempt.folder(attempt.tasks[0])).glob("r*.go")
        return len(list(gates)) == len(attempt.tasks)


@pytest.fixture
def gangs(tmp_path: Path) -> Iterator[Gangs]:
    """Make both gangs, and end what is left of them afterwards."""
    made = Gangs(tmp_path)
    yield made
    for node in made.nodes.values():
        node.answers.set()
    for attempt in (made.many, made.other):
        for task in attempt.tasks:
            made.runtimes[task.node].remove(attempt, task)


def test_silent_nodes_of_one_gang_do_not_delay_the_end_of_another(gangs: Gangs) -> None:
    """More of them than threads: the other gang is told to end, and is seen to have ended."""
    lanes = [
        threading.Thread(target=gangs.run, args=(attempt,)) for attempt in (gangs.many, gangs.other)
    ]
    for lane in lanes:
        lane.start()
    wait_for(lambda: gangs.runs(gangs.many) and gangs.runs(gangs.other), "both gangs run")
    for name in SILENT:
        gangs.nodes[name].answers.clear()
    time.sleep(0.5)
    gangs.stop = True
    lanes[1].join(60)
    assert [end.why for end in gangs.ends["other"].ends] == ["stopped"]
    assert gangs.many.trial not in gangs.ends
    for name in SILENT:
        gangs.nodes[name].answers.set()
    lanes[0].join(60)
    assert gangs.ends["many"].reason == "stopped"


def test_a_peer_that_fails_after_the_first_has_time_to_say_so(gangs: Gangs, tmp_path: Path) -> None:
    """What the first failure brings down may be the cause: it is not stopped at once."""
    ends = "until [ -e r0.end ]; do sleep 0.01; done; sleep 0.2; exit 3"
    tasks = (
        Task("n1", 0, ("sh", "-c", "exit 1"), {}, (), ()),
        Task("n2", 1, ("sh", "-c", ends), {}, (), ()),
    )
    folders = dict.fromkeys(("n1", "n2"), str(tmp_path / "peers"))
    attempt = Attempt(f"s{os.getpid()}", "peers", 1, folders, 29500, tasks)
    gangs.run(attempt)
    end = gangs.ends["peers"]
    assert end.reason == "failed"
    assert [(task.why, task.status) for task in end.ends] == [("exited", 1), ("exited", 3)]


def run_alone(
    gangs: Gangs, script: str, limits: Limits, stopping: Callable[[], bool], *, busy: int = 0
) -> tuple[str, list[str]]:
    """Run a script as a gang of one node, with ``busy`` threads of its pool; return its end."""
    folders = {"n1": str(gangs.folder)}
    task = Task("n1", 0, ("sh", "-c", script), {}, (), ())
    attempt = Attempt(f"s{os.getpid()}", "alone", 1, folders, 29500, (task,))
    try:
        assert gangs.fanout.launch(attempt, limits)
        gang = Gang(attempt, limits, lambda _: gangs.runtimes["n1"])
        for _ in range(busy):
            gang.pool.submit(lambda: time.sleep(NODE_LOST_S + 1))
        end = gang.run(lambda _: None, stopping)
    finally:
        gangs.fanout.clear(attempt)
    return end.reason, [task_end.why for task_end in end.ends]


def test_a_node_that_waits_for_its_turn_to_be_asked_is_not_silent(gangs: Gangs) -> None:
    """All threads ask others for longer than a silent node is given: its program's end counts."""
    began = time.monotonic()
    assert run_alone(gangs, "echo done", LIMITS, lambda: False, busy=3) == ("done", ["exited"])
    assert time.monotonic() - began > NODE_LOST_S


def test_time_in_which_the_controller_stood_still_is_no_silence(gangs: Gangs) -> None:
    """As after Ctrl-Z, or on a laptop that slept: what ended well meanwhile counts."""
    limits = Limits(time_s=7, stall_s=5, grace_s=1, create_s=30)
    pauses = [NODE_LOST_S + 1]

    def stand_still() -> bool:
        time.sleep(pauses.pop() if pauses else 0)
        return False

    script = "echo begins; sleep 3; echo done"
    assert run_alone(gangs, script, limits, stand_still) == ("done", ["exited"])
