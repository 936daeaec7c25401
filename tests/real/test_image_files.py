"""Sweeps in containers of the real pyxis and apptainer, under a real Slurm on two virtual nodes.

The image is imported from a registry; the toy of the tests runs in it. What a sweep says of itself
is compared with what the nodes, Slurm's queue and the program itself saw.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster, cluster, slurm
from tests.commands import ended, told
from tests.people import SLOW, Login
from tests.processes import wait_for
from tests.real import apptainer, inside, pyxis
from tests.real.inside import LANG, as_planned, provisioned, seen, with_env

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Kind:
    """A way to run image files.

    Args:
        install: puts the programs onto a cluster and returns their folder.
        left: by node, containers that are there, and files and mounts of them.
        env: variables of the user that must not get into a container.
        cause: words about a container that cannot start.
    """

    name: str
    lacking: Callable[[], str]
    install: Callable[[Cluster], Path]
    left: Callable[[Cluster], Mapping[str, str]]
    env: Mapping[str, str]
    image: str
    cause: str


def install_pyxis(nodes: Cluster) -> Path:
    prefix = pyxis.built()
    pyxis.install(nodes, prefix)
    return prefix / "bin"


KINDS = (
    Kind(
        "pyxis",
        pyxis.lacking,
        install_pyxis,
        pyxis.left,
        {},
        "registry.example-toy-1.sqsh",
        "cannot create directory",
    ),
    Kind(
        "apptainer",
        apptainer.lacking,
        apptainer.install,
        apptainer.left,
        # It serves its file system in its own process group, as before 1.4.5.
        {"APPTAINERENV_LEAKED": "too", "APPTAINER_BIND": "/nope", "APPTAINER_NOHTTPS": "1"},
        "registry.example-toy-1.sif",
        "squashfuse_ll exited: fuse: ",
    ),
)


@dataclass(frozen=True)
class Prepared:
    """A person on nodes that have the programs and were provisioned."""

    kind: Kind
    login: Login

    def nothing_left(self) -> None:
        """Wait until no process, step, job or container is left."""
        self.login.nothing_left()
        nodes, left = self.login.cluster, self.kind.left
        wait_for(lambda: not left(nodes), f"no container: {left(nodes)}")

    def running(self) -> Any:
        """Start a sweep over both nodes whose containers are there."""
        return inside.running(self.login, lambda: set(self.kind.left(self.login.cluster)))

    def states(self) -> list[str]:
        return [event["state"] for event in self.login.events("outcome")]


@pytest.fixture(scope="module", params=KINDS, ids=[kind.name for kind in KINDS])
def prepared(request: pytest.FixtureRequest) -> Iterator[Prepared]:
    """Two nodes that have the programs, and a folder there that was provisioned."""
    kind: Kind = request.param
    if words := slurm.lacking() or kind.lacking():
        pytest.skip(words)
    with cluster(2, slurm=True) as nodes:
        path = f"{kind.install(nodes)}:{os.environ['PATH']}"
        login = provisioned(nodes, kind.name, PATH=path, LEAKED="of the user", **kind.env)
        yield Prepared(kind, login)
        login.end()


@pytest.fixture
def here(prepared: Prepared) -> Iterator[Prepared]:
    """The person; what she left is ended."""
    yield prepared
    prepared.login.end()


def test_init_finds_pyxis(here: Prepared) -> None:
    """Its inventory is for containers by pyxis where srun takes its options."""
    said = here.login.json("init", "--slurm", "main", "-o", "inventory/found.yaml")
    assert ("\n  runtime: pyxis\n" in said["inventory"]) == (here.kind.name == "pyxis")


def test_a_sweep_runs_inside_the_image_and_is_measured(here: Prepared) -> None:
    """Numbers are those of the raw logs; mounts, folder and environment are those of the plan."""
    login = here.login
    login.playbook(("1x1", "2x2"), step_s=0.02, iterations=11)
    with_env(login, "A_WORD: 'one, two'")
    login.must("sweep", "toy")
    login.whole(2)
    assert list(seen(login, "1n1g")) == ["vs001"]
    tasks = seen(login, "2n2g")
    assert list(tasks) == ["vs001", "vs002"]
    (folder,) = login.sweep().glob("attempts/2n2g-*/a1")
    as_planned(tasks, folder, here.kind.image)
    for task in tasks.values() if here.kind.name == "apptainer" else ():
        assert task["env"]["LANG"] == LANG  # the image's own, neither C nor the user's
        assert not [name for name in task["env"] if name.startswith("SLURM_")]
    here.nothing_left()


def test_a_programs_own_exit_status_arrives(here: Prepared) -> None:
    """It is told as the program's, and not as a container that did not start."""
    here.login.playbook(("2x1",), step_s=0.02, iterations=11)
    with_env(here.login, "EXIT_WITH: 1")
    done = here.login.must("sweep", "toy", "--new", code=3)
    (path,) = here.login.sweep().glob("logs/*/*.json")
    outcome = json.loads(path.read_text())
    assert outcome["state"] == "failed"
    assert "exit status 1" in str(outcome["problems"])
    assert "CONTAINER-START" not in done.stderr
    here.nothing_left()


def test_a_container_that_does_not_start_is_told_with_its_node(here: Prepared) -> None:
    """By sweep and by provision, in the runtime's words; what was unpacked meanwhile is removed.

    Enroot leaves files now and then; so files of an ended step of the coming job are put there.
    """
    login, found = here.login, pyxis.FOUND
    login.playbook(("2x1",), step_s=0.02, iterations=11)
    first, node = login.cluster.nodes
    if here.kind.name == "pyxis":
        coming = max(map(int, login.slurm.jobs())) + 1
        first.must(f"mkdir -p {found}/pyxis_{coming}.0/usr")
        spoil = f"mkdir -p {found} && mv {found} /root/kept && touch {found}"
        mend = f"rm {found} && mv /root/kept {found}"
    else:
        spoil, mend = "mv /dev/fuse /dev/away", "mv /dev/away /dev/fuse"
    node.must(spoil)
    try:
        for words in (("sweep", "toy", "--new"), ("provision", "queue")):
            done = login.must(*words, code=5)
            assert "ERROR CONTAINER-START node=vs002" in done.stderr
            assert here.kind.cause in done.stderr
    finally:
        node.must(mend)
    here.nothing_left()
    login.must("provision", "queue")


def test_a_cancelled_step_leaves_nothing_and_is_measured_again(here: Prepared) -> None:
    """Its containers end with it; the second attempt counts."""
    started = here.running()
    (step,) = here.login.gangs()
    here.login.slurm.ask("scancel", step)
    told(started)
    assert here.states() == ["infra-lost", "valid"]
    if here.kind.name == "pyxis":
        assert here.login.events("outcome")[0]["code"] == "LOST"
    here.nothing_left()


def test_a_controller_that_is_killed_leaves_nothing(here: Prepared) -> None:
    """Its job ends with it, and the same command goes on."""
    started = here.running()
    here.login.cluster.node(0).must("kill -KILL $(pgrep -f '[o]rchestrator sweep toy')")
    code, said = ended(started)
    assert code != 0, said
    here.nothing_left()
    here.login.playbook(("2x1",), step_s=SLOW)
    here.login.must("sweep", "toy")
    assert here.states() == ["infra-lost", "valid"]
    here.nothing_left()


def test_a_sweep_that_is_stopped_leaves_nothing(here: Prepared) -> None:
    """The job ends in good order; apptainer's supervisor says that it was told to."""
    started = here.running()
    here.login.must("stop")
    assert ended(started)[0] == 143
    assert here.states() == ["interrupted"]
    (folder,) = here.login.sweep().glob("attempts/*/a1")
    if here.kind.name == "apptainer":
        said = [(folder / f"r{rank}.exit").read_text().split()[1] for rank in (0, 1)]
        assert said == ["stopped"] * 2
    here.nothing_left()
