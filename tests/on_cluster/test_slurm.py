"""Sweeps under a real Slurm: the three commands, and what may happen to a job.

What a sweep says of itself is compared with what the nodes' process tables, Slurm's queue and the
raw logs say.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests import TESTS
from tests.cluster import Cluster, cluster
from tests.cluster.slurm import PREEMPTING, Slurm, call, environment, lacking
from tests.waiting import PATIENCE_S, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
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

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / ".dlperf"

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("DLPERF_")}
        path = f"{TESTS.parent}:{TESTS / 'toy'}"
        slurm = environment(self.cluster.place)
        return {**env, **slurm, "PYTHONPATH": path, "COLUMNS": "200"}

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

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A command, left running."""
        process = self.cluster.start(*words, cwd=self.folder, env=self.env)
        self.started.append(process)
        return process

    def steps(self) -> bool:
        """Whether an open attempt's leader shows iterations."""
        logs = self.state.glob("sweeps/*/attempts/*/a*/r0.log")
        return any(
            STEP.search(log.read_bytes())
            for log in logs
            if not log.with_suffix(".end").exists() and self.slurm.steps()
        )

    def sweep(self) -> Path:
        """The newest sweep's folder."""
        return max(path.parent for path in self.state.glob("sweeps/*/sweep.json"))

    def events(self, kind: str) -> list[Any]:
        """Events of the newest sweep."""
        lines = (self.sweep() / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

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

    def whole(self, trials: int) -> None:
        """Every trial is valid once, and its number is that of its raw log, derived anew."""
        outcomes = [json.loads(path.read_text()) for path in self.sweep().glob("logs/*/*.json")]
        assert len(outcomes) == trials
        for outcome in outcomes:
            assert outcome["state"] == "valid", outcome["problems"]
            placement, _, name = outcome["trial"].partition("-")
            log = self.sweep() / "logs" / placement / f"{name}.log"
            stamps = {int(step): moment for moment, step in STEP.findall(log.read_bytes())}
            begun, ended = (datetime.fromisoformat(stamps[at].decode()) for at in (2, 8))
            nodes, gpus = re.match(r"(\d+)n(\d+)g", outcome["trial"]).groups()  # type: ignore[union-attr]
            rate = 4 * int(nodes) * int(gpus) * 6 / (ended - begun).total_seconds()
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


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Four virtual nodes with a Slurm over them."""
    if words := lacking():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)
    with cluster(4, slurm=True) as up:
        yield up


@pytest.fixture
def login(nodes: Cluster, request: pytest.FixtureRequest) -> Iterator[Login]:
    """A fresh folder."""
    slurm = Slurm(nodes.place)
    folder = slurm.folder / re.sub(r"\W", "_", request.node.name)
    shutil.copytree(TESTS / "toy" / "place", folder)
    person = Login(nodes, slurm, folder)
    person.inventory()
    person.playbook()
    yield person
    person.end()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit code, and what it said."""
    _, said = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


def test_three_commands_run_on_a_login_node_and_inside_an_allocation(login: Login) -> None:
    """On a login node; inside an allocation the same sweep goes on and finds nothing to do."""
    login.inventory(nodes=3)
    login.playbook(("1x1", "2x2"), step_s=0.02, iterations=11)
    shown = json.loads(login.run("sweep", "toy", "--dry-run", "--json").stdout)
    assert "#SBATCH --nodes=3\n" in shown["scripts"][0]
    assert login.slurm.jobs() == {} or not login.slurm.steps()
    fit = login.run("provision", "queue")
    assert fit.returncode == 0, fit.stderr
    done = login.run("sweep", "toy")
    assert done.returncode == 0, done.stderr
    assert re.search(r"job \d+ is submitted as dlperf-queue-", done.stderr)
    login.whole(2)
    again = login.cluster.run(
        *(
            "salloc",
            "-N2",
            "--exclusive",
            "-p",
            PREEMPTING,
            *PROGRAM,
            "sweep",
            "toy",
            "--repeats",
            "2",
        ),
        cwd=login.folder,
        env=login.env,
    )
    assert again.returncode == 0, again.stderr
    assert "goes on" in again.stderr
    login.whole(4)
    collected = json.loads(login.run("collect", "--json").stdout)
    for result in collected["cases"]:
        values = [trial["throughput"] for trial in result["trials"]]
        assert result["median"] == pytest.approx(statistics.median(values))
    login.nothing_left()


def test_a_controller_that_is_killed_is_followed_by_another(login: Login) -> None:
    """Its job ends with it, nothing is left, and the same command measures the trial anew."""
    first = login.start(*PROGRAM, "sweep", "toy")
    wait_for(login.steps, "iterations")
    state = json.loads(login.run("status", "--json").stdout)
    assert [job["state"] for job in state["jobs"]] == ["RUNNING"]
    assert {task["phase"] for task in state["tasks"]} == {"running"}
    name = login.sweep().name
    victim = "kill -KILL $(pgrep -f '[o]rchestrator sweep toy')"
    login.cluster.node(0).must(victim)
    code, said = ended(first)
    assert code != 0, said
    login.nothing_left()
    login.playbook(step_s=SLOW)
    done = login.run("sweep", "toy")
    assert done.returncode == 0, done.stderr
    assert login.sweep().name == name
    login.whole(1)
    assert [event["state"] for event in login.events("outcome")] == ["infra-lost", "valid"]
    login.nothing_left()


def test_cancelled_from_outside_and_stopped_from_inside(login: Login) -> None:
    """Both leave nothing; Ctrl-C on the login node leaves the job, which is found again."""
    first = login.start(*PROGRAM, "sweep", "toy")
    wait_for(login.steps, "iterations")
    first.send_signal(signal.SIGINT)
    code, said = ended(first)
    assert (code, "goes on" in said) == (130, True), said
    (job,) = [one for one, state in login.slurm.jobs().items() if state == "RUNNING"]
    found = login.run("sweep", "toy", "--detach")
    assert f"job {job} runs this command already" in found.stderr
    login.slurm.ask("scancel", job)
    login.nothing_left()
    third = login.start(*PROGRAM, "sweep", "toy")
    wait_for(login.steps, "iterations")
    stopped = login.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert "has ended" in stopped.stdout
    assert ended(third)[0] == 143
    login.nothing_left()
    states = {event["state"] for event in login.events("outcome")}
    assert states <= {"interrupted", "infra-lost"}


@pytest.mark.long
def test_a_node_that_goes_down_costs_one_attempt(login: Login) -> None:
    """Slurm gives it up in the middle of a trial; the sweep goes on with the others."""
    login.inventory(nodes=3)
    running = login.start(*PROGRAM, "sweep", "toy")
    wait_for(login.steps, "iterations")
    attempts = login.events("intent")
    record = json.loads(
        next(login.sweep().glob(f"attempts/{attempts[0]['trial']}/a1/attempt.json")).read_text()
    )
    last = record["tasks"][-1]["node"]
    login.slurm.ask("scontrol", "update", f"NodeName={last}", "State=DOWN", "Reason=test")
    try:
        code, said = ended(running)
        assert code == 0, said
        login.whole(1)
        states = [(event["state"], event["code"]) for event in login.events("outcome")]
        assert states[0] == ("infra-lost", "NODE-DOWN"), (states, said)
        assert states[-1][0] == "valid"
    finally:
        call(login.cluster.place, "scontrol", "update", f"NodeName={last}", "State=RESUME")
    login.nothing_left()


def test_what_can_never_start_is_said(login: Login) -> None:
    """A partition that is not there, and more nodes than it has."""
    login.inventory(partition="nowhere")
    done = login.run("sweep", "toy")
    assert (done.returncode, "NO-PARTITION" in done.stderr) == (5, True), done.stderr
    login.inventory(nodes=9)
    done = login.run("sweep", "toy")
    assert (done.returncode, "QUEUE-NEVER" in done.stderr) == (5, True), done.stderr


@pytest.mark.long
def test_a_requeued_job_goes_on(login: Login) -> None:
    """Slurm starts it again after a while; its follower waits for that."""
    running = login.start(*PROGRAM, "sweep", "toy", "--requeue")
    wait_for(login.steps, "iterations")
    (job,) = [one for one, state in login.slurm.jobs().items() if state == "RUNNING"]
    login.slurm.ask("scontrol", "requeue", job)
    wait_for(lambda: login.slurm.jobs()[job] == "PENDING", "a job that waits again")
    login.slurm.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
    code, said = ended(running)
    assert code == 0, said
    assert "Slurm queued it again" in said
    login.whole(1)
    login.nothing_left()


@pytest.mark.long
def test_a_job_whose_time_is_over_ends_in_good_order(login: Login) -> None:
    """Slurm looks twice a minute: the warning comes, the trial is interrupted, nothing is lost."""
    login.playbook(step_s=5, iterations=11)
    first = login.start(*PROGRAM, "sweep", "toy")
    wait_for(login.steps, "iterations")
    (job,) = [one for one, state in login.slurm.jobs().items() if state == "RUNNING"]
    login.slurm.ask("scontrol", "update", f"JobId={job}", "TimeLimit=00:01:00")
    code, said = ended(first)
    assert code == 143, said
    assert "ended in good order" in said
    login.nothing_left()
    assert [event["state"] for event in login.events("outcome")] == ["interrupted"]
