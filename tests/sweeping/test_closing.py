"""Whoever closes an attempt ends all of it: processes, private keys, gates, folders."""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.schedulers.fanout import Fanout
from orchestrator.sweeping import closing
from orchestrator.transports.local import LocalTransport
from tests.sweeping.elsewhere import LOG, TASK, attempt, close, done, elsewhere, sweep_in
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
KEYS = ("id", "r0.host_key", "r0.known_hosts")
LIMITS = Limits(time_s=600, stall_s=600, grace_s=1, create_s=600)
TWO = Cluster.model_validate_json(
    '{"name": "far", "defaults": {"runtime": "process", "port": 9}, "nodes":'
    ' [{"name": "left", "address": "10.0.0.1"}, {"name": "right", "address": "127.0.0.1"}]}'
)


def seat(name: str) -> Seat:
    """A node of the attempt."""
    return Seat(name, "10.0.0.1" if name == "left" else "127.0.0.1", (), None, (), {})


def node(folder: Path) -> Path:
    """A node's folder of an attempt with the files that mpirun needs."""
    there = folder / "node" / "s" / "attempts" / "t" / "a1"
    there.mkdir(parents=True)
    (there / "r0.log").write_bytes(LOG)
    for name in KEYS:
        (there / name).write_text("key")
    return there


def with_keys(there: Path, folder: Path) -> Attempt:
    """The attempt on that node alone."""
    task = replace(TASK, files=KEYS)
    return replace(attempt(sweep_in(folder), there), tasks=(task,), seats=(seat("left"),))


def also_on(one: Attempt, name: str) -> Attempt:
    """The attempt with a second task on another node."""
    other = replace(TASK, node=name, node_rank=1, files=())
    seats = (*one.seats, seat(name))
    folders = {**one.folders, name: "/nonexistent/a1"}
    return replace(one, tasks=(*one.tasks, other), folders=folders, seats=seats)


def kept_keys(there: Path) -> list[str]:
    """The private keys that are still there."""
    return sorted(path.name for path in [*there.glob("*id"), *there.glob("*host_key")])


@pytest.mark.parametrize("gang", [done(LOG), done(LOG[:-1]), None])
def test_an_attempt_is_closed_without_its_keys(tmp_path: Path, gang: GangEnd | None) -> None:
    """Also where its log was not copied whole, and where nobody watched it."""
    there, sweep = node(tmp_path), sweep_in(tmp_path)
    close(sweep, elsewhere(), with_keys(there, tmp_path), gang)
    assert kept_keys(there) == []
    assert (there / "r0.log").exists() == (gang == done(LOG[:-1]))


def test_an_outcome_that_cannot_be_kept_keeps_no_keys(tmp_path: Path) -> None:
    """Before it is kept, as on a full disk of the controller, the log stays on its node."""
    there, sweep = node(tmp_path), sweep_in(tmp_path)
    assert closing.end_and_copy(sweep, elsewhere(), with_keys(there, tmp_path), done(LOG)) == ()
    assert kept_keys(there) == []
    assert (there / "r0.log").read_bytes() == LOG


def test_a_node_that_is_left_out_keeps_no_keys_on_the_others(tmp_path: Path) -> None:
    """The attempt stays open, and the files of the node that was reached stay until it closes."""
    there, sweep = node(tmp_path), sweep_in(tmp_path)
    both = also_on(with_keys(there, tmp_path), "elsewhere")
    reached = closing.close_left(sweep, elsewhere(), both)
    assert reached.nodes == ("left",)
    assert kept_keys(there) == []
    assert (there / "r0.log").read_bytes() == LOG
    assert sweep.events() == ()


def test_a_node_without_an_answer_keeps_no_keys_on_the_others(tmp_path: Path) -> None:
    """LEFTOVER names it, and its task; the attempt has no outcome."""
    there, sweep = node(tmp_path), sweep_in(tmp_path)
    both = also_on(with_keys(there, tmp_path), "right")
    reached = {**Fleet.of(TWO).transports, "left": LocalTransport("left")}
    nodes = Fanout(Fleet(TWO, reached), Path("state"), lambda: False)
    with pytest.raises(errors.LeftoverError, match=f"{both.token(both.tasks[1])} on right") as told:
        closing.close_left(sweep, nodes, both)
    assert told.value.where["node"] == "right"
    assert kept_keys(there) == []
    assert sweep.events() == ()


def test_a_supervisor_that_was_killed_at_its_gate_leaves_no_gate(tmp_path: Path) -> None:
    """On this machine the folder stays, as evidence; nobody reads these FIFOs any more."""
    there, sweep = tmp_path / "a1", sweep_in(tmp_path)
    there.mkdir()
    one = replace(attempt(sweep, there), seats=(seat("left"),))
    nodes = elsewhere()
    runtime = nodes._runtime("left")  # the one that its scheduler uses
    runtime.create(one, one.tasks[0], LIMITS)
    files = TaskFiles(LocalTransport("left"), one, one.tasks[0])
    wait_for(lambda: files.supervisor() is not None, "it waits at its gate")
    supervisor = files.supervisor()
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    closing.end_attempt(nodes, one)
    assert not [path.name for path in there.iterdir() if path.is_fifo() or path.suffix == ".new"]
    token = f"={one.token(one.tasks[0])}"
    found = subprocess.run(
        ["sh", "-c", 'grep -lsF -e "$1" /proc/[0-9]*/environ', "sh", token],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""
