"""A person on the login node of the virtual cluster's Slurm: files, commands, what they leave."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests import TESTS, commands
from tests.cluster import Cluster
from tests.cluster.slurm import PARTITION, Slurm, call, environment
from tests.events import events
from tests.waiting import wait_for

PROGRAM = (sys.executable, "-m", "orchestrator")
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
