"""What gangs under a real Slurm see of their nodes at their end, in place of steps in between."""

import os
import re
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, cluster
from tests.cluster.slurm import lacking
from tests.login import PROGRAM, Login, ended
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
LISTENER = """
setsid -f python3 -c "
import socket, time
taken = socket.create_server(('', {port}))
time.sleep(600)
" >/dev/null 2>&1
"""
BEFORE = 3  # steps: the nodes observed, data sets under preparation, what earlier gangs left
DEAD = "setsid -f env DLPERF_JOB=4000 DLPERF_TASK=dlp-dead-a1-r0 sleep 600 >/dev/null 2>&1"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two virtual nodes with a Slurm over them."""
    if words := lacking():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)
    with cluster(2, slurm=True) as up:
        yield up


def repeats(login: Login, count: int) -> None:
    """So many trials of one case on two nodes."""
    login.playbook(step_s=0.1)
    path = login.folder / "playbooks" / "toy.yaml"
    path.write_text(path.read_text().replace("repeats: 1", f"repeats: {count}"))


def started(login: Login) -> int:
    """How many steps the newest job had."""
    job = max(map(int, login.slurm.jobs()))
    logs = login.cluster.place.folder.glob("nodes/*/var/log/slurmd.log")
    said = "".join(log.read_text() for log in logs)
    return len(set(re.findall(rf"launch task StepId={job}\.(\d+) ", said)))


def test_no_step_looks_at_the_nodes_between_two_trials(login: Login) -> None:
    """Those before the first do, and then each gang's own sees that it left nothing.

    On a machine under load what it saw may have become too old, once.
    """
    repeats(login, 3)
    done = login.run("sweep", "toy")
    assert done.returncode == 0, done.stderr
    login.whole(3)
    assert BEFORE + 3 <= started(login) <= BEFORE + 4
    login.nothing_left()


def test_a_port_that_is_taken_while_a_gang_runs_is_not_given_to_the_next(login: Login) -> None:
    """Also on a node that is not the leader's."""
    repeats(login, 2)
    running = login.sweeping("toy")
    (first,) = login.events("intent")
    second = login.cluster.node(1)
    second.must(LISTENER.format(port=first["port"] + 1))
    try:
        code, said = ended(running)
    finally:
        second.must("kill $(pgrep -f '[c]reate_server')")
    assert code == 0, said
    assert [event["port"] - first["port"] for event in login.events("intent")] == [0, 2]
    login.whole(2)


def test_what_a_dead_job_left_is_ended_before_the_next_gang(login: Login) -> None:
    """The gang's step sees it and does not say that its node is clean, so a step ends it."""
    repeats(login, 2)
    running = login.start(*PROGRAM, "sweep", "toy")
    wait_for(login.steps, "iterations")
    second = login.cluster.node(1)
    second.must(DEAD)
    wait_for(lambda: len(login.events("intent")) == 2, "the second trial")
    assert not second.sh("pgrep -f '[s]leep 600'").stdout
    code, said = ended(running)
    assert code == 0, said
    assert started(login) > BEFORE + 2
    login.whole(2)
    login.nothing_left()
