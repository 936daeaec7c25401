"""Tasks in real containers: their rights, what hurts them, and how their ends are told."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.node import Container
from orchestrator.model.plan import Mount
from orchestrator.runtimes.containers import Containers
from orchestrator.runtimes.engine import Engine
from orchestrator.runtimes.grants import run_words
from orchestrator.runtimes.images import Images
from tests.dockerd import IMAGE, QUICK, Dockerd, context, unlike
from tests.runtimes.docker_stage import ENDLESS, LEAST, LIMITS, Stage

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
BOUND = Container(shm_size="32m", ulimits={"nofile": 512})
# What a container in the foreground of a step has and one that the API starts has not.
DIFFERING = {
    "HostConfig": {"AutoRemove", "Init"},
    "Config": {
        *("AttachStdin", "AttachStdout", "AttachStderr", "OpenStdin", "StdinOnce"),
        *("Entrypoint", "Cmd"),  # which differ in where one ends and the other begins
    },
}


@pytest.fixture
def stage(dockerd: Dockerd, engine: Engine, tmp_path: Path) -> Iterator[Stage]:
    """The engine that all share; containers that a test leaves are removed."""
    yield Stage(dockerd, engine, tmp_path)
    left = dockerd.docker("ps", "-aq").split()
    if left:
        dockerd.docker("rm", "-f", *left)


def test_containers_have_the_least_rights(stage: Stage) -> None:
    """No capability, no new privileges, our user, host network, a bounded log, four labels."""
    attempt, task = stage.attempt("sh", "-c", ENDLESS)
    stage.begin(attempt, task, BOUND)
    (said,) = json.loads(stage.dockerd.docker("inspect", attempt.token(task)))
    host = said["HostConfig"]
    assert (host["CapDrop"], host["CapAdd"], host["Privileged"]) == (["ALL"], None, False)
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["NetworkMode"] == "host"
    assert host["Devices"] in (None, [])
    assert host["LogConfig"] == {
        "Type": "json-file",
        "Config": {"max-size": "10m", "max-file": "1"},
    }
    assert host["RestartPolicy"]["Name"] in ("", "no")
    assert [mount["Destination"] for mount in said["Mounts"]] == [attempt.folder(task)]
    assert said["Config"]["User"] == f"{os.getuid()}:{os.getgid()}"
    assert said["Config"]["WorkingDir"] == attempt.folder(task)
    labels = {key: value for key, value in said["Config"]["Labels"].items() if "dead" not in key}
    assert labels == {
        "dlperf.sweep": "s1",
        "dlperf.trial": attempt.trial,
        "dlperf.attempt": "1",
        "dlperf.node_rank": "0",
    }
    assert abs(int(said["Config"]["Labels"]["dlperf.deadline"]) - time.time() - 91) < 30


def test_docker_run_makes_the_container_that_the_api_makes(stage: Stage) -> None:
    """As the engine itself shows both: only what the foreground needs differs."""
    attempt, task = stage.attempt("true", mounts=(Mount("/usr/share", "/da,ta", read_only=True),))
    request = stage.runtime(BOUND).request(
        attempt, replace(task, capabilities=("CAP_CHOWN",)), LIMITS
    )
    Path(attempt.folder(task)).mkdir()
    device = {"PathOnHost": "/dev/null", "PathInContainer": "/dev/zero2", "CgroupPermissions": "rw"}
    host = request["HostConfig"]
    host["Devices"] = [device]
    host["DeviceRequests"] = [
        {
            "Driver": "nvidia",
            "Count": -1,
            "Capabilities": [["compute", "utility", "gpu"]],
            "Options": {},
        }
    ]
    Containers(stage.engine).create("by-api", request)
    stage.dockerd.docker("create", *run_words(request, "--interactive", "--name=by-words")[1:])
    (ours,), (theirs,) = (
        json.loads(stage.dockerd.docker("inspect", name)) for name in ("by-api", "by-words")
    )
    for document in (
        ours,
        theirs,
    ):  # "no" is what the command says, and engines of 28 by themselves
        assert document["HostConfig"].pop("RestartPolicy")["Name"] in ("", "no")
    for part in ("HostConfig", "Config"):
        left, right = (  # where nothing is given, one has an empty list and the other null
            {key: value for key, value in document[part].items() if value not in (None, [], {})}
            for document in (ours, theirs)
        )
        differing = {key for key in {*left, *right} if left.get(key) != right.get(key)}
        assert differing == DIFFERING[part]
    command = ours["Config"]["Entrypoint"] + (ours["Config"]["Cmd"] or [])
    assert command == theirs["Config"]["Entrypoint"] + theirs["Config"]["Cmd"]


def test_rights_and_limits_hold_inside(stage: Stage) -> None:
    """As the kernel tells them to the program itself."""
    script = (
        "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; ulimit -n;"
        " grep /dev/shm /proc/mounts"
    )
    said = stage.said(script, BOUND).split()
    assert said[:6] == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert said[6] == "512"
    assert "size=32768k" in said[-3]


def test_mounts_are_read_only_or_refused(stage: Stage) -> None:
    """Data cannot be written; a folder that is not there is named, and none is made."""
    data = stage.folder / "data"
    data.mkdir()
    (data / "one").write_text("1")
    script = f"cat /data/one; echo >/data/two && exit 1; cd {stage.folder}/a1 && pwd"
    attempt, task = stage.attempt("sh", "-c", script, mounts=(Mount(str(data), "/data", True),))
    runtime = stage.begin(attempt, task)
    assert stage.end(runtime, attempt, task).status == 0
    assert b"Read-only file system" in runtime.output(attempt, task, 0)
    gone = Mount(f"{data}/gone", "/data", True)
    attempt, task = stage.attempt("true", mounts=(gone,))
    with pytest.raises(errors.UnfitError, match="gone") as raised:
        stage.runtime().create(attempt, task, LIMITS)
    assert raised.value.code == "MOUNT-MISSING"
    assert not (data / "gone").exists()
    assert attempt.token(task) not in stage.names()


def test_the_images_own_entrypoint_is_kept(stage: Stage) -> None:
    """It runs around the program, as the image's maker meant it to."""
    shell = json.dumps(["sh", "-c", 'echo "entered with $1"; exec "$@"', "sh"])
    built = context(f"FROM {IMAGE}\nENTRYPOINT {shell}\nENV FROM_IMAGE=yes\n")
    Images(stage.engine).build([built], "entered:1", {}, {}, lambda _: None)
    said = stage.said('echo "and $FROM_IMAGE"', image="entered:1")
    assert said == "entered with sh\nand yes\n"


def test_a_container_is_started_from_what_the_nodes_engine_calls_the_image(stage: Stage) -> None:
    """Not from the id that other nodes know it by, which is not there."""
    attempt, task = stage.attempt("true")
    mixed = replace(attempt, image=f"sha256:{'0' * 64}", images={"here": IMAGE, "there": "x:1"})
    runtime = stage.begin(mixed, task)
    assert stage.end(runtime, mixed, task).status == 0
    (elsewhere, other) = stage.attempt("true")
    lacks = replace(elsewhere, image=mixed.image, images={"there": IMAGE})
    with pytest.raises(errors.UnfitError, match="000") as raised:
        stage.runtime().create(lacks, other, LIMITS)
    assert raised.value.code == "IMAGE-MISSING"


def test_orphans_are_reaped_while_a_task_runs(stage: Stage) -> None:
    """The supervisor is the first process: children without a parent do not stay as zombies."""
    script = "(sh -c 'sleep 0.1' &); sleep 0.5; cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"
    assert stage.said(f"{script}; exit 0") == "0\n"


@pytest.mark.parametrize(
    ("options", "image", "gpus", "code"),
    [
        (LEAST, IMAGE, (0,), "GPU-RUNTIME"),
        (Container(gpu_access="gpus"), IMAGE, (0,), "GPU-RUNTIME"),
        (LEAST, IMAGE, (), "IB-DEVICES"),
        (LEAST, "no-such-image:1", (), "IMAGE-MISSING"),
        (LEAST, "empty:1", (), "DOCKER-REFUSED"),
        (Container(ulimits={"nofile": 1 << 40}), IMAGE, (), "ULIMIT"),
    ],
)
def test_what_cannot_be_started_is_named_and_leaves_nothing(
    stage: Stage, options: Container, image: str, gpus: tuple[int, ...], code: str
) -> None:
    """No container in `created` stays behind, whatever the node lacks."""
    unlike(stage.dockerd, "empty:1")
    attempt, made = stage.attempt("true", gpus=gpus)
    runtime = stage.runtime(options, image, has_hcas=code == "IB-DEVICES")
    with pytest.raises(errors.UnfitError) as raised:
        runtime.create(attempt, made, LIMITS)
    assert raised.value.code == code
    assert stage.names() == []


def test_an_answer_that_was_lost_makes_no_second_container(stage: Stage) -> None:
    """What is there under the name with the same labels is taken as it is."""
    attempt, task = stage.attempt("sh", "-c", ENDLESS)
    stage.runtime().create(attempt, task, LIMITS)
    (before,) = stage.dockerd.docker("ps", "-q").split()
    runtime = stage.begin(attempt, task)
    assert stage.dockerd.docker("ps", "-aq").split() == [before]
    assert runtime.inspect(attempt, task).phase == "running"


def test_a_foreign_container_is_left_alone(stage: Stage) -> None:
    """NAME-TAKEN to create it, and remove does not touch it either."""
    attempt, task = stage.attempt("true")
    name = attempt.token(task)
    stage.dockerd.docker("run", "-d", "--name", name, "--network=none", IMAGE, "sleep", "60")
    runtime = stage.runtime()
    with pytest.raises(errors.UnfitError, match=name) as raised:
        runtime.create(attempt, task, LIMITS)
    assert raised.value.code == "NAME-TAKEN"
    runtime.remove(attempt, task)
    assert stage.dockerd.docker("inspect", "-f", "{{.State.Running}}", name) == "true"


def test_an_older_one_of_ours_gives_way(stage: Stage) -> None:
    """A container with our labels and another attempt's words is replaced."""
    attempt, task = stage.attempt("sh", "-c", "echo new")
    label = ("--label", "dlperf.sweep=older")
    stage.dockerd.docker(
        *("run", "-d", "--network=none", *label, "--name", attempt.token(task)),
        *(IMAGE, "sleep", "60"),
    )
    runtime = stage.begin(attempt, task)
    assert stage.end(runtime, attempt, task).status == 0
    assert len(stage.names()) == 1


def test_containers_are_found_by_label(stage: Stage) -> None:
    """Running or ended, ours and nobody else's."""
    stage.dockerd.docker("run", "--network=none", IMAGE, "true")
    attempt, task = stage.attempt("true")
    runtime = stage.begin(attempt, task)
    stage.end(runtime, attempt, task)
    (found,) = Containers(stage.engine).labelled("dlperf.sweep=s1", "dlperf.trial")
    assert (found.name, found.state) == (attempt.token(task), "exited")
    assert found.labels["dlperf.attempt"] == "1"


def test_a_child_that_runs_out_of_memory_is_told_though_the_status_is_0(stage: Stage) -> None:
    """A rank that the kernel ended for want of memory makes no valid trial."""
    script = "sleep 0.5; dd if=/dev/zero of=/dev/null bs=300M count=1; exit 0"
    attempt, task = stage.attempt("sh", "-c", script)
    runtime = stage.begin(attempt, task)
    limit = ("--memory", "24m", "--memory-swap", "24m")
    stage.dockerd.docker("update", *limit, attempt.token(task))
    end = stage.end(runtime, attempt, task)
    assert (end.status, end.why) == (0, "oom")


def test_a_container_killed_from_outside(stage: Stage) -> None:
    """137 without want of memory: killed, and not the program's failure."""
    attempt, task = stage.attempt("sh", "-c", ENDLESS)
    runtime = stage.begin(attempt, task)
    stage.dockerd.docker("kill", attempt.token(task))
    end = stage.end(runtime, attempt, task)
    assert (end.status, end.why) == (137, "killed")


def test_a_container_that_was_removed_is_lost(stage: Stage) -> None:
    """Nobody knows how it ended."""
    attempt, task = stage.attempt("sh", "-c", ENDLESS)
    runtime = stage.begin(attempt, task)
    stage.dockerd.docker("rm", "-f", attempt.token(task))
    assert stage.end(runtime, attempt, task).why == "lost"


def test_a_container_that_will_not_go_is_named(stage: Stage) -> None:
    """UNKILLABLE, with the command to finish; the next asking, when it can go, removes it."""
    engine = stage.dockerd.engine(patience=replace(QUICK, answer_s=1.0, end_s=2.0))
    hurried = replace(stage, engine=engine)
    attempt, task = hurried.attempt("sh", "-c", ENDLESS)
    runtime = hurried.begin(attempt, task)
    shims = stage.dockerd.shims(stage.dockerd.docker("inspect", "-f", "{{.Id}}", *stage.names()))
    assert shims
    for pid in shims:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(errors.LeftoverError, match=attempt.token(task)) as raised:
            runtime.remove(attempt, task)
    finally:
        for pid in shims:
            os.kill(pid, signal.SIGCONT)
    assert (raised.value.code, raised.value.exit_code) == ("UNKILLABLE", 7)
    assert raised.value.fix == f"docker rm --force {attempt.token(task)}"
    stage.runtime().remove(attempt, task)
    assert stage.names() == []


def test_a_question_inside_a_container_is_answered(stage: Stage) -> None:
    """Both streams and the status; 127 for what the image lacks; nothing stays behind."""
    runtime = stage.runtime()
    done = runtime.run_once(("sh", "-c", "id -u; echo e >&2; exit 5"), gpus=False, timeout_s=20)
    assert (done.exit_code, done.stdout, done.stderr) == (5, f"{os.getuid()}\n".encode(), b"e\n")
    absent = runtime.run_once(("ibstat",), gpus=False, timeout_s=20)
    assert absent.exit_code == 127
    assert b"ibstat" in absent.stderr
    with pytest.raises(errors.CommandTimedOut):
        runtime.run_once(("sleep", "60"), gpus=False, timeout_s=0.5)
    assert stage.names() == []


def test_a_question_whose_container_somebody_removes_is_not_waited_out(stage: Stage) -> None:
    """It was killed and has printed nothing, at once and not at the end of the question's time."""

    def remove() -> None:
        while not stage.names():
            time.sleep(0.02)
        while "running" not in stage.dockerd.docker("ps", "--format", "{{.State}}"):
            time.sleep(0.02)
        stage.dockerd.docker("rm", "--force", *stage.names())

    removing = threading.Thread(target=remove)
    removing.start()
    began = time.monotonic()
    try:
        done = stage.runtime().run_once(("sleep", "60"), gpus=False, timeout_s=50)
    finally:
        removing.join()
    assert (done.exit_code, done.stdout, done.stderr) == (137, b"", b"")
    assert time.monotonic() - began < 30
    assert Containers(stage.engine).output("gone") == (
        b"",
        b"",
    )  # as between its end and its output
