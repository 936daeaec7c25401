"""Why a container did not start, from the recorded output of Docker, sudo, pyxis and apptainer."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.model.attempt import Attempt
from orchestrator.model.plan import Task
from orchestrator.runtimes import _causes, image_files, step
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.transports.local import LocalTransport
from tests import SAMPLES

PYXIS = {path.stem: path.read_text() for path in sorted((SAMPLES / "srun-pyxis").glob("*.txt"))}
APPTAINER = {
    path.stem: path.read_text() for path in sorted((SAMPLES / "srun-apptainer").glob("*.txt"))
}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        # docker/cli and moby threads, and what was seen on a node without the toolkit.
        ("client version 1.52 is too new. Maximum supported API version is 1.41", "DOCKER-API"),
        ('could not select device driver "nvidia" with capabilities: [[gpu]]', "GPU-RUNTIME"),
        ("Unknown runtime specified nvidia", "GPU-RUNTIME"),
        (
            "OCI runtime create failed: nvidia-container-cli: initialization error: nvml error:"
            " driver not loaded: unknown",
            "GPU-RUNTIME",
        ),
        (
            "toomanyrequests: You have reached your pull rate limit. You may increase the limit"
            " by authenticating and upgrading",
            "REG-RATELIMIT",
        ),
        ("Get https://nvcr.io/v2/: net/http: TLS handshake timeout", "REG-UNREACHABLE"),
        ("Get https://r/v2/: x509: certificate signed by unknown authority", "REG-TLS"),
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", "DISK-FULL"),
        ("something new", "OTHERWISE"),
    ],
)
def test_a_message_of_docker_has_the_code_of_its_cause(said: str, code: str) -> None:
    error = _causes.refusal(f"{said}\n", "here", "OTHERWISE")
    assert (error.code, error.cause) == (code, said)


@pytest.mark.parametrize(
    ("said", "code", "fix"),
    [
        ("sudo: a password is required\n", "DOCKER-PERM", "sudo -n"),
        ("sudo: docker: command not found\n", "DOCKER-MISSING", "install Docker"),
        ("env: 'docker': No such file or directory\n", "DOCKER-MISSING", "install Docker"),
        (
            "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path"
            " is correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no"
            " such file or directory\n",
            "DOCKER-DOWN",
            "systemctl start docker",
        ),
        # An engine of another machine, or podman: starting Docker would not help.
        (
            (SAMPLES / "docker" / "podman_4.3.1_dial_stdio_err.txt").read_text(),
            "DOCKER-FOREIGN",
            "podman-docker",
        ),
        (
            "Cannot connect to the Docker daemon at tcp://10.0.0.9:2375. Is the docker daemon"
            " running?",
            "DOCKER-FOREIGN",
            "podman-docker",
        ),
        (
            'error during connect: Get "http://docker.example.com/v1.24/info": command [ssh -l root'
            " --h docker system dial-stdio] has exited with exit status 255, please make sure the"
            " URL is valid, and Docker 18.09 or later is installed on the remote host",
            "DOCKER-FOREIGN",
            "podman-docker",
        ),
    ],
)
def test_a_docker_command_that_reaches_no_engine_has_the_remedy(
    said: str, code: str, fix: str
) -> None:
    error = _causes.silence(said, "here", "a", sudo=said.startswith("sudo"))
    assert (error.code, fix in error.fix) == (code, True)


def test_the_node_to_blame_is_named_with_its_cause(snapshot: SnapshotAssertion) -> None:
    """A node whose container was given up for another's is not, in any order of the lines."""
    for said in PYXIS.values():
        nodes = ("vs001", "vs002")
        apart = ["".join(it for it in said.splitlines(True) if node in it) for node in nodes]
        found = image_files.find_failed_start(said)
        assert image_files.find_failed_start("".join(apart)) == found
        assert image_files.find_failed_start("".join(reversed(apart))) == found
    blamed = {name: image_files.blame(said) for name, said in (PYXIS | APPTAINER).items()}
    assert blamed == snapshot


def test_a_slurmstepd_that_is_alone_on_its_machine_names_no_node() -> None:
    said = PYXIS["invalid_image"].replace("slurmstepd-vs001", "slurmstepd")
    assert image_files.blame(said) == ("", "Invalid image format: /shared/t/bad.sqsh")
    first, *_ = said.splitlines()
    assert image_files.blame(first) == ("", "child 8265 failed with error code: 1")


@pytest.mark.parametrize(
    ("said", "error"), [("srun: a remark\n", "srun: a remark"), ("\n", "no reason given")]
)
def test_a_line_that_is_not_marked_as_an_error_is_the_last_resort(said: str, error: str) -> None:
    assert image_files.first_error(said) == error


def task_files(folder: Path, **files: str) -> tuple[TaskFiles, Task]:
    """Write files of a task on vs001."""
    task = Task("vs001", 0, ("true",), {}, (), ())
    attempt = Attempt("s", "t", 1, {"vs001": str(folder)}, 1, (task,))
    for name, text in files.items():
        (folder / f"r0.{name}").write_text(text)
    return TaskFiles(LocalTransport("vs001"), attempt, task), task


SPOILT = PYXIS["unwritable_on_one_node"]
OUTSIDE = "there is no /dlperf/base.sqsh: this is not the container"
FATAL = APPTAINER["no_fuse"].splitlines()[0]


@pytest.mark.parametrize(
    ("said", "files", "node", "cause"),
    [
        (SPOILT, {}, "vs002", image_files.blame(SPOILT)[1]),
        ("", {"gone": "1\n", "err": f"{OUTSIDE}\n"}, "vs001", OUTSIDE),
        (
            "",
            {"gone": "1\n", "err": f"WARNING: could not find any nv files\n{FATAL}\n"},
            "vs001",
            FATAL.removeprefix("FATAL:").strip(),
        ),
    ],
    ids=["another node's container failed", "not inside", "apptainer"],
)
def test_a_task_without_a_container_is_explained(
    tmp_path: Path, said: str, files: dict[str, str], node: str, cause: str
) -> None:
    written, task = task_files(tmp_path, **files)
    error = image_files.refusal(written, said, task)
    assert isinstance(error, errors.UnfitError)
    assert (error.code, error.where["node"]) == ("CONTAINER-START", node)
    assert error.cause == f"no container started: {cause}"


@pytest.mark.parametrize(
    ("said", "files"),
    [
        (PYXIS["stopped"], {}),
        ("", {"gone": "143\n"}),  # killed, since another failed
        (SPOILT, {"gone": "1\n", "pid": "7 7 boot\n"}),  # its program's own exit 1
    ],
)
def test_a_task_that_was_inside_is_not_reported_as_one_without_a_container(
    tmp_path: Path, said: str, files: dict[str, str]
) -> None:
    written, task = task_files(tmp_path, **files)
    assert image_files.refusal(written, said, task) is None


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        # As Docker 20.10 prints them, and the last one Docker 29.
        (
            "125",
            'docker: Error response from daemon: invalid mount config for type "bind": bind source'
            " path does not exist: /nowhere.\nSee 'docker run --help'.",
            "MOUNT-MISSING",
        ),
        ("125", "docker: Error response from daemon: something new.", "DOCKER-REFUSED"),
        (
            "125",
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the"
            " docker daemon running?\nSee 'docker run --help'.\n",
            "DOCKER-DOWN",
        ),
        ("137", "", None),
        (
            "125",
            f"docker: Error response from daemon: No such image: sha256:{'1' * 64}\n",
            "IMAGE-MISSING",
        ),
    ],
)
def test_a_docker_command_that_made_no_container_is_explained(
    tmp_path: Path, status: str, said: str, code: str | None
) -> None:
    files, task = task_files(tmp_path, gone=f"{status}\n", err=said)
    refusal = step.docker_refusal(files, task)
    assert (refusal.code if refusal else None) == code
    if refusal and code == "IMAGE-MISSING":  # its id is no name that the user could correct
        assert refusal.fix == "run `dlperf-orch provision` again"
    task_files(tmp_path, pid="7 100 b00t\n")
    assert step.docker_refusal(files, task) is None
