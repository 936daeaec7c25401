"""A folder where a person works on the virtual cluster: the command line, and what it leaves."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import TESTS, commands
from tests.cluster import Cluster, Node, overlay
from tests.events import events
from tests.waiting import PATIENCE_S

PROGRAM = (sys.executable, "-m", "orchestrator")
COMMAND_S = 600.0
TRIAL = "2n1g-r50_b256_amp_1"  # the first one of a quick playbook
QUICK = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 1, iterations: 41, window: [5, 35], time_limit_s: 300, stall_limit_s: 120}
grid: {placement: [2x1], precision: [amp], micro_batch_size: [256]}
params: {loss_scale: dynamic}
"""
OURS = "docker ps -aq --filter label=dlperf.sweep; find /var/tmp/dlperf-root -mindepth 2 -name a1"
SWEPT = (
    "docker rm -f $(docker ps -aq --filter label=dlperf.sweep); rm -rf /var/tmp/dlperf-root/*-*-*"
)


@dataclass
class Desk:
    """A working folder beside a cluster that is up."""

    cluster: Cluster
    folder: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    @classmethod
    def made(cls, cluster: Cluster, folder: Path) -> "Desk":
        """A new one, with the shipped images told where the cluster has code and OFED."""
        served = cluster.document["downloads"]
        assert isinstance(served, dict)
        overlay.write(folder, served)
        return cls(cluster, folder)

    def adopt(self, first: "Desk") -> None:
        """Take over what another desk's provisioning found out."""
        for part in ("sites", "downloads"):
            shutil.copytree(first.state / part, self.state / part)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / ".dlperf"

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command: this checkout, nothing of DLPERF_."""
        return commands.environment(PYTHONPATH=str(TESTS.parent), COLUMNS="200")

    @classmethod
    def prepared(cls, first: "Desk", folder: Path, *images: str) -> "Desk":
        """One beside another whose cluster is provisioned, and then has these images too."""
        desk = cls.made(first.cluster, folder)
        desk.adopt(first)
        chosen = (word for name in images for word in ("--image", name))
        said = desk.json("provision", str(desk.cluster.inventory), *chosen, "--lock")
        assert set(images) <= set(said["site"]["images"])
        return desk

    def run(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """A command of ours, to its end."""
        whole = {**self.env, **env}
        return self.cluster.run(*PROGRAM, *words, cwd=self.folder, env=whole, timeout_s=COMMAND_S)

    def must(self, *words: str, code: int = 0, **env: str) -> "subprocess.CompletedProcess[str]":
        """A command that ends with this code."""
        return commands.checked(self.run(*words, **env), code)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A command of ours, left running."""
        process = self.cluster.start(*PROGRAM, *words, cwd=self.folder, env=self.env)
        self.started.append(process)
        return process

    def json(self, *words: str, code: int = 0) -> Any:
        """The document of a command that ends with this exit code."""
        return json.loads(self.must(*words, "--json", code=code).stdout)

    def playbook(self, name: str, text: str) -> str:
        """A playbook of this folder; its name."""
        path = self.folder / "playbooks" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return name

    def begun(self, *words: str, **wanted: object) -> "subprocess.Popen[str]":
        """A sweep of one trial on two nodes, left running once its iterations are seen.

        Args:
            wanted: of the stand-in, for what starts now and not later.
        """
        self.cluster.switch(**{"iteration_s": 0.25, **wanted})
        process = self.start("sweep", self.playbook("quick", QUICK), *self.on(), *words)
        deadline = time.monotonic() + PATIENCE_S
        while not self.trains():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise AssertionError(process.communicate())
            time.sleep(0.05)
        self.cluster.switch()
        return process

    @contextmanager
    def held(self) -> Iterator[None]:
        """The gang that trains stands still within the block: rank 0, which sets its pace, does."""
        rank = "$(grep -slzx RANK=0 /proc/[0-9]*/environ | cut -d/ -f3)"
        self.cluster.node(0).must(f"kill -STOP {rank}")
        try:
            yield
        finally:
            self.cluster.node(0).must(f"kill -CONT {rank}")

    def again(self, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """The same sweep once more, to its end."""
        return self.must("sweep", self.playbook("quick", QUICK), *self.on(), code=code)

    def on(self) -> tuple[str, str]:
        """The words that name the cluster's inventory."""
        return "--inventory", str(self.cluster.inventory)

    def trains(self) -> bool:
        """Whether the leader of an attempt that has not ended shows iterations."""
        logs = self.raw_logs()
        shown = [log for log in logs if not log.with_suffix(".end").exists()]
        return any(b" Iteration: 3 " in log.read_bytes() for log in shown)

    def raw_logs(self, node_rank: int = 0) -> list[Path]:
        """Logs on a node as tasks of the newest sweep write them; all of its attempts."""
        if not self.sweeps():
            return []
        folder = self.cluster.node(node_rank).folder / "var/tmp/dlperf-root"
        return sorted(folder.glob(f"{self.sweeps()[-1].name}/attempts/*/a*/r{node_rank}.log"))

    def container(self, node_rank: int = 0, trial: str = TRIAL, attempt: int = 1) -> str:
        """The name of a task's container."""
        return f"dlp-{self.sweeps()[-1].name}-{trial}-a{attempt}-r{node_rank}"

    def said(self, event: str) -> list[Any]:
        """Events of one kind, of the newest sweep."""
        return events(self.sweeps()[-1], event)

    def states(self) -> list[tuple[str, str]]:
        """State and code of every attempt that has an outcome, in order."""
        return [(outcome["state"], outcome["code"]) for outcome in self.said("outcome")]

    def inventory(self, **changes: str) -> Path:
        """The cluster's inventory in this folder with its lock, words replaced; where it lies."""
        text = self.cluster.inventory.read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        shutil.copy(self.cluster.folder / "virtual.lock.json", self.folder / "mine.lock.json")
        path = self.folder / "mine.yaml"
        path.write_text(text)
        return path

    def sweeps(self) -> list[Path]:
        """Folders of sweeps, oldest first."""
        return sorted(path.parent for path in self.state.glob("sweeps/*/sweep.json"))

    def outcomes(self) -> Mapping[str, Any]:
        """By trial, the outcome that counts, of the newest sweep."""
        paths = self.sweeps()[-1].glob("logs/*/*.json")
        found = [json.loads(path.read_text()) for path in paths]
        return {outcome["trial"]: outcome for outcome in found}

    def left(self) -> dict[str, str]:
        """By node, containers and attempt folders of ours that are still there."""
        said = {node.name: node.sh(OURS).stdout.strip() for node in self.cluster.nodes}
        return {name: words for name, words in said.items() if words}

    def end(self) -> None:
        """End commands that were left running, and what a test that failed left on the nodes."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        left = self.left()
        for node in self.cluster.nodes:
            if node.name in left:
                node.sh(SWEPT)


def swept(desk: Desk, playbook: str, *words: str) -> Any:
    """What a sweep of one repeat says; nothing of it is left on any node."""
    said = desk.json("sweep", playbook, "--repeats", "1", *desk.on(), *words)
    for trial, outcome in outcomes(desk, said).items():
        assert outcome["state"] == "valid", (trial, outcome["problems"])
    assert not desk.left()
    return said


def outcomes(desk: Desk, said: Any) -> dict[str, Any]:
    """By trial, the outcomes of a sweep."""
    paths = (desk.state / "sweeps" / said["sweep"]).glob("logs/*/*.json")
    found = [json.loads(path.read_text()) for path in paths]
    return {outcome["trial"]: outcome for outcome in found}


@contextmanager
def rule(node: Node, words: str) -> Iterator[None]:
    """A rule of the node's firewall, within the block."""
    node.must(f"iptables -w -I {words}")
    try:
        yield
    finally:
        node.must(f"iptables -w -D {words}")


def own_id(record: Any, node: Node) -> str:
    """The id of a provisioned image on a node, as the site file has it."""
    return str(record["ids"].get(node.name, record["id"]))


def holds(node: Node, record: Any) -> bool:
    """Whether a node has a provisioned image under its tag, by what its own engine says."""
    said = node.sh(f"docker inspect -f '{{{{.Id}}}}' {record['tag']}")
    return said.stdout.strip() == own_id(record, node)
