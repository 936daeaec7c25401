"""Sweeps in containers of the real pyxis and enroot, under a real Slurm on two virtual nodes.

The image is imported from a registry by enroot; the toy of the tests runs in it. What a sweep says
of itself is compared with what the nodes, Slurm's queue and the program itself saw.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import cluster, slurm
from tests.commands import ended, told
from tests.login import SLOW, Login
from tests.real import inside, pyxis
from tests.real.inside import as_planned, provisioned, seen, with_env
from tests.waiting import wait_for

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def prepared() -> Iterator[Login]:
    """Two nodes whose Slurm knows pyxis, and a folder there that was provisioned."""
    if words := slurm.lacking() or pyxis.lacking():
        pytest.skip(words)
    prefix = pyxis.built()
    with cluster(2, slurm=True) as nodes:
        pyxis.install(nodes, prefix)
        path = f"{prefix}/bin:{os.environ['PATH']}"
        login = provisioned(nodes, "pyxis", PATH=path, LEAKED="of the user")
        yield login
        login.end()


@pytest.fixture
def login(prepared: Login) -> Iterator[Login]:
    """The person; what she left is ended."""
    yield prepared
    prepared.end()


def nothing_left(login: Login) -> None:
    """No process, step or job; no container, file or mount of one."""
    login.nothing_left()
    wait_for(lambda: not pyxis.left(login.cluster), f"no container: {pyxis.left(login.cluster)}")


def running(login: Login) -> Any:
    """A sweep over both nodes whose containers are there."""
    return inside.running(login, lambda: set(pyxis.left(login.cluster)))


def test_init_finds_pyxis(login: Login) -> None:
    """Its inventory is for containers by pyxis, since srun takes its options."""
    said = login.json("init", "--slurm", "main", "-o", "inventory/found.yaml")
    assert "\n  runtime: pyxis\n" in said["inventory"]


def test_a_sweep_runs_inside_the_image_and_is_measured(login: Login) -> None:
    """Numbers are those of the raw logs; mounts, folder and environment are those of the plan."""
    login.playbook(("1x1", "2x2"), step_s=0.02, iterations=11)
    with_env(login, "A_WORD: 'one, two'")
    login.must("sweep", "toy")
    login.whole(2)
    collected = json.loads(login.run("collect", "--json").stdout)
    assert [case["median"] for case in collected["cases"]] == [
        case["trials"][0]["throughput"] for case in collected["cases"]
    ]
    assert list(seen(login, "1n1g")) == ["vs001"]
    tasks = seen(login, "2n2g")
    assert list(tasks) == ["vs001", "vs002"]
    (folder,) = login.sweep().glob("attempts/2n2g-*/a1")
    as_planned(tasks, folder, "registry.example-toy-1.sqsh")
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
    """By sweep and by provision; what another node had unpacked until then is removed.

    Enroot leaves that now and then; so files of an ended step of the coming job are put there.
    """
    login.playbook(("2x1",), step_s=0.02, iterations=11)
    first, node = login.cluster.nodes
    coming = max(map(int, login.slurm.jobs())) + 1
    first.must(f"mkdir -p {pyxis.FOUND}/pyxis_{coming}.0/usr")
    node.must(f"mkdir -p {pyxis.FOUND} && mv {pyxis.FOUND} /root/kept && touch {pyxis.FOUND}")
    try:
        for words in (("sweep", "toy", "--new"), ("provision", "queue")):
            done = login.must(*words, code=5)
            assert "ERROR CONTAINER-START node=vs002" in done.stderr
            assert "cannot create directory" in done.stderr
    finally:
        node.must(f"rm {pyxis.FOUND} && mv /root/kept {pyxis.FOUND}")
    nothing_left(login)
    login.must("provision", "queue")


def test_a_cancelled_step_leaves_nothing_and_is_measured_again(login: Login) -> None:
    """Its containers end with it; the second attempt counts."""
    started = running(login)
    (step,) = login.gangs()
    login.slurm.ask("scancel", step)
    told(started)
    states = [(event["state"], event["code"]) for event in login.events("outcome")]
    assert states == [("infra-lost", "LOST"), ("valid", "")]
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
    """The job ends in good order."""
    started = running(login)
    login.must("stop")
    assert ended(started)[0] == 143
    assert [event["state"] for event in login.events("outcome")] == ["interrupted"]
    nothing_left(login)
