"""Containers under a real Slurm, with a real Docker engine on every node.

Stand-ins run behind the benchmark's own command lines. What a sweep says of itself is compared with
what the engines, the process tables and Slurm's queue say.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster, overlay
from tests.cluster.place import STUBS
from tests.commands import told
from tests.people import PROGRAM, Login, holds
from tests.processes import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
IMAGE = "ngc-pytorch-20.03"
SETTINGS = f"""\
  gpus: {{count: 8, model: Tesla V100-SXM2-16GB}}
  hcas: [{{name: mlx5_0, rate_gbps: 100}}]
  data: {{imagenet: /data/image}}
  interface: ib0
container: {{shm_size: 1g, ulimits: {{memlock: 8388608}}}}
registry: {{mirror: '10.11.0.1:5000'}}
images: [{IMAGE}]
"""
QUEUE = f"""\
name: queue
scheduler: slurm
slurm: {{partition: main, time: "01:00:00", nodes: 4}}
defaults:
{SETTINGS}"""
PLAYBOOK = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
inventory: queue
method: {repeats: 1, iterations: 41, window: [5, 35], time_limit_s: 120}
grid: {placement: [1x1, 2x2], precision: [amp], micro_batch_size: [256]}
params: {loss_scale: dynamic}
"""
BATCH, WINDOW = 256, (5, 35)
SLOW_S = 0.25  # an iteration, of what is disturbed while it runs
OURS = "docker ps --all --filter label=dlperf.sweep --format '{{.Names}}'"
# Paths in results.json that may differ between two sweeps of the same, and why.
MAY_DIFFER = {
    r"/source": "each sweep has its own id",
    r".*/(median|mean|min|max|spread|throughput|rate_mean)": "each run has its own clock",
    r".*/(difference|speedup|efficiency|speedup_interval/.*|interval/.*)": "reckoned from those",
    r"/ran_s|.*/measured_s": "likewise",
    r".*/trials\[\d+\]/sha256": "of a log with its own times",
    r".*/energy_\w+": "power over a time that was measured",
    r".*/machines.*": "the state of a node beside one run: load, clocks, seconds observed",
    r".*/marks.*|/verdict/.*": "neighbours on this machine: gaps, spread",
}


@dataclass(frozen=True)
class Prepared:
    """A cluster that was provisioned under Slurm, and what that said."""

    login: Login
    said: Any


@pytest.fixture(scope="module")
def prepared(nodes: Cluster) -> Iterator[Prepared]:
    """One folder for all sweeps."""
    login = Login.made(nodes, "containers")
    login.more_env["PATH"] = f"{STUBS}:{os.environ['PATH']}"
    written(login.folder, nodes, QUEUE)
    yield Prepared(login, login.json("provision", "queue", "--lock"))
    login.end()


@pytest.fixture
def login(prepared: Prepared) -> Iterator[Login]:
    """The person, whose stand-ins run as fast as they can again afterwards."""
    yield prepared.login
    prepared.login.end()
    prepared.login.cluster.switch()


def written(folder: Path, nodes: Cluster, inventory: str) -> None:
    """Write the images of this cluster, an inventory and the playbook."""
    served = nodes.document["downloads"]
    assert isinstance(served, dict)
    overlay.write(folder, served)
    (folder / "inventory" / "queue.yaml").write_text(inventory)
    (folder / "playbooks" / "quick.yaml").write_text(PLAYBOOK)


def containers(login: Login) -> dict[str, list[str]]:
    """By node, the containers of ours that are there, ended or not."""
    found = {node.name: node.must(OURS).split() for node in login.cluster.nodes}
    return {name: names for name, names in found.items() if names}


def test_provisioning_builds_once_and_carries_through_the_shared_folder(
    prepared: Prepared,
) -> None:
    """One node builds, the others load one file, which is gone; all have one id, as over SSH."""
    kinds = [(action["kind"], action["node"]) for action in prepared.said["actions"]]
    assert kinds == [("build", "vs001"), *(("carry", f"vs00{n}") for n in (2, 3, 4))]
    record = prepared.said["site"]["images"][IMAGE]
    assert all(holds(node, record) for node in prepared.login.cluster.nodes)
    left = [path.name for path in (prepared.login.state / "downloads").iterdir()]
    assert not [name for name in left if name.endswith(".tar")]


@pytest.mark.long
def test_a_sweep_in_containers_ends_what_dead_jobs_left_and_nothing_of_others(
    login: Login, prepared: Prepared
) -> None:
    """Its trials count; a container of a job that is over is ended first, two others stay."""
    image = prepared.said["site"]["images"][IMAGE]["id"]
    run = "docker run --detach --rm --entrypoint=sleep"
    node = login.cluster.node(0)
    node.must(f"{run} --name=dead --user=0:0 --label=dlperf.job=4000 {image} 600")
    node.must(f"{run} --name=theirs --user=4242:4242 --label=dlperf.job=4000 {image} 600")
    node.must(f"{run} --name=foreign --user=0:0 {image} 600")
    try:
        login.must("sweep", "quick")
        assert set(node.must("docker ps --format '{{.Names}}'").split()) == {"theirs", "foreign"}
    finally:
        node.sh("docker rm --force theirs foreign dead")
    login.whole(2, BATCH, WINDOW)
    first = json.loads(next(login.sweep().glob("attempts/2n2g-*/a1/attempt.json")).read_text())
    assert first["image"] == image
    login.nothing_left()
    assert not containers(login)


def test_a_cancelled_step_leaves_no_container_though_nobody_looks(login: Login) -> None:
    """The engine runs them outside of the step: they end with the docker command all the same."""
    login.cluster.switch(iteration_s=SLOW_S)
    running = login.sweeping("quick", "--new", "--case", "2x2")
    node = login.cluster.node(0)
    assert [len(names) for names in containers(login).values()] == [1, 1]
    controller = "$(pgrep -f '[o]rchestrator sweep quick')"
    node.must(f"kill -STOP {controller}")
    try:
        (step,) = login.gangs()
        login.slurm.ask("scancel", step)
        wait_for(lambda: not containers(login), "the end of the containers")
    finally:
        node.must(f"kill -CONT {controller}")
    login.cluster.switch()
    told(running)
    states = [(event["state"], event["code"]) for event in login.events("outcome")]
    assert states == [("infra-lost", "LOST"), ("valid", "")]
    login.nothing_left()
    assert not containers(login)


@pytest.mark.long
def test_the_report_is_that_of_the_same_sweep_over_ssh(login: Login, tmp_path: Path) -> None:
    """Same identity, commands and image; of the results only what `MAY_DIFFER` names differs."""
    login.cluster.switch(iteration_s=0.1)
    login.must("sweep", "quick", "--new", "--repeats", "2")
    over_ssh(login, tmp_path, "provision", "queue")
    over_ssh(login, tmp_path, "sweep", "quick", "--repeats", "2")
    (other,) = (path.parent for path in tmp_path.glob(".dlperf/sweeps/*/sweep.json"))
    ours, theirs = (
        json.loads((sweep / "sweep.json").read_text()) for sweep in (login.sweep(), other)
    )
    assert ours["inputs"] == theirs["inputs"]
    assert ours["identity"] == theirs["identity"]
    assert ours["plan"] == theirs["plan"]
    results = [
        flat(json.loads((sweep / "results.json").read_text())) for sweep in (login.sweep(), other)
    ]
    assert results[0].keys() & {"/cases[0]/median", "/cases[1]/trials[1]/throughput"}
    kept = [
        {path: value for path, value in found.items() if not may_differ(path)} for found in results
    ]
    assert kept[0] == kept[1]


def over_ssh(login: Login, folder: Path, *words: str) -> None:
    """A command on the same nodes without Slurm, in another folder, with the same lock."""
    if not (folder / "inventory").exists():
        for part in ("inventory", "playbooks"):
            (folder / part).mkdir()
        text = login.cluster.inventory.read_text()
        keys = re.findall(r"^  (?:identity|known_hosts): .*\n", text, re.MULTILINE)
        listed = text[text.index("nodes:\n") :]
        written(folder, login.cluster, f"name: queue\ndefaults:\n{''.join(keys)}{SETTINGS}{listed}")
        shutil.copy(login.folder / "inventory" / "queue.lock.json", folder / "inventory")
    done = login.cluster.run(*PROGRAM, *words, cwd=folder, env=login.env)
    assert done.returncode == 0, done.stderr


def flat(document: object, path: str = "") -> dict[str, object]:
    """Every value of a document by its path; an empty list or object is a value."""
    if isinstance(document, dict) and document:
        parts = [(f"{path}/{key}", value) for key, value in document.items()]
    elif isinstance(document, list) and document:
        parts = [(f"{path}[{at}]", value) for at, value in enumerate(document)]
    else:
        return {path: document}
    return {at: value for part, inner in parts for at, value in flat(inner, part).items()}


def may_differ(path: str) -> bool:
    """Whether two sweeps of the same may differ there."""
    return any(re.fullmatch(pattern, path) for pattern in MAY_DIFFER)
