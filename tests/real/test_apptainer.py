"""Sweeps in containers of the real apptainer, under a real Slurm on two virtual nodes.

The image is pulled from a registry by apptainer; the toy of the tests runs in it. What serves its
file system is in apptainer's process group, as before 1.4.5.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import cluster, slurm
from tests.commands import ended
from tests.login import SLOW, Login
from tests.real import apptainer, inside
from tests.real.inside import LANG, as_planned, provisioned, seen, with_env
from tests.waiting import wait_for

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def prepared() -> Iterator[Login]:
    """Two nodes that have apptainer, and a folder there that was provisioned."""
    if words := slurm.lacking() or apptainer.lacking():
        pytest.skip(words)
    with cluster(2, slurm=True) as nodes:
        path = f"{apptainer.install(nodes)}:{os.environ['PATH']}"
        leaks = {"LEAKED": "of the user", "APPTAINERENV_LEAKED": "too", "APPTAINER_BIND": "/nope"}
        plain_http = {"APPTAINER_NOHTTPS": "1"}
        login = provisioned(nodes, "apptainer", PATH=path, **leaks, **plain_http)
        yield login
        login.end()


@pytest.fixture
def login(prepared: Login) -> Iterator[Login]:
    """The person; what she left is ended."""
    yield prepared
    prepared.end()


def nothing_left(login: Login) -> None:
    """No process, step or job; no container."""
    login.nothing_left()
    nodes = login.cluster
    wait_for(lambda: not apptainer.left(nodes), f"no container: {apptainer.left(nodes)}")


def running(login: Login) -> Any:
    """A sweep over both nodes whose containers are there."""
    return inside.running(login, lambda: set(apptainer.left(login.cluster)))


def test_a_sweep_runs_inside_the_image_and_is_measured(login: Login) -> None:
    """Numbers are those of the raw logs; mounts, folder and environment are those of the plan."""
    login.playbook(("1x1", "2x2"), step_s=0.02, iterations=11)
    with_env(login, "A_WORD: 'one, two'")
    login.must("sweep", "toy")
    login.whole(2)
    assert list(seen(login, "1n1g")) == ["vs001"]
    tasks = seen(login, "2n2g")
    assert list(tasks) == ["vs001", "vs002"]
    (folder,) = login.sweep().glob("attempts/2n2g-*/a1")
    as_planned(tasks, folder, "registry.example-toy-1.sif")
    for task in tasks.values():
        assert task["env"]["LANG"] == LANG  # the image's own, neither C nor the user's
        assert not [name for name in task["env"] if name.startswith("SLURM_")]
    nothing_left(login)


def test_a_programs_own_exit_status_arrives(login: Login) -> None:
    """It is told as the program's, and not as a container that did not start."""
    login.playbook(("2x1",), step_s=0.02, iterations=11)
    with_env(login, "EXIT_WITH: 1")
    done = login.must("sweep", "toy", "--new", code=3)
    (outcome,) = [json.loads(path.read_text()) for path in login.sweep().glob("logs/*/*.json")]
    assert outcome["state"] == "failed"
    assert "exit status 1" in str(outcome["problems"])
    assert "CONTAINER-START" not in done.stderr
    nothing_left(login)


def test_a_container_that_does_not_start_is_told_with_its_node(login: Login) -> None:
    """By sweep and by provision, in apptainer's words."""
    login.playbook(("2x1",), step_s=0.02, iterations=11)
    node = login.cluster.node(1)
    node.must("mv /dev/fuse /dev/away")
    try:
        for words in (("sweep", "toy", "--new"), ("provision", "queue")):
            done = login.must(*words, code=5)
            assert "ERROR CONTAINER-START node=vs002" in done.stderr
            assert "squashfuse_ll exited: fuse: " in done.stderr
    finally:
        node.must("mv /dev/away /dev/fuse")
    nothing_left(login)
    login.must("provision", "queue")


def test_a_cancelled_step_leaves_nothing_and_is_measured_again(login: Login) -> None:
    """Its containers end with it; the second attempt counts."""
    started = running(login)
    (step,) = login.gangs()
    login.slurm.ask("scancel", step)
    code, said = ended(started)
    assert code == 0, said
    states = [event["state"] for event in login.events("outcome")]
    assert states == ["infra-lost", "valid"]
    nothing_left(login)


def test_a_controller_that_is_killed_leaves_nothing(login: Login) -> None:
    """Its job ends with it, and the same command goes on."""
    started = running(login)
    login.cluster.node(0).must("kill -KILL $(pgrep -f '[o]rchestrator sweep toy')")
    code, said = ended(started)
    assert code != 0, said
    nothing_left(login)
    login.playbook(("2x1",), step_s=SLOW)
    login.must("sweep", "toy")
    assert [event["state"] for event in login.events("outcome")] == ["infra-lost", "valid"]
    nothing_left(login)


def test_a_sweep_that_is_stopped_leaves_nothing(login: Login) -> None:
    """The job ends in good order; the supervisor in the container says that it was told to."""
    started = running(login)
    login.must("stop")
    assert ended(started)[0] == 143
    assert [event["state"] for event in login.events("outcome")] == ["interrupted"]
    (folder,) = login.sweep().glob("attempts/*/a1")
    assert [(folder / f"r{rank}.exit").read_text().split()[1] for rank in (0, 1)] == ["stopped"] * 2
    nothing_left(login)
