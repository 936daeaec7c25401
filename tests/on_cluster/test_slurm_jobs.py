"""What takes minutes under a real Slurm: ends of jobs, and how sweeps go on after them."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.cluster.slurm import PREEMPTING, call
from tests.commands import ended, told
from tests.docs import running
from tests.docs.pages import ROOT
from tests.people import PROGRAM, Login
from tests.processes import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons, pytest.mark.long]


def test_the_page_of_the_first_sweep_runs_as_it_stands(login: Login) -> None:
    """From init to the report, with the reference program and real PyTorch on the allocation.

    The inventory is the page's: engines of the virtual nodes reach no registry, as init cannot see.
    """
    shutil.rmtree(login.folder / "inventory")
    shutil.rmtree(login.folder / "playbooks")
    shutil.rmtree(login.folder / "images")
    path = running.program(login.folder / "bin")

    def run(script: str) -> "subprocess.CompletedProcess[str]":
        env = {**login.env, "PATH": path}
        done = login.cluster.run(*running.SHELL, script, cwd=login.folder, env=env)
        if "dlperf-orch init" in script:
            (login.folder / "inventory" / "queue.yaml").unlink()
        return done

    page = ROOT / "docs" / "first-slurm.md"
    ran = running.read(page, login.folder, run, lambda block: block.name in running.ON_SLURM)
    assert ran == len(running.ON_SLURM)
    assert (login.sweep() / "report.html").exists()
    login.nothing_left()


def test_stop_ends_a_job_whose_controller_has_just_begun(login: Login) -> None:
    """Python takes its time there: no sweep is known yet, and none goes on after it."""
    slow = login.folder / "slow"
    slow.mkdir()
    late = 'import os, time\n"SLURM_JOB_ID" in os.environ and time.sleep(3)\n'
    (slow / "sitecustomize.py").write_text(late)
    login.more_env["PYTHONPATH"] = f"{slow}:{login.env['PYTHONPATH']}"
    login.must("sweep", "toy", "--detach")
    wait_for(lambda: "RUNNING" in login.slurm.jobs().values(), "a job that runs")
    assert not list(login.state.glob("sweeps/*"))
    stopped = login.run("stop")
    assert (stopped.returncode, "has ended" in stopped.stdout) == (0, True), stopped.stderr
    assert not [event for event in login.events("outcome") if event["state"] == "valid"]
    login.nothing_left()


def test_a_sweep_longer_than_its_job_is_queued_again_by_itself(login: Login) -> None:
    """The first trial fits, the second does not: the job waits again, and has time for it then."""
    playbook = login.folder / "playbooks" / "toy.yaml"
    text = playbook.read_text().replace("repeats: 1", "repeats: 2")
    playbook.write_text(text.replace("time_limit_s: 60", "time_limit_s: 150"))
    running = login.sweeping("toy", "--requeue")
    job = login.running_job()
    login.slurm.ask("scontrol", "update", f"JobId={job}", "TimeLimit=00:04:00")
    login.begin_again(job, "TimeLimit=01:00:00")
    said = told(running)
    assert "WALLTIME" in said
    login.whole(2)
    assert {event["state"] for event in login.events("outcome")} == {"valid"}
    login.nothing_left()


def test_a_silent_slurmctld_costs_no_job(login: Login) -> None:
    """The sweep waits for it between two trials, and its follower reads on."""
    playbook = login.folder / "playbooks" / "toy.yaml"
    playbook.write_text(playbook.read_text().replace("repeats: 1", "repeats: 2"))
    running = login.sweeping("toy")
    controller = int((login.slurm.folder / "slurm" / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    try:
        wait_for(lambda: login.events("outcome"), "the first trial's end")
        time.sleep(75)  # more than QUEUE_S: nothing is to happen in this time
    finally:
        os.kill(controller, signal.SIGCONT)
    code, said = ended(running)
    assert code == 0, said
    assert "is followed by its files alone" in said
    login.whole(2)
    login.nothing_left()


def test_tasks_of_an_array_sweep_their_own_nodes(login: Login) -> None:
    """Each in a state folder of its own, also the last one, whose id is the array's."""
    text = " ".join((*PROGRAM, "sweep", "toy", "--state", ".dlperf-$SLURM_ARRAY_TASK_ID"))
    script = login.folder / "array.sh"
    script.write_text(f"#!/bin/sh\n{text} >$SLURM_ARRAY_TASK_ID.said 2>&1\n")
    options = ("--array=1-2", "-N2", "--exclusive", f"--chdir={login.folder}", "--wait")

    def said(time: str) -> list[str]:
        words = ("sbatch", *options, f"--time={time}", "--output=/dev/null", str(script))
        login.cluster.run(*words, cwd=login.folder, env=login.env)
        return [(login.folder / f"{number}.said").read_text() for number in (1, 2)]

    assert ["ERROR WALLTIME" in words for words in said("00:02:00")] == [True, True]
    assert ["1 of 1 cases have a result" in words for words in said("00:20:00")] == [True, True]
    nodes: list[str] = []
    for record in login.folder.glob(".dlperf-*/sweeps/*/logs/*/*.json"):
        outcome = json.loads(record.read_text())
        assert outcome["state"] == "valid"
        nodes += [task["node"] for task in outcome["tasks"]]
    assert sorted(nodes) == ["vs001", "vs002", "vs003", "vs004"]
    login.nothing_left()


def test_a_node_that_crashes_costs_one_attempt(login: Login) -> None:
    """Its peer fails long before Slurm notices; the trial names the node, and runs on others."""
    login.inventory(nodes=3)
    running = login.sweeping("toy")
    (attempt,) = login.events("intent")
    record = login.sweep() / "attempts" / attempt["trial"] / "a1" / "attempt.json"
    _, task = json.loads(record.read_text())["tasks"]
    with login.crashed(task["node"]):
        said = told(running)
        login.whole(1)
    first, last = [(event["state"], event["code"]) for event in login.events("outcome")]
    assert first == ("infra-lost", "NODE-DOWN"), said
    assert last[0] == "valid"
    login.nothing_left()


@pytest.mark.parametrize("requeue", [False, True])
def test_a_batch_host_that_crashes_ends_its_job(login: Login, requeue: bool) -> None:
    """Once Slurm has noticed: the job is cancelled, or queued again, where Slurm would keep it."""
    running = login.sweeping("toy", *(["--requeue"] if requeue else []))
    job = login.running_job()
    host = login.batch_host(job)
    with login.crashed(host):
        if requeue:
            login.begin_again(job)
        code, said = ended(running)
        assert f"job {job} is running on vs[001-002]\n" in said
        ending = f"job {job} is queued again" if requeue else f"ERROR NODE-DOWN node={host}"
        assert (code, ending in said) == (0 if requeue else 4, True), said
        if not requeue:
            login.must("sweep", "toy")
        login.whole(1)
    assert [event["state"] for event in login.events("outcome")] == ["infra-lost", "valid"]
    login.nothing_left()


def test_what_fits_on_the_nodes_that_are_left_is_measured(login: Login) -> None:
    """Of three nodes one goes down: the trial of all comes last, and needs another job."""
    login.inventory(nodes=3)
    login.playbook(("2x1", "3x1", "1x1"))
    running = login.sweeping("toy")
    (attempt,) = login.events("intent")
    record = login.sweep() / "attempts" / attempt["trial"] / "a1" / "attempt.json"
    _, task = json.loads(record.read_text())["tasks"]
    login.slurm.ask("scontrol", "update", f"NodeName={task['node']}", "State=DOWN", "Reason=test")
    try:
        code, said = ended(running)
    finally:
        call(login.cluster.place, "scontrol", "update", f"NodeName={task['node']}", "State=RESUME")
    assert (code, "ERROR NODE-DOWN" in said) == (4, True), said
    valid = [event["trial"][:4] for event in login.events("outcome") if event["state"] == "valid"]
    assert valid == ["2n1g", "1n1g"]
    login.must("sweep", "toy")
    login.whole(3)
    login.nothing_left()


@pytest.mark.parametrize(
    ("mode", "grace_s", "requeue"),
    [("REQUEUE", 0, True), ("REQUEUE", 0, False), ("REQUEUE", 60, True), ("CANCEL", 0, False)],
)
def test_a_preempted_job_blames_nobody_and_goes_on(
    login: Login, mode: str, grace_s: int, requeue: bool
) -> None:
    """Whether Slurm ends all of it at once, or tells its steps alone and grants it a while."""
    changes = (f"GraceTime={grace_s}", f"PreemptMode={mode}")
    login.slurm.ask("scontrol", "update", "PartitionName=main", *changes)
    running = login.sweeping("toy", *(["--requeue"] if requeue else []))
    job = login.running_job()
    words = ("sbatch", "--parsable", "-N4", "--exclusive", "-p", PREEMPTING, "-o", "/dev/null")
    other = login.slurm.ask(*words, "--wrap=sleep 1").strip()
    wait_for(lambda: login.slurm.jobs()[other] == "COMPLETED", "the end of the other job")
    if requeue:
        login.begin_again(job)
    said = told(running, 0 if requeue else 143)
    ending = f"job {job} begins again" if requeue else "ended in good order (PREEMPTED)"
    assert ending in said
    first, *later = [(event["state"], event["code"]) for event in login.events("outcome")]
    assert first == ("infra-lost" if grace_s else "interrupted", "PREEMPTED"), said
    assert later == ([("valid", "")] if requeue else [])
    if requeue:
        login.whole(1)
    login.nothing_left()


def test_a_job_whose_time_is_over_ends_in_good_order(login: Login) -> None:
    """Slurm looks twice a minute: the warning comes, the trial is interrupted, nothing is lost."""
    login.playbook(step_s=5, iterations=11)
    first = login.sweeping("toy")
    job = login.running_job()
    login.slurm.ask("scontrol", "update", f"JobId={job}", "TimeLimit=00:01:00")
    said = told(first, 143)
    assert "ended in good order" in said
    login.nothing_left()
    assert [event["state"] for event in login.events("outcome")] == ["interrupted"]
