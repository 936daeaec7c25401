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
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, cluster
from tests.cluster.slurm import PREEMPTING, call, lacking
from tests.docs import running
from tests.docs.pages import ROOT
from tests.login import PROGRAM, SLOW, Login, ended
from tests.spans import side_by_side, spans
from tests.waiting import PATIENCE_S, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
OTHERS = "dlperf-queue-00000000"  # as of another state folder


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Four virtual nodes with a Slurm over them."""
    if words := lacking():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)
    with cluster(4, slurm=True) as up:
        yield up


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
    idle = login.run("sweep", "toy")
    assert (idle.returncode, "no node was asked" in idle.stderr) == (0, True), idle.stderr
    assert "is submitted" not in idle.stderr
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


def test_init_asks_a_node_of_a_partition(login: Login) -> None:
    """Its file is what provision takes; partitions that are not there are told from the others."""
    done = login.run("init", "--slurm", "main", "-o", "inventory/queue.yaml", "--force", "--json")
    assert done.returncode == 0, done.stderr
    text = (login.folder / "inventory" / "queue.yaml").read_text()
    assert json.loads(done.stdout)["inventory"] == text
    assert 'slurm: {partition: main, time: "04:00:00", nodes: 4}' in text
    assert "\n  runtime: docker\n" in text
    assert "was asked, and stands for all nodes of the partition" in text
    assert "\nnodes:" not in text
    shown = login.run("provision", "queue", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "#SBATCH --nodes=4\n" in shown.stdout
    refused = login.run("init", "--slurm", "nowhere")
    assert refused.returncode == 5, refused.stderr
    assert "NO-PARTITION" in refused.stderr
    assert f"there are main, {PREEMPTING}" in refused.stderr
    refused = login.run("init", "gpu01", "--slurm", "main")
    assert refused.returncode == 2
    login.nothing_left()


@pytest.mark.long
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


def test_a_controller_that_is_killed_is_followed_by_another(login: Login) -> None:
    """Its job ends with it, nothing is left, and the same command measures the trial anew."""
    first = login.sweeping("toy")
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
    first = login.sweeping("toy")
    first.send_signal(signal.SIGINT)
    code, said = ended(first)
    job = login.running_job()
    assert code == 130, said
    assert f"ERROR INTERRUPTED: no longer followed, by Ctrl-C: job {job} goes on. Fix: " in said
    found = login.run("sweep", "toy", "--detach")
    assert f"job {job} runs this command already" in found.stderr
    assert f"job {job} is running on " in found.stdout
    login.slurm.ask("scancel", job)
    login.nothing_left()
    third = login.sweeping("toy")
    stopped = login.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert "has ended" in stopped.stdout
    assert ended(third)[0] == 143
    login.nothing_left()
    states = {event["state"] for event in login.events("outcome")}
    assert states <= {"interrupted", "infra-lost"}


@pytest.mark.long
def test_stop_ends_a_job_whose_controller_has_just_begun(login: Login) -> None:
    """Python takes its time there: no sweep is known yet, and none goes on after it."""
    slow = login.folder / "slow"
    slow.mkdir()
    late = 'import os, time\n"SLURM_JOB_ID" in os.environ and time.sleep(3)\n'
    (slow / "sitecustomize.py").write_text(late)
    login.more_env["PYTHONPATH"] = f"{slow}:{login.env['PYTHONPATH']}"
    assert login.run("sweep", "toy", "--detach").returncode == 0
    wait_for(lambda: "RUNNING" in login.slurm.jobs().values(), "a job that runs")
    assert not list(login.state.glob("sweeps/*"))
    stopped = login.run("stop")
    assert (stopped.returncode, "has ended" in stopped.stdout) == (0, True), stopped.stderr
    assert not [event for event in login.events("outcome") if event["state"] == "valid"]
    login.nothing_left()


def test_a_job_that_waits_is_shown_and_cancelled(login: Login) -> None:
    """Before there is any sweep, by status and stop; not that of another state folder."""
    path = login.folder / "inventory" / "queue.yaml"
    path.write_text(path.read_text().replace("nodes: 2", 'nodes: 2, extra: ["--hold"]'))
    held = login.slurm.ask("sbatch", "--parsable", "--hold", "-J", OTHERS, "--wrap=:").strip()
    done = login.run("sweep", "toy", "--detach")
    assert done.returncode == 0, done.stderr
    shown = login.run("status")
    assert (shown.returncode, "it is held" in shown.stdout) == (0, True), shown.stderr
    stopped = login.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    (job,) = re.findall(r"job (\d+), which had not begun, is cancelled", stopped.stdout)
    assert login.slurm.jobs()[job] == "CANCELLED"
    assert login.slurm.jobs()[held] == "PENDING"
    assert login.run("stop").returncode == 2


def test_logs_and_status_follow_a_job_from_the_login_node(login: Login) -> None:
    """Its log to the last byte, its lines by a pattern, its states until nothing runs."""
    running = login.sweeping("toy")
    following = login.start(*PROGRAM, "logs", "--follow")
    watching = login.start(*PROGRAM, "status", "--watch", "--every", "1")
    (raw,) = login.sweep().glob("attempts/*/a1/r0.log")
    wait_for(lambda: b"Iteration: 2 " in raw.read_bytes(), "the second iteration")
    chosen = login.run("logs", "--grep", "Iteration: 2 ")
    assert len(chosen.stdout.splitlines()) == 1, chosen.stderr
    code, said = ended(running)
    assert code == 0, said
    assert following.communicate(timeout=PATIENCE_S)[0] == raw.read_text()
    seen = watching.communicate(timeout=PATIENCE_S)[0]
    assert watching.returncode == 0
    assert seen.index("1 running") < seen.index("1 valid")


@pytest.mark.long
def test_a_sweep_longer_than_its_job_is_queued_again_by_itself(login: Login) -> None:
    """The first trial fits, the second does not: the job waits again, and has time for it then."""
    playbook = login.folder / "playbooks" / "toy.yaml"
    text = playbook.read_text().replace("repeats: 1", "repeats: 2")
    playbook.write_text(text.replace("time_limit_s: 60", "time_limit_s: 150"))
    running = login.sweeping("toy", "--requeue")
    job = login.running_job()
    login.slurm.ask("scontrol", "update", f"JobId={job}", "TimeLimit=00:04:00")
    login.begin_again(job, "TimeLimit=01:00:00")
    code, said = ended(running)
    assert code == 0, said
    assert "WALLTIME" in said
    login.whole(2)
    assert {event["state"] for event in login.events("outcome")} == {"valid"}
    login.nothing_left()


PACKED = "repeats: 3, pack: disjoint,"


def packed(login: Login) -> "subprocess.Popen[str]":
    """A sweep over four nodes of which two gangs run."""
    login.inventory(nodes=4)
    login.playbook(("1x1", "2x1"), step_s=0.2)
    path = login.folder / "playbooks" / "toy.yaml"
    path.write_text(path.read_text().replace("repeats: 1,", PACKED))
    running = login.start(*PROGRAM, "sweep", "toy")
    wait_for(lambda: len(login.gangs()) > 1, "two gangs at once")
    return running


def apart(login: Login) -> None:
    """Every trial of it is valid once; those that met ran on nodes of their own, and are marked."""
    login.whole(6)
    outcomes = [json.loads(path.read_text()) for path in login.sweep().glob("logs/*/*.json")]
    assert side_by_side(spans([*login.events("intent"), *login.events("outcome")], outcomes))
    for result in json.loads(login.run("collect", "--json").stdout)["cases"]:
        assert {mark["code"] for mark in result["marks"]} >= {"BESIDE"}
    login.nothing_left()


def test_trials_run_side_by_side_in_one_job(login: Login) -> None:
    """With `pack: disjoint`, as steps that Slurm shows at once."""
    code, said = ended(packed(login))
    assert code == 0, said
    apart(login)


@pytest.mark.long
def test_a_controller_killed_among_several_gangs_loses_no_trial(login: Login) -> None:
    """All of them end with its job, and are measured anew in the next one."""
    running = packed(login)
    login.cluster.node(0).must("kill -KILL $(pgrep -f '[o]rchestrator sweep toy')")
    assert ended(running)[0] != 0
    login.nothing_left()
    done = login.run("sweep", "toy")
    assert done.returncode == 0, done.stderr
    states = [event["state"] for event in login.events("outcome")]
    assert states.count("infra-lost") >= 2
    apart(login)


@pytest.mark.long
def test_a_job_for_each_number_of_nodes_adds_to_one_sweep(login: Login) -> None:
    """One job after another, each as wide as its cases; the same command then has nothing to do."""
    path = login.folder / "inventory" / "queue.yaml"
    path.write_text(path.read_text().replace("nodes: 2", "nodes: 2, jobs: by-nodes"))
    login.playbook(("1x1", "2x1", "1x2", "2x2"), step_s=0.02, iterations=11)
    done = login.run("sweep", "toy")
    assert done.returncode == 0, done.stderr
    widths = re.findall(r"job (\d+) is submitted as \S+, for (\d) nodes?", done.stderr)
    assert sorted(nodes for _, nodes in widths) == ["1", "2"], done.stderr
    assert len({job for job, _ in widths}) == 2
    login.whole(4)
    assert len(list(login.state.glob("sweeps/*/sweep.json"))) == 1
    again = login.run("sweep", "toy")
    assert again.returncode == 0, again.stderr
    login.whole(4)
    login.nothing_left()


@pytest.mark.long
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


@pytest.mark.long
def test_a_node_that_goes_down_costs_one_attempt(login: Login) -> None:
    """Slurm gives it up in the middle of a trial; the sweep goes on with the others."""
    login.inventory(nodes=3)
    running = login.sweeping("toy")
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


def test_a_limit_of_memory_is_told_from_a_fault_of_the_program(login: Login) -> None:
    """Slurm's cgroup ends a rank of the second node: OOM, by the step's own word, and no retry."""
    path = login.folder / "inventory" / "queue.yaml"
    path.write_text(path.read_text().replace("nodes: 2", 'nodes: 2, extra: ["--mem=400M"]'))
    book = login.folder / "playbooks" / "toy.yaml"
    book.write_text(book.read_text().replace("step_s: 0.4", "step_s: 0.02, behaviour: greedy"))
    done = login.run("sweep", "toy")
    assert done.returncode == 3, done.stderr
    (outcome,) = [json.loads(path.read_text()) for path in login.sweep().glob("logs/*/*.json")]
    assert outcome["state"] == "failed"
    assert [problem["code"] for problem in outcome["problems"]] == ["OOM"], done.stderr
    assert outcome["problems"][0]["message"].startswith("node vs002, node_rank 1:")
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
    running = login.sweeping("toy", "--requeue")
    job = login.running_job()
    login.slurm.ask("scontrol", "requeue", job)
    login.begin_again(job)
    code, said = ended(running)
    assert code == 0, said
    assert f"job {job} begins again" in said
    login.whole(1)
    login.nothing_left()


@pytest.mark.long
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
    code, said = ended(running)
    assert code == (0 if requeue else 143), said
    told = f"job {job} begins again" if requeue else "ended in good order (PREEMPTED)"
    assert told in said
    first, *later = [(event["state"], event["code"]) for event in login.events("outcome")]
    assert first == ("infra-lost" if grace_s else "interrupted", "PREEMPTED"), said
    assert later == ([("valid", "")] if requeue else [])
    if requeue:
        login.whole(1)
    login.nothing_left()


@pytest.mark.long
def test_a_job_whose_time_is_over_ends_in_good_order(login: Login) -> None:
    """Slurm looks twice a minute: the warning comes, the trial is interrupted, nothing is lost."""
    login.playbook(step_s=5, iterations=11)
    first = login.sweeping("toy")
    job = login.running_job()
    login.slurm.ask("scontrol", "update", f"JobId={job}", "TimeLimit=00:01:00")
    code, said = ended(first)
    assert code == 143, said
    assert "ended in good order" in said
    login.nothing_left()
    assert [event["state"] for event in login.events("outcome")] == ["interrupted"]
