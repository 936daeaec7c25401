"""The docker command of a task in a step, word for word; and what it leaves."""

from pathlib import Path

import pytest

from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Task
from orchestrator.runtimes import step
from orchestrator.runtimes.grants import run_words
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.transports.local import LocalTransport

CONFIG = {
    "Image": "sha256:1bbe",
    "User": "1000:1000",
    "WorkingDir": "/w/a1",
    "Env": ["HOME=/w/a1", "A=1 2"],
    "Entrypoint": ["sh", "-c", "exit 3", "sh"],
    "Labels": {"dlperf.sweep": "s", "dlperf.job": "7"},
}
HOST = {
    "NetworkMode": "host",
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m"}},
    "Mounts": [
        {"Type": "bind", "Source": "/w/a1", "Target": "/w/a1", "ReadOnly": False},
        {"Type": "bind", "Source": "/data/a,b", "Target": "/data", "ReadOnly": True},
    ],
    "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}],
}
NVIDIA = {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu", "compute", "utility"]]}
CDI = {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}
REQUEST = {**CONFIG, "HostConfig": HOST}
IB = {"PathOnHost": "/dev/i/u0", "PathInContainer": "/dev/i/u0", "CgroupPermissions": "rw"}


def test_a_request_of_the_api_becomes_words_of_docker_run() -> None:
    """In the foreground, removed at its end; a comma in a path is quoted as in a line of CSV."""
    assert run_words(REQUEST, "--name=dlp-r0") == (
        *("run", "--rm", "--init", "--name=dlp-r0"),
        *("--label=dlperf.sweep=s", "--label=dlperf.job=7"),
        *("--user=1000:1000", "--workdir=/w/a1", "--env=HOME=/w/a1", "--env=A=1 2"),
        *("--network=host", "--log-driver=json-file", "--log-opt=max-size=10m"),
        "--mount=type=bind,source=/w/a1,target=/w/a1",
        '--mount=type=bind,"source=/data/a,b",target=/data,readonly',
        *("--ulimit=memlock=-1:-1", "--entrypoint=sh", "sha256:1bbe", "-c", "exit 3", "sh"),
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"Privileged": True}, ("--privileged",)),
        (
            {"CapDrop": ["ALL"], "CapAdd": ["IPC_LOCK"], "SecurityOpt": ["no-new-privileges"]},
            ("--cap-drop=ALL", "--cap-add=IPC_LOCK", "--security-opt=no-new-privileges"),
        ),
        ({"ShmSize": 1 << 30}, ("--shm-size=1073741824",)),
        ({"Devices": [IB]}, ("--device=/dev/i/u0:/dev/i/u0:rw",)),
        ({"Runtime": "nvidia"}, ("--runtime=nvidia",)),
        (
            {"DeviceRequests": [NVIDIA]},
            ('--gpus=all,driver=nvidia,"capabilities=compute,utility"',),
        ),
        ({"DeviceRequests": [CDI]}, ("--device=nvidia.com/gpu=all",)),
    ],
)
def test_rights_and_hardware_are_options_of_docker_run(
    more: dict[str, object], words: tuple[str, ...]
) -> None:
    """Each as `docker run --help` has it."""
    said = run_words({**CONFIG, "HostConfig": {**HOST, **more}})
    assert [word for word in said if word not in run_words(REQUEST)] == [*words]


def test_the_script_of_a_task_becomes_the_docker_command() -> None:
    """With a standard input that stays open, and tied to it in the container."""
    task = Task("n1", 0, ("true",), {}, (), (0, 1))
    attempt = Attempt("s", "t", 1, {"n1": "/w/a 1"}, 29500, (task,), handle="7")
    text = step.docker_script(
        attempt, task, Limits(60, 60, 5, 30), ("sudo", "-n", "docker"), REQUEST
    )
    *_, fifo, removed, last = text.splitlines()
    assert fifo == "mkfifo '/w/a 1/r0.in' && exec <>'/w/a 1/r0.in'"
    assert removed == "rm -f '/w/a 1/r0.in'"
    assert last.startswith(
        "exec sudo -n docker run --rm --init --interactive --name=dlp-s-t-a1-r0 "
    )
    assert "kill -TERM $$" in last
    assert text.startswith("umask 077\n(\n")
    assert "DLPERF_OBSERVER=dlp-s-t-a1-r0 setsid -f sh -s '/w/a 1' 0 s 95 0,1 >/dev/null" in text


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        (
            "125",
            'docker: Error response from daemon: invalid mount config for type "bind": bind source'
            " path does not exist: /nowhere.\nSee 'docker run --help'.",
            "MOUNT-MISSING",
        ),
        ("125", "docker: Error response from daemon: something new.", "DOCKER-REFUSED"),
        ("137", "", None),
    ],
)
def test_an_engine_that_made_no_container_is_heard(
    tmp_path: Path, status: str, said: str, code: str | None
) -> None:
    """By the docker command's exit status and words, as Docker 20.10 prints them."""
    task = Task("n1", 0, ("true",), {}, (), ())
    attempt = Attempt("s", "t", 1, {"n1": str(tmp_path)}, 29500, (task,))
    (tmp_path / "r0.gone").write_text(f"{status}\n")
    (tmp_path / "r0.err").write_text(said)
    files = TaskFiles(LocalTransport("n1"), attempt, task)
    refusal = step.docker_refusal(files, task)
    assert (refusal.code if refusal else None) == code
    (tmp_path / "r0.pid").write_text("7 100 b00t\n")
    assert step.docker_refusal(files, task) is None


def test_an_image_that_is_gone_since_the_first_trial_is_provisioned_again(tmp_path: Path) -> None:
    """Its id is no name that the user could correct; Docker 29's words."""
    task = Task("n1", 0, ("true",), {}, (), ())
    attempt = Attempt("s", "t", 1, {"n1": str(tmp_path)}, 29500, (task,))
    (tmp_path / "r0.gone").write_text("125\n")
    said = f"docker: Error response from daemon: No such image: sha256:{'1' * 64}\n"
    (tmp_path / "r0.err").write_text(said)
    refusal = step.docker_refusal(TaskFiles(LocalTransport("n1"), attempt, task), task)
    assert refusal is not None
    assert (refusal.code, refusal.fix) == ("IMAGE-MISSING", "run `dlperf-orch provision` again")


def test_without_an_entrypoint_the_image_has_its_own() -> None:
    """As in a line to paste: the program follows the image."""
    plain = {**REQUEST, "Entrypoint": (), "Cmd": ("python3", "train.py")}
    assert run_words(plain)[-3:] == ("sha256:1bbe", "python3", "train.py")
