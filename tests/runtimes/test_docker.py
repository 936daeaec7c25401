"""Tasks in real containers: their rights, the damage that they meet, and the reported ends."""

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
from orchestrator.runtimes.grants import run_words
from orchestrator.runtimes.images import Images
from tests.dockerd import IMAGE, QUICK, Dockerd, context, unlike
from tests.processes import wait_for
from tests.runtimes.stage import ENDLESS, LEAST, LIMITS, DockerStage, refused, staged

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
BOUND = Container(shm_size="32m", ulimits={"nofile": 512})
# A container in the foreground of a step differs here from one that the API starts.
DIFFERING = {
    "HostConfig": {"AutoRemove", "Init"},
    "Config": {
        *("AttachStdin", "AttachStdout", "AttachStderr", "OpenStdin", "StdinOnce"),
        *("Entrypoint", "Cmd"),  # which differ in where one ends and the other begins
    },
}


@pytest.fixture
def stage(dockerd: Dockerd, tmp_path: Path) -> Iterator[DockerStage]:
    """The engine that all share; containers that a test leaves are removed."""
    with staged(dockerd, tmp_path) as made:
        yield made


def test_containers_have_the_least_rights(stage: DockerStage) -> None:
    """No capability, no new privileges, our user, host network, a bounded log, four labels."""
    task = DockerStage(stage.dockerd, stage.folder, BOUND, engine=stage.engine).begin(ENDLESS)
    (said,) = json.loads(stage.dockerd.docker("inspect", task.token))
    host, config, folder = said["HostConfig"], said["Config"], str(task.path("log").parent)
    assert (host["CapDrop"], host["CapAdd"], host["Privileged"]) == (["ALL"], None, False)
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["NetworkMode"] == "host"
    assert host["Devices"] in (None, [])
    bounded = {"max-size": "10m", "max-file": "1"}
    assert host["LogConfig"] == {"Type": "json-file", "Config": bounded}
    assert host["RestartPolicy"]["Name"] in ("", "no")
    assert [mount["Destination"] for mount in said["Mounts"]] == [folder]
    assert (config["User"], config["WorkingDir"]) == (f"{os.getuid()}:{os.getgid()}", folder)
    assert abs(int(config["Labels"].pop("dlperf.deadline")) - time.time() - 91) < 30
    assert config["Labels"] == {
        "dlperf.sweep": task.attempt.sweep,
        "dlperf.trial": task.attempt.trial,
        "dlperf.attempt": "1",
        "dlperf.node_rank": "0",
    }


def test_docker_run_makes_the_container_that_the_api_makes(stage: DockerStage) -> None:
    """The engine shows both, and only what the foreground needs differs."""
    runtime = DockerStage(stage.dockerd, stage.folder, BOUND, engine=stage.engine).runtime
    made = stage.task("true", mounts=(Mount("/usr/share", "/data", read_only=True),))
    granted = replace(made.task, capabilities=("CAP_CHOWN",))
    request = runtime.request(made.attempt, granted, LIMITS)
    made.path("log").parent.mkdir()
    device = {"PathOnHost": "/dev/null", "PathInContainer": "/dev/zero2", "CgroupPermissions": "rw"}
    request["HostConfig"]["Devices"] = [device]
    gpus = {"Driver": "nvidia", "Count": -1, "Capabilities": [["compute", "utility", "gpu"]]}
    request["HostConfig"]["DeviceRequests"] = [{**gpus, "Options": {}}]
    Containers(stage.engine).create("by-api", request)
    stage.dockerd.docker("create", *run_words(request, "--interactive", "--name=by-words")[1:])
    both = [json.loads(stage.dockerd.docker("inspect", f"by-{way}"))[0] for way in ("api", "words")]
    for document in both:  # "no" is what the command says, and engines of 28 by themselves
        assert document["HostConfig"].pop("RestartPolicy")["Name"] in ("", "no")
    for part in ("HostConfig", "Config"):
        left, right = (  # where nothing is given, one has an empty list and the other null
            {key: value for key, value in document[part].items() if value not in (None, [], {})}
            for document in both
        )
        differing = {key for key in {*left, *right} if left.get(key) != right.get(key)}
        assert differing == DIFFERING[part]
    ours, theirs = ([*it["Config"]["Entrypoint"], *(it["Config"]["Cmd"] or ())] for it in both)
    assert ours == theirs


def test_rights_and_limits_hold_inside(stage: DockerStage) -> None:
    script = (
        "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; ulimit -n;"
        " grep /dev/shm /proc/mounts"
    )
    bound = DockerStage(stage.dockerd, stage.folder, BOUND, engine=stage.engine)
    said = bound.run(script)[1].decode().split()
    assert said[:6] == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert said[6] == "512"
    assert "size=32768k" in said[-3]


def test_mounts_are_read_only_or_refused(stage: DockerStage) -> None:
    data = stage.folder / "data"
    data.mkdir()
    (data / "one").write_text("1")
    script = f"cat /data/one; echo >/data/two && exit 1; cd {stage.folder}/a1 && pwd"
    task = stage.task("sh", "-c", script, mounts=(Mount(str(data), "/data", True),)).begin()
    assert task.end().status == 0
    assert b"Read-only file system" in task.output()
    lacking = stage.task("true", mounts=(Mount(f"{data}/gone", "/data", True),))
    with refused("MOUNT-MISSING", "gone"):
        lacking.create()
    assert not (data / "gone").exists()
    assert lacking.token not in stage.names()


def test_the_images_own_entrypoint_is_kept(stage: DockerStage) -> None:
    """It runs around the program, as the image's maker meant it to."""
    shell = json.dumps(["sh", "-c", 'echo "entered with $1"; exec "$@"', "sh"])
    built = context(f"FROM {IMAGE}\nENTRYPOINT {shell}\nENV FROM_IMAGE=yes\n")
    Images(stage.engine).build([built], "entered:1", {}, {}, lambda _: None)
    entered = DockerStage(stage.dockerd, stage.folder, image="entered:1", engine=stage.engine)
    assert entered.run('echo "and $FROM_IMAGE"')[1] == b"entered with sh\nand yes\n"


def test_a_container_is_started_from_the_nodes_own_id_of_the_image(stage: DockerStage) -> None:
    """Other nodes know the image by another id, which is not there."""
    task, image = stage.task("true"), f"sha256:{'0' * 64}"
    own = replace(task.attempt, image=image, images={"here": IMAGE, "there": "x:1"})
    assert replace(task, attempt=own).begin().end().status == 0
    other = stage.task("true")
    lacks = replace(other.attempt, image=image, images={"there": IMAGE})
    with refused("IMAGE-MISSING", "000"):
        replace(other, attempt=lacks).create()


def test_orphans_are_reaped_while_a_task_runs(stage: DockerStage) -> None:
    """The supervisor is the first process: children without a parent do not stay as zombies."""
    script = "(sh -c 'sleep 0.1' &); sleep 0.5; cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"
    assert stage.run(f"{script}; exit 0")[1] == b"0\n"


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
def test_a_container_that_cannot_start_is_explained_and_removed(
    stage: DockerStage, options: Container, image: str, gpus: tuple[int, ...], code: str
) -> None:
    unlike(stage.dockerd, "empty:1")
    has_hcas = code == "IB-DEVICES"
    unable = DockerStage(
        stage.dockerd, stage.folder, options, image=image, engine=stage.engine, has_hcas=has_hcas
    )
    with refused(code):
        unable.task("true", gpus=gpus).create()
    assert stage.names() == []


def test_a_lost_answer_makes_no_second_container(stage: DockerStage) -> None:
    """A container with the same name and labels is used as it is."""
    task = stage.task("sh", "-c", ENDLESS)
    task.create()
    (before,) = stage.dockerd.docker("ps", "-q").split()
    again = replace(task, runtime=stage.make()).begin()
    assert stage.dockerd.docker("ps", "-aq").split() == [before]
    assert again.phase == "running"


def test_a_foreign_container_is_left_alone_and_an_older_one_of_ours_replaced(
    stage: DockerStage,
) -> None:
    foreign, older = stage.task("true"), stage.task("sh", "-c", "echo new")
    for task, *label in ((foreign,), (older, "--label", "dlperf.sweep=older")):
        stage.dockerd.docker(
            *("run", "-d", "--network=none", *label, "--name", task.token, IMAGE, "sleep", "60")
        )
    with refused("NAME-TAKEN", foreign.token):
        foreign.create()
    foreign.remove()
    running = stage.dockerd.docker("inspect", "-f", "{{.State.Running}}", foreign.token)
    assert running == "true"
    assert older.begin().end().status == 0
    assert len(stage.names()) == 2


def test_containers_are_found_by_label(stage: DockerStage) -> None:
    """Running or ended, ours and nobody else's."""
    stage.dockerd.docker("run", "--network=none", IMAGE, "true")
    task = stage.task("true").begin()
    task.end()
    sweep = f"dlperf.sweep={task.attempt.sweep}"
    (found,) = Containers(stage.engine).labelled(sweep, "dlperf.trial")
    assert (found.name, found.state) == (task.token, "exited")
    assert found.labels["dlperf.attempt"] == "1"


@pytest.mark.parametrize(
    ("script", "command", "end"),
    [
        # A rank that the kernel ended for want of memory makes no valid trial.
        (
            "sleep 0.5; dd if=/dev/zero of=/dev/null bs=300M count=1; exit 0",
            ("update", "--memory", "24m", "--memory-swap", "24m"),
            (0, "oom"),
        ),
        (ENDLESS, ("kill",), (137, "killed")),
        (ENDLESS, ("rm", "-f"), (None, "lost")),
    ],
    ids=["child out of memory", "killed", "removed"],
)
def test_the_end_of_a_container_that_was_hurt_is_told_apart(
    stage: DockerStage, script: str, command: tuple[str, ...], end: tuple[int | None, str]
) -> None:
    task = stage.begin(script)
    stage.dockerd.docker(*command, task.token)
    found = task.end()
    assert (found.status, found.why) == end


def test_a_container_that_does_not_end_is_named(stage: DockerStage) -> None:
    """UNKILLABLE, with the command to finish; a later remove, when it can go, removes it."""
    engine = stage.dockerd.engine(patience=replace(QUICK, answer_s=1.0, end_s=2.0))
    task = DockerStage(stage.dockerd, stage.folder, engine=engine).begin(ENDLESS)
    shims = stage.dockerd.shims(stage.dockerd.docker("inspect", "-f", "{{.Id}}", task.token))
    assert shims
    for pid in shims:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(errors.LeftoverError, match=task.token) as raised:
            task.remove()
    finally:
        for pid in shims:
            os.kill(pid, signal.SIGCONT)
    assert (raised.value.code, raised.value.exit_code) == ("UNKILLABLE", 7)
    assert raised.value.fix == f"docker rm --force {task.token}"
    replace(task, runtime=stage.runtime).remove()
    assert stage.names() == []


def test_a_command_in_a_container_of_its_own_returns_its_output_and_status(
    stage: DockerStage,
) -> None:
    """127 where the image lacks the command; no container stays behind."""
    run_once = stage.runtime.run_once
    done = run_once(("sh", "-c", "id -u; echo e >&2; exit 5"), gpus=False, timeout_s=20)
    assert (done.exit_code, done.stdout, done.stderr) == (5, f"{os.getuid()}\n".encode(), b"e\n")
    absent = run_once(("ibstat",), gpus=False, timeout_s=20)
    assert absent.exit_code == 127
    assert b"ibstat" in absent.stderr
    with pytest.raises(errors.CommandTimedOut):
        run_once(("sleep", "60"), gpus=False, timeout_s=0.5)
    assert stage.names() == []


def test_a_command_whose_container_is_removed_ends_at_once(stage: DockerStage) -> None:
    """It was killed and has printed nothing."""
    docker = stage.dockerd.docker

    def remove() -> None:
        wait_for(lambda: docker("ps", "--quiet", "--filter", "status=running"), "the container")
        docker("rm", "--force", *stage.names())

    removing = threading.Thread(target=remove)
    removing.start()
    began = time.monotonic()
    try:
        done = stage.runtime.run_once(("sleep", "60"), gpus=False, timeout_s=50)
    finally:
        removing.join()
    assert (done.exit_code, done.stdout, done.stderr) == (137, b"", b"")
    assert time.monotonic() - began < 30
    assert Containers(stage.engine).output("gone") == (b"", b"")
