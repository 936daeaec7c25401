"""Tasks are found and ended on nodes by their marks, whatever the node's engine does."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.fleet import Fleet
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat
from orchestrator.runtimes.engine import Engine
from orchestrator.schedulers import strays
from orchestrator.schedulers.fanout import Fanout
from orchestrator.transports.local import LocalTransport
from tests.dockerd import IMAGE, Dockerd

SWEEP = "strays-20260101-000000-abcdef"
CLUSTER = Cluster.model_validate_json(
    '{"name": "far", "nodes": [{"name": "left", "address": "10.0.0.1"}]}'
)
SEAT = Seat("left", "10.0.0.1", (), None, (), {}, "/nonexistent")
NO_ENGINE = ("docker", "-H", "unix:///nonexistent/docker.sock")


def node_without_engine() -> Fleet:
    """This machine as a node whose Docker is down."""
    left = LocalTransport("left")
    return Fleet(CLUSTER, {"left": left}, lambda: {"left": Engine(left, command=NO_ENGINE)})


@contextmanager
def marked(task: str, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with the mark of a task."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, "DLPERF_TASK": task, **more})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_tasks_are_ended_although_their_engine_is_down() -> None:
    """The engine could remove their container only; they are killed by their marks."""

    task = f"dlp-{SWEEP}-1n1g-a1-r0"
    with marked(task) as process:
        ended = strays.end(node_without_engine(), [SEAT], [SWEEP])
        assert ended == {"left": (task,)}
        process.wait(10)


class AllBut(frozenset[str]):
    """Every job but these, so that nobody else's processes are ended here."""

    def __contains__(self, job: object) -> bool:
        return not super().__contains__(job)


def test_what_a_job_left_is_found_by_any_of_its_processes() -> None:
    """An observer, which does not have the job's mark, hides no supervisor, whoever began first."""
    task, job = f"dlp-{SWEEP}-1n1g-a2-r0", f"7{os.getpid()}"
    observer = {"DLPERF_OBSERVER": task}
    with (
        marked("", **observer) as before,
        marked("", DLPERF_SUPERVISOR=task, DLPERF_JOB=job) as supervisor,
        marked("", **observer) as after,
    ):
        strays.end_jobs(node_without_engine(), ["left"], "none", AllBut([job]))
        for process in (before, supervisor, after):
            process.wait(10)


def test_another_users_container_stays_whatever_job_it_was_of(
    dockerd: Dockerd, engine: Engine
) -> None:
    """Its user's controller knows whether that job is over; root, who sees its processes, not."""
    left, name = LocalTransport("left"), f"dlp-{SWEEP}-1n1g-a3-r0"
    fleet, job = Fleet(CLUSTER, {"left": left}, lambda: {"left": engine}), f"7{os.getpid()}"
    label = ("--network=none", f"--label=dlperf.sweep={SWEEP}", f"--label=dlperf.job={job}")
    mark = f"--env=DLPERF_SUPERVISOR={name}"
    try:
        for user, left_over in (("4321:4321", [name]), (f"{os.getuid()}:{os.getgid()}", [])):
            words = (f"--name={name}", f"--user={user}", *label, mark, IMAGE, "sleep", "60")
            dockerd.docker("run", "-d", *words)
            strays.end_jobs(fleet, ["left"], "none", AllBut([job]))
            assert dockerd.docker("ps", "--format={{.Names}}").split() == left_over
            if left_over:
                dockerd.docker("rm", "-f", name)
    finally:
        if left_over := dockerd.docker("ps", "-aq").split():
            dockerd.docker("rm", "-f", *left_over)


@pytest.mark.parametrize(
    ("task", "fix"),
    [
        ("dlp-data-imagenet_ofrecord-vs-002-a1-r0", "`dlperf-orch data prepare imagenet_ofrecord`"),
        ("dlp-data-$(touch x)-vs002-a1-r0", "`dlperf-orch data prepare NAME`"),
        ("dlp-data-\x1b[2J-vs002-a1-r0", "`dlperf-orch data prepare NAME`"),
        (f"dlp-{SWEEP}-1n1g-a1-r0", f"`dlperf-orch stop {SWEEP} --state '/tmp/a b;$(id)'` on h;"),
    ],
)
def test_a_strangers_mark_does_not_get_into_a_command_to_paste(task: str, fix: str) -> None:
    """Any user of a node can give a process any mark: it is quoted, or left out."""
    process = {"host": "h", "pid": 1, "started": "1", "boot": "b"}
    owner = {"process": process, "user": "eve", "since": "now", "folder": "/tmp/a b;$(id)"}
    more = {} if "data" in task else {"DLPERF_OWNER": json.dumps(owner)}
    with marked(task, DLPERF_DEADLINE="9" * 30, **more):
        found = strays.others(node_without_engine(), (), "two")
    (finding,) = (it for it in found if fix in it.fix)
    assert "$(touch" not in finding.seen
    assert "\x1b" not in finding.seen
    if more:
        assert "it has no known deadline" in finding.seen


def test_containers_are_found_by_their_labels(dockerd: Dockerd, engine: Engine) -> None:
    """Those that have ended are removed, and disturb nobody; a stranger's may have any label."""
    left = LocalTransport("left")
    fleet = Fleet(CLUSTER, {"left": left}, lambda: {"left": engine})
    name = f"dlp-{SWEEP}-1n1g-a1-r0"
    label = ("--network=none", f"--label=dlperf.sweep={SWEEP}")
    try:
        dockerd.docker("run", "-d", f"--name={name}", *label, IMAGE, "sleep", "60")
        dockerd.docker("create", "--name=ended", *label, "--label=dlperf.attempt=x", IMAGE, "true")
        assert Fanout(fleet, Path("state"), lambda: False).attempts(SWEEP) == set()
        assert [SWEEP in one.seen for one in strays.others(fleet, (), "two")].count(True) == 1
        found = [it.name for it in strays.find_tasks(fleet, "left") if it.sweep == SWEEP]
        assert found == [name, "ended"]
        assert strays.end(fleet, [SEAT], [SWEEP]) == {"left": (name, "ended")}
        assert not any(SWEEP in one.seen for one in strays.others(fleet, (), "two"))
    finally:
        if left_over := dockerd.docker("ps", "-aq").split():
            dockerd.docker("rm", "-f", *left_over)
