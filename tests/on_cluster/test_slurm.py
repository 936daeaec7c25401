"""Sweeps under a real Slurm: the three commands, and what may happen to them.

What a sweep says of itself is compared with what the nodes' process tables, Slurm's queue and the
raw logs say.
"""

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cluster.place import STUBS
from tests.cluster.slurm import PREEMPTING, call
from tests.commands import ended, told
from tests.docs import state_files
from tests.on_cluster.spans import side_by_side, spans
from tests.people import PROGRAM, SLOW, Login
from tests.processes import PATIENCE_S, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
OTHERS = "dlperf-queue-00000000"  # as of another state folder
LISTENER = """
setsid -f python3 -c "
import socket, time
taken = socket.create_server(('', {port}))
time.sleep(600)
" >/dev/null 2>&1
"""
# Steps: the nodes observed, data sets under preparation, what earlier gangs left, taken ports.
BEFORE = 4
# Inside a job: pastes the lines of a gang, each as in a terminal of its own.
TOGETHER = """
import json, subprocess, sys
words = [sys.executable, "-m", "orchestrator", "sweep", "toy", "--dry-run", "--json"]
shown = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["lines"]
(gang,) = (lines.values() for lines in shown.values() if len(lines) == 2)
steps = [subprocess.Popen(["sh", "-c", line]) for line in gang]
sys.exit(any([step.wait() for step in steps]))
"""


def test_three_commands_run_on_a_login_node_and_inside_an_allocation(login: Login) -> None:
    """On a login node; inside an allocation the same sweep goes on and finds nothing to do."""
    login.inventory(nodes=3)
    login.playbook(("1x1", "2x2"), step_s=0.02, iterations=11)
    shown = json.loads(login.run("sweep", "toy", "--dry-run", "--json").stdout)
    assert "#SBATCH --nodes=3\n" in shown["scripts"][0]
    assert login.slurm.jobs() == {} or not login.slurm.steps()
    login.must("provision", "queue")
    done = login.must("sweep", "toy")
    assert re.search(r"job \d+ is submitted as dlperf-queue-", done.stderr)
    login.whole(2)
    idle = login.run("sweep", "toy")
    assert (idle.returncode, "no node was asked" in idle.stderr) == (0, True), idle.stderr
    assert "is submitted" not in idle.stderr
    words = ("salloc", "-N2", "--exclusive", "-p", PREEMPTING, *PROGRAM, "sweep", "toy")
    again = login.cluster.run(*words, "--repeats", "2", cwd=login.folder, env=login.env)
    assert again.returncode == 0, again.stderr
    assert "goes on" in again.stderr
    login.whole(4)
    collected = json.loads(login.run("collect", "--json").stdout)
    for result in collected["cases"]:
        values = [trial["throughput"] for trial in result["trials"]]
        assert result["median"] == pytest.approx(statistics.median(values))
    assert state_files.untold(login.state) == set()
    login.nothing_left()


@pytest.mark.long
def test_a_job_that_others_may_run_beside_is_warned_of(login: Login) -> None:
    """It measures, since nothing may run there; what this program submits has whole nodes."""
    login.playbook(("2x1",), step_s=0.02, iterations=11)
    login.must("provision", "queue")
    words = ("salloc", "-N2", "-n2", "-c1", *PROGRAM, "sweep", "toy", "--repeats", "1")
    done = login.cluster.run(*words, cwd=login.folder, env=login.env)
    assert done.returncode in (0, 3), done.stderr
    assert re.search(r"warning SLURM-SHARED .*OverSubscribe=OK.*salloc --exclusive", done.stderr)
    alone = login.must("sweep", "toy", "--new", "--repeats", "1")
    assert "SLURM-SHARED" not in alone.stderr


def test_lines_of_a_dry_run_are_taken_by_slurm(login: Login) -> None:
    """A step without a job, both steps of a gang in one, and the script; as they were printed."""
    login.playbook(("1x1", "2x1"), step_s=0.02, iterations=11)
    done = login.must("sweep", "toy", "--dry-run")
    shown = login.json("sweep", "toy", "--dry-run")["lines"]
    (line,) = next(lines for lines in shown.values() if len(lines) == 1).values()
    alone = login.cluster.run("sh", "-c", line, cwd=login.folder, env=login.env)
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout.count(" Iteration: ") == 10
    (login.folder / "together.py").write_text(TOGETHER)
    inside = ("salloc", "-N2", "--exclusive", "-p", PREEMPTING, sys.executable, "together.py")
    gang = login.cluster.run(*inside, cwd=login.folder, env=login.env)
    assert gang.returncode == 0, gang.stderr
    assert gang.stdout.count(" Iteration: ") == 10  # of rank 0
    script = done.stdout[done.stdout.index("mkdir ") :].partition("\nplaybook ")[0]
    submitted = login.cluster.run("sh", "-c", script, cwd=login.folder, env=login.env)
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.strip()
    wait_for(lambda: login.slurm.jobs()[job] == "COMPLETED", "the end of the job")
    login.whole(2)
    login.nothing_left()


def test_init_asks_a_node_of_a_partition(login: Login) -> None:
    """Its file is what provision takes; partitions that are not there are told from the others."""
    done = login.must("init", "--slurm", "main", "-o", "inventory/queue.yaml", "--force", "--json")
    text = (login.folder / "inventory" / "queue.yaml").read_text()
    assert json.loads(done.stdout)["inventory"] == text
    assert 'slurm: {partition: main, time: "04:00:00", nodes: 4}' in text
    assert "\n  runtime: docker\n" in text
    assert "was asked, and stands for all nodes of the partition" in text
    assert "\nnodes:" not in text
    shown = login.must("provision", "queue", "--dry-run")
    assert "#SBATCH --nodes=4\n" in shown.stdout
    refused = login.must("init", "--slurm", "nowhere", code=5)
    assert "NO-PARTITION" in refused.stderr
    assert f"there are main, {PREEMPTING}" in refused.stderr
    login.must("init", "gpu01", "--slurm", "main", code=2)
    login.nothing_left()


def test_init_that_is_interrupted_leaves_no_job_in_the_queue(login: Login) -> None:
    """Which would wait for a node that nobody uses then, and hold it."""
    words = ("sbatch", "--parsable", "-N4", "--exclusive", "-p", "main", "-o", "/dev/null")
    busy = login.slurm.ask(*words, "--wrap=sleep 100").strip()
    try:
        wait_for(lambda: login.slurm.jobs()[busy] == "RUNNING", "that nodes are busy")
        asking = login.start(*PROGRAM, "init", "--slurm", "main")
        wait_for(lambda: "PENDING" in login.slurm.jobs().values(), "the job of init", 20)
        asking.send_signal(signal.SIGINT)
        assert ended(asking)[0] == 130
        assert "PENDING" not in login.slurm.jobs().values()
    finally:
        login.slurm.ask("scancel", "--user=root")


@pytest.fixture
def drained(login: Login) -> Iterator[str]:
    """A node that an administrator took out of service."""
    words = ("scontrol", "update", "NodeName=vs003")
    login.slurm.ask(*words, "State=DRAIN", "Reason=fan 3 broken")
    yield "vs003"
    call(login.cluster.place, *words, "State=RESUME")


def test_init_uses_what_slurm_knows(login: Login, drained: str) -> None:
    """Its GPUs, the address by which Slurm reaches the node, its limits."""
    words = ("scontrol", "update", "PartitionName=main")
    login.slurm.ask(*words, "MaxTime=30:00", "MaxNodes=2")
    try:
        done = login.must("init", "--slurm", "main", "--json")
        text = json.loads(done.stdout)["inventory"]
        login.inventory(nodes=2, time="00:30:01")
        refused = login.must("sweep", "toy", "--dry-run", code=5).stderr
    finally:
        login.slurm.ask(*words, "MaxTime=UNLIMITED", "MaxNodes=UNLIMITED")
    assert 'slurm: {partition: main, time: "00:30:00", nodes: 2}' in text
    assert "  gpus: {count: 8}\n" in text
    assert "  interface: ib0\n" in text
    assert f"# Not counted in `nodes`: {drained} (`sinfo -R` says why)\n" in text
    assert "QUEUE-NEVER: slurm.time is 00:30:01; partition main allows 00:30:00" in refused


def test_a_job_has_the_gpus_of_its_nodes(login: Login) -> None:
    """Where Slurm gives them and the inventory has them; steps see none that were not asked for."""
    path = login.folder / "inventory" / "queue.yaml"
    text = path.read_text()
    assert "--gres" not in login.must("sweep", "toy", "--dry-run").stdout
    path.write_text(text.replace("runtime: process", "runtime: process, gpus: {count: 8}"))
    assert "#SBATCH --gres=gpu:8\n" in login.must("sweep", "toy", "--dry-run").stdout
    login.more_env = {"PATH": f"{STUBS}:{os.environ['PATH']}"}  # nvidia-smi of the nodes
    login.must("provision", "queue")
    running = login.sweeping("toy")
    seen = "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -cx SLURM_STEP_GPUS=0,1,2,3,4,5,6,7"
    assert all(int(node.must(seen)) for node in login.cluster.nodes[:2])
    told(running)
    login.whole(1)
    path.write_text(text.replace("nodes: 2", 'nodes: 2, extra: ["--gpus-per-node=v100:1"]'))
    assert "--gres" not in login.must("sweep", "toy", "--dry-run").stdout
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
    login.must("sweep", "toy")
    assert login.sweep().name == name
    login.whole(1)
    assert [event["state"] for event in login.events("outcome")] == ["infra-lost", "valid"]
    login.nothing_left()


@contextlib.contextmanager
def without_batch_host(login: Login) -> Iterator[tuple[str, str]]:
    """Have the node of the job's script crash, and Slurm give it up at once; the job and the node.

    Slurm alone would do it after SlurmdTimeout. Afterwards the node is up again.
    """
    job = login.running_job()
    host = login.batch_host(job)
    with login.crashed(host):
        login.slurm.ask("scontrol", "update", f"NodeName={host}", "State=DOWN", "Reason=crash")
        yield job, host


def test_a_job_without_its_batch_host_holds_nobody_up(login: Login) -> None:
    """Where nobody follows it: status tells it from a job that runs, and other commands end it."""
    login.sweeping("toy").kill()
    with without_batch_host(login) as (job, host):
        shown = f"job {job} is running on vs002, without {host}, which ran its script"
        assert shown in login.must("status").stdout
        begin = time.monotonic()
        done = login.must("stop")
        assert time.monotonic() - begin < 30
        assert f"{shown}; it is cancelled" in done.stderr
        wait_for(lambda: login.slurm.jobs()[job] == "CANCELLED", "a job that is cancelled")
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
    stopped = login.must("stop")
    assert "has ended" in stopped.stdout
    assert ended(third)[0] == 143
    login.nothing_left()
    states = {event["state"] for event in login.events("outcome")}
    assert states <= {"interrupted", "infra-lost"}


def test_options_in_the_users_environment_do_not_count(login: Login) -> None:
    """They count more than a script's lines, hide jobs, and change what srun prints."""
    login.playbook(step_s=0.05)
    hiding = {"SQUEUE_PARTITION": "high", "SQUEUE_USERS": "nobody", "SLURM_TIME_FORMAT": "relative"}
    asking = {"SBATCH_PARTITION": "high", "SBATCH_TIMELIMIT": "1", "SBATCH_JOB_NAME": "mine"}
    several = {"SBATCH_ARRAY_INX": "0-1", "SBATCH_WAIT": "1", "SBATCH_SIGNAL": "USR1@1"}
    step = {"SLURM_LABELIO": "1", "SLURM_STDINMODE": "none", "SLURM_DEBUG": "3"}
    login.more_env.update({**hiding, **asking, **several, **step})
    before = set(login.slurm.jobs())
    login.must("sweep", "toy", "--inventory", "queue")
    login.whole(1)
    (job,) = set(login.slurm.jobs()) - before
    shown = login.slurm.ask("scontrol", "-o", "show", "job", job)
    assert "Partition=main " in shown
    assert "TimeLimit=01:00:00 " in shown
    login.nothing_left()


def test_a_job_that_waits_is_shown_and_cancelled(login: Login) -> None:
    """Before there is any sweep, by status and stop; not that of another state folder."""
    path = login.folder / "inventory" / "queue.yaml"
    path.write_text(path.read_text().replace("nodes: 2", 'nodes: 2, extra: ["--hold"]'))
    held = login.slurm.ask("sbatch", "--parsable", "--hold", "-J", OTHERS, "--wrap=:").strip()
    login.must("sweep", "toy", "--detach")
    shown = login.run("status")
    assert (shown.returncode, "waits: JobHeldUser" in shown.stdout) == (0, True), shown.stderr
    stopped = login.must("stop")
    (job,) = re.findall(r"job (\d+), which had not begun, is cancelled", stopped.stdout)
    assert login.slurm.jobs()[job] == "CANCELLED"
    assert login.slurm.jobs()[held] == "PENDING"
    login.must("stop", code=2)


@pytest.mark.long
def test_logs_and_status_follow_a_job_from_the_login_node(login: Login) -> None:
    """Its log to the last byte, its states until nothing runs."""
    running = login.sweeping("toy")
    following = login.start(*PROGRAM, "logs", "--follow")
    watching = login.start(*PROGRAM, "status", "--watch", "--every", "1")
    (raw,) = login.sweep().glob("attempts/*/a1/r0.log")
    wait_for(lambda: b"Iteration: 2 " in raw.read_bytes(), "the second iteration")
    assert "Iteration: 2 " in login.must("logs").stdout
    told(running)
    assert following.communicate(timeout=PATIENCE_S)[0] == raw.read_text()
    seen = watching.communicate(timeout=PATIENCE_S)[0]
    assert watching.returncode == 0
    assert seen.index("1 running") < seen.index("1 valid")


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


@pytest.mark.long
def test_a_controller_killed_among_several_gangs_loses_no_trial(login: Login) -> None:
    """All of them end with its job, and are measured anew in the next one."""
    running = packed(login)
    login.cluster.node(0).must("kill -KILL $(pgrep -f '[o]rchestrator sweep toy')")
    assert ended(running)[0] != 0
    login.nothing_left()
    login.must("sweep", "toy")
    states = [event["state"] for event in login.events("outcome")]
    assert states.count("infra-lost") >= 2
    apart(login)


def test_a_limit_of_memory_is_told_from_a_fault_of_the_program(login: Login) -> None:
    """Slurm's cgroup ends a rank of the second node: OOM, by the step's own word, and no retry."""
    path = login.folder / "inventory" / "queue.yaml"
    path.write_text(path.read_text().replace("nodes: 2", 'nodes: 2, extra: ["--mem=400M"]'))
    book = login.folder / "playbooks" / "toy.yaml"
    book.write_text(book.read_text().replace("step_s: 0.4", "step_s: 0.02, behaviour: greedy"))
    done = login.must("sweep", "toy", code=3)
    (outcome,) = [json.loads(path.read_text()) for path in login.sweep().glob("logs/*/*.json")]
    assert outcome["state"] == "failed"
    assert [problem["code"] for problem in outcome["problems"]] == ["OOM"], done.stderr
    assert outcome["problems"][0]["message"].startswith("node vs002, node_rank 1:")
    login.nothing_left()


def repeats(login: Login, count: int) -> None:
    """So many trials of one case on two nodes."""
    login.playbook(step_s=0.1)
    path = login.folder / "playbooks" / "toy.yaml"
    path.write_text(path.read_text().replace("repeats: 1", f"repeats: {count}"))


def started(login: Login) -> int:
    """How many steps the newest job had."""
    job = max(map(int, login.slurm.jobs()))
    logs = login.cluster.place.folder.glob("nodes/*/var/log/slurmd.log")
    said = "".join(log.read_text() for log in logs)
    return len(set(re.findall(rf"launch task StepId={job}\.(\d+) ", said)))


@pytest.mark.long
def test_no_step_but_the_gangs_own_is_paid_between_two_trials(login: Login) -> None:
    """Leftovers and ports are looked for before the first gang; each gang's step does so later."""
    repeats(login, 3)
    login.must("sweep", "toy")
    login.whole(3)
    assert started(login) == BEFORE + 3
    login.nothing_left()


@pytest.mark.long
def test_a_gang_that_is_over_keeps_no_file_open(login: Login) -> None:
    """The controller has as many open in the last trial as in the first."""
    repeats(login, 3)
    path = login.folder / "playbooks" / "toy.yaml"
    path.write_text(path.read_text().replace("step_s: 0.1", "step_s: 0.2"))
    running = login.start(*PROGRAM, "sweep", "toy")
    look = "ls /proc/$(pgrep -f '[o]rchestrator sweep toy')/fd | wc -l"

    def fewest() -> int:
        """Of ten looks: a log that is read or a command that runs has some open for a moment."""
        return min(int(login.cluster.node(0).must(look)) for _ in range(10))

    wait_for(login.steps, "iterations of the first trial")
    first = fewest()
    wait_for(lambda: len(login.events("intent")) == 3 and login.steps(), "those of the last one")
    last = fewest()
    told(running)
    assert last == first


@pytest.mark.long
def test_a_port_that_is_taken_while_a_gang_runs_is_not_given_to_the_next(login: Login) -> None:
    """Also on a node that is not the leader's."""
    repeats(login, 2)
    running = login.sweeping("toy")
    (first,) = login.events("intent")
    second = login.cluster.node(1)
    second.must(LISTENER.format(port=first["port"] + 1))
    try:
        code, said = ended(running)
    finally:
        second.must("kill $(pgrep -f '[c]reate_server')")
    assert code == 0, said
    assert [event["port"] - first["port"] for event in login.events("intent")] == [0, 2]
    login.whole(2)
