"""People on the virtual cluster: at a desk, or on the login node of its Slurm."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests import TESTS, commands
from tests.cluster import Cluster, Node, overlay
from tests.cluster.slurm import PARTITION, Slurm, call, environment
from tests.processes import PATIENCE_S, wait_for


def events(sweep: Path, kind: str) -> list[Any]:
    """Those of one kind, in their order."""
    lines = (sweep / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


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


INVENTORY = """\
name: queue
scheduler: slurm
slurm: {{partition: {partition}, time: "{time}", nodes: {nodes}}}
defaults: {{runtime: process}}
"""
PLAYBOOK = """\
workload: toy
image: toy
inventory: queue
device: cpu
method: {{repeats: 1, iterations: {iterations}, window: [2, 8], time_limit_s: 60}}
grid: {{placement: {placement}, precision: [fp32], micro_batch_size: [4]}}
params: {{step_s: {step_s}}}
"""
STEP = re.compile(rb"^DLL (\S+ \S+) - Epoch: 0 Iteration: (\d+) ", re.MULTILINE)
SLOW = 0.4


@dataclass
class Login:
    """A person on the login node, in a folder that all nodes see."""

    cluster: Cluster
    slurm: Slurm
    folder: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list)
    more_env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, cluster: Cluster, name: str) -> "Login":
        """One in a fresh folder of that name, with an inventory and a playbook."""
        slurm = Slurm(cluster.place)
        folder = slurm.folder / re.sub(r"\W", "_", name)
        shutil.copytree(TESTS / "toy" / "place", folder)
        person = cls(cluster, slurm, folder)
        person.inventory()
        person.playbook()
        return person

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / ".dlperf"

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command."""
        env = commands.environment()
        path = f"{TESTS.parent}:{TESTS / 'toy'}"
        slurm = environment(self.cluster.place)
        return {**env, **slurm, "PYTHONPATH": path, "COLUMNS": "200", **self.more_env}

    def inventory(self, nodes: int = 2, time: str = "01:00:00", partition: str = "main") -> None:
        """Write the inventory."""
        text = INVENTORY.format(nodes=nodes, time=time, partition=partition)
        (self.folder / "inventory" / "queue.yaml").write_text(text)

    def playbook(
        self, placement: Sequence[str] = ("2x1",), step_s: float = SLOW, iterations: int = 31
    ) -> None:
        """Write the playbook."""
        shown = f"[{', '.join(placement)}]"
        text = PLAYBOOK.format(placement=shown, step_s=step_s, iterations=iterations)
        (self.folder / "playbooks" / "toy.yaml").write_text(text)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of ours, to its end."""
        return self.cluster.run(*PROGRAM, *words, cwd=self.folder, env=self.env)

    def must(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """A command that ends with this code."""
        return commands.checked(self.run(*words), code)

    def json(self, *words: str, code: int = 0) -> Any:
        """The document of a command that ends with this code."""
        return json.loads(self.must(*words, "--json", code=code).stdout)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A command, left running."""
        process = self.cluster.start(*words, cwd=self.folder, env=self.env)
        self.started.append(process)
        return process

    def sweeping(self, *words: str) -> "subprocess.Popen[str]":
        """A sweep that shows iterations, left running."""
        process = self.start(*PROGRAM, "sweep", *words)
        wait_for(self.steps, "iterations")
        return process

    def running_job(self) -> str:
        """The id of the one job that runs."""
        (job,) = [job for job, state in self.slurm.jobs().items() if state == "RUNNING"]
        return job

    @contextlib.contextmanager
    def crashed(self, name: str) -> Iterator[None]:
        """A node that is switched off; afterwards it is up again, and idle."""
        (node,) = (node for node in self.cluster.nodes if node.name == name)
        node.power_off()
        try:
            yield
        finally:
            node.power_on()
            idle = ("sinfo", "-h", "-t", "idle", "-n", name, "-p", PARTITION, "-o", "%D")
            wait_for(lambda: call(self.cluster.place, *idle).stdout.strip(), f"{name} idle")

    def batch_host(self, job: str) -> str:
        """The node that runs a job's script."""
        return self.slurm.ask("squeue", "-h", "-j", job, "-o", "%B").strip()

    def steps(self) -> bool:
        """Whether an open attempt's leader shows iterations."""
        logs = self.state.glob("sweeps/*/attempts/*/a*/r0.log")
        return any(
            STEP.search(log.read_bytes())
            for log in logs
            if not log.with_suffix(".end").exists() and self.slurm.steps()
        )

    def gangs(self) -> list[str]:
        """Ids of the steps that are gangs."""
        lines = self.slurm.ask("squeue", "-h", "-s", "-o", "%i|%j").splitlines()
        return [step for step, _, name in (line.partition("|") for line in lines) if "dlp-" in name]

    def sweep(self) -> Path:
        """The newest sweep's folder."""
        return max(path.parent for path in self.state.glob("sweeps/*/sweep.json"))

    def events(self, kind: str) -> list[Any]:
        """Events of the newest sweep."""
        return events(self.sweep(), kind)

    def begin_again(self, job: str, *changes: str) -> None:
        """Have a job that is queued again begin in 3 s; Slurm would wait two minutes."""
        wait_for(lambda: self.slurm.jobs()[job] == "PENDING", "a job that waits again")
        # Not at once: Slurm kills a job that begins in the second of its requeue.
        self.slurm.ask("scontrol", "update", f"JobId={job}", *changes, "StartTime=now+3")

    def left(self) -> dict[str, str]:
        """By node, processes there that belong to a task, its supervisor or its observer."""
        look = "grep -lszE '^DLPERF_(TASK|SUPERVISOR|OBSERVER)=' /proc/[0-9]*/environ || true"
        said = {node.name: node.must(look).strip() for node in self.cluster.nodes}
        return {name: words for name, words in said.items() if words}

    def nothing_left(self) -> None:
        """No process on any node, no step, no job of ours that is not over."""
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
        wait_for(
            lambda: not [job for job, state in self.slurm.jobs().items() if state not in over],
            "the end of every job",
        )
        assert not self.slurm.steps()
        wait_for(lambda: not self.left(), f"nothing on the nodes: {self.left()}")

    def whole(self, trials: int, batch: int = 4, window: tuple[int, int] = (2, 8)) -> None:
        """Every trial is valid once, and its number is that of its raw log, derived anew."""
        outcomes = [json.loads(path.read_text()) for path in self.sweep().glob("logs/*/*.json")]
        assert len(outcomes) == trials
        for outcome in outcomes:
            assert outcome["state"] == "valid", outcome["problems"]
            placement, _, name = outcome["trial"].partition("-")
            log = self.sweep() / "logs" / placement / f"{name}.log"
            stamps = {int(step): moment for moment, step in STEP.findall(log.read_bytes())}
            begun, ended = (datetime.fromisoformat(stamps[at].decode()) for at in window)
            nodes, gpus = re.match(r"(\d+)n(\d+)g", outcome["trial"]).groups()  # type: ignore[union-attr]
            images = batch * int(nodes) * int(gpus) * (window[1] - window[0])
            rate = images / (ended - begun).total_seconds()
            assert outcome["throughput"] == pytest.approx(rate, rel=1e-6)
        valid = [event["trial"] for event in self.events("outcome") if event["state"] == "valid"]
        assert len(valid) == len(set(valid)) == trials
        opened = {(event["trial"], event["attempt"]) for event in self.events("intent")}
        closed = {(event["trial"], event["attempt"]) for event in self.events("outcome")}
        assert opened == closed

    def end(self) -> None:
        """End commands left running, and all jobs."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for job in self.slurm.jobs():
            subprocess.run(
                [*self.cluster.place.inside(), "scancel", job],
                env={**os.environ, **environment(self.cluster.place)},
                check=False,
            )
