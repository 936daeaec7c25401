"""Command lines of docker run, pyxis and apptainer, word for word, and what they run."""

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Mount, Task
from orchestrator.runtimes import image_files, step
from orchestrator.runtimes.grants import run_words
from orchestrator.runtimes.image_files import WAYS, Contained
from orchestrator.runtimes.supervisor import SUPERVISE, program
from orchestrator.schedulers import choice
from orchestrator.schedulers.slurm_tasks import SlurmTasks
from orchestrator.transports.local import LocalTransport
from tests.processes import wait_for

DATA = Mount("/data/image", "/data", read_only=True)
IMAGE = "/state/images/base.sqsh"
LIMITS = Limits(time_s=60, stall_s=60, grace_s=5, create_s=30, log_bytes=100)
HOST = {
    "NetworkMode": "host",
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m"}},
    "Mounts": [
        {"Type": "bind", "Source": "/w/a1", "Target": "/w/a1", "ReadOnly": False},
        {"Type": "bind", "Source": "/data/a b", "Target": "/data", "ReadOnly": True},
    ],
    "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}],
}
REQUEST = {
    "Image": "sha256:1bbe",
    "User": "1000:1000",
    "WorkingDir": "/w/a1",
    "Env": ["HOME=/w/a1", "A=1 2"],
    "Entrypoint": ["sh", "-c", "exit 3", "sh"],
    "Labels": {"dlperf.sweep": "s", "dlperf.job": "7"},
    "HostConfig": HOST,
}
HCA = {"PathOnHost": "/dev/i/u0", "PathInContainer": "/dev/i/u0", "CgroupPermissions": "rw"}
NVIDIA = {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu", "compute", "utility"]]}
GRANTS: dict[str, dict[str, object]] = {
    "privileged": {"Privileged": True},
    "least": {"CapDrop": ["ALL"], "CapAdd": ["IPC_LOCK"], "SecurityOpt": ["no-new-privileges"]},
    "memory": {"ShmSize": 1 << 30},
    "hca": {"Devices": [HCA]},
    "runtime": {"Runtime": "nvidia"},
    "gpus": {"DeviceRequests": [NVIDIA]},
    "cdi": {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]},
}


def test_a_request_of_the_api_becomes_words_of_docker_run(snapshot: SnapshotAssertion) -> None:
    """A comma in a path is quoted as in a line of CSV; without an entrypoint the image's counts."""
    plain = run_words(REQUEST, "--name=dlp-r0")
    own = run_words({**REQUEST, "Entrypoint": (), "Cmd": ("python3", "train.py")})
    added = {
        name: [it for it in run_words({**REQUEST, "HostConfig": HOST | more}) if it not in plain]
        for name, more in GRANTS.items()
    }
    assert (plain, added, own[own.index("sha256:1bbe") :]) == snapshot


def test_a_container_from_an_image_file_is_started_and_its_image_imported(
    snapshot: SnapshotAssertion,
) -> None:
    """pyxis takes options of srun, apptainer stands before the program."""
    wanted, name = Contained(IMAGE, "/state/a1", (DATA,), gpus=True), "nvidia/pytorch:25.01-py3"
    assert {
        way: {
            "options": made.options(wanted),
            "words": made.words(wanted),
            "words without GPUs": made.words(Contained(IMAGE, "/state/a1")),
            "import": made.importing("nvcr.io", name, "/i/b"),
            "import from Docker Hub": made.importing("docker.io", "library/debian:12", "/i/b"),
        }
        for way, made in WAYS.items()
    } == snapshot


def attempt(image: str = IMAGE) -> Attempt:
    """Return an attempt with a task on each of two nodes."""
    tasks = tuple(
        Task(node, rank, ("python3", "train.py"), {"A": "1 2"}, (DATA,), (0,))
        for rank, node in enumerate(("n1", "n2"))
    )
    folders = {"n1": "/state/a1", "n2": "/state/a1"}
    return Attempt("s", "t", 1, folders, 29500, tasks, handle="7", image=image)


def queue(runtime: str) -> Cluster:
    """Return a cluster of Slurm's with that runtime."""
    document = {"name": "queue", "scheduler": "slurm", "slurm": {"time": "01:00:00", "nodes": 2}}
    cluster = Cluster.model_validate({**document, "defaults": {"runtime": runtime}}, strict=False)
    return cluster.with_nodes({"n1": "n1", "n2": "n2"})


def test_a_dry_run_shows_lines_to_paste(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """A step for each task, in the job that this is, or as the inventory asks for nodes."""

    def quote(runtime: str, image: str) -> dict[str, str]:
        lines = choice.quote_lines(queue(runtime), attempt(image), {}, ("--partition=p",))
        return {node: " ".join(words) for node, words in lines.items()}

    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    asked = [quote("pyxis", IMAGE), quote("pyxis", "toy"), quote("apptainer", IMAGE)]
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "8(x2)")
    assert {"asking": asked, "in a job": quote("process", "")} == snapshot


def test_scripts_of_a_step_become_supervisors_in_containers(snapshot: SnapshotAssertion) -> None:
    """Behind the proof that it is inside; with the marks by which leftovers are found."""
    made = attempt()
    texts = {way: step.image_script(WAYS[way], made, made.tasks[1], LIMITS) for way in sorted(WAYS)}
    docker = ("sudo", "-n", "docker")
    spaced = replace(made, folders={"n1": "/w/a 1", "n2": "/w/a 1"})
    texts["docker"] = step.docker_script(spaced, made.tasks[0], LIMITS, docker, REQUEST)
    observe = shlex.quote(f"{{\nexec </dev/null\n{program('observe.sh').decode()}\n}}\n")
    assert {way: text.replace(observe, "OBSERVE") for way, text in texts.items()} == snapshot


def test_a_gang_waits_while_an_image_is_unpacked() -> None:
    """By enroot for every start, by apptainer where nodes lack what mounts the file."""
    for runtime, seconds in (("pyxis", 900), ("apptainer", 900), ("process", 30)):
        nodes = {name: LocalTransport(name) for name in ("n1", "n2")}
        with Fleet(queue(runtime), nodes) as fleet:
            extended = SlurmTasks(fleet, "7", "").extend_limits(LIMITS)
        assert extended == replace(LIMITS, create_s=seconds)


def test_a_program_that_is_not_inside_does_not_run(tmp_path: Path) -> None:
    """srun that ignores its options would run the program on the node, with exit code 0."""
    ran = tmp_path / "ran"
    words = image_files.proved(IMAGE)
    done = subprocess.run([*words, "touch", str(ran)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "there is no /dlperf/base.sqsh: this is not the container\n"
    assert not ran.exists()
    subprocess.run([*words[:-1], str(tmp_path), "touch", str(ran)], check=True)
    assert ran.exists()


def stand_in(name: str, script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program of this name before others, with the folder as HOME."""
    path = folder / "bin" / name
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")


# Apptainer before 1.4.5: what serves the image, and what is in the container, are of its own
# process group; its words end with the image. At $HOME is the pid of the server.
BEFORE = """
sleep 600 &
server=$!
echo $server >"$HOME/server"
until case $1 in *.sif) true ;; *) false ;; esac; do shift; done
shift
env >"$HOME/env"
"$@" &
wait $!
status=$?
kill "$server" && echo served >"$HOME/server"
exit $status
"""


def test_a_task_ends_while_its_image_is_still_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor runs its last programs from the image after it has ended its watches."""
    stand_in("apptainer", BEFORE, tmp_path, monkeypatch)
    monkeypatch.setenv("APPTAINER_BIND", "/nope")
    folder = tmp_path / "a1"
    folder.mkdir()
    (folder / "supervise.sh").write_bytes(program(SUPERVISE))
    words = WAYS["apptainer"].words(Contained("/i/base.sif", str(folder)))
    supervised = ("sh", f"{folder}/supervise.sh", str(folder), "0", "dlp-r0", "60", "1", "100", "")
    trains = ("sh", "-c", "exit 3")
    with subprocess.Popen([*words, *supervised, *trains], start_new_session=True) as made:
        wait_for((folder / "r0.pid").exists, "the supervisor at its gate")
        (folder / "r0.gate").write_text("go\n")
        assert made.wait(20) == 0
    assert (tmp_path / "server").read_text() == "served\n"
    assert (folder / "r0.exit").read_text() == "3 exited\n"
    assert "APPTAINER_BIND" not in (tmp_path / "env").read_text()


# Enroot, with folders as containers; a container with a file `stays` cannot be removed.
ENROOT = """
case $1 in
list) ls "$HOME/containers" ;;
remove) [ "$2" = --force ] && [ ! -e "$HOME/containers/$3/stays" ] && rmdir "$HOME/containers/$3" ;;
esac
"""


def test_files_of_containers_of_this_jobs_ended_steps_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of a step that runs, of other jobs, or with a name of the user's."""
    stand_in("enroot", ENROOT, tmp_path, monkeypatch)
    containers, node = tmp_path / "containers", LocalTransport("n1")
    kept = {"pyxis_7.3", "pyxis_70.1", "pyxis_17.1", "pyxis_base", "pyxis_8_8.1", "7.1"}
    for name in (*kept, "pyxis_7.1", "pyxis_7_7.2"):
        (containers / name).mkdir(parents=True)
    image_files.remove_left(WAYS["pyxis"], node, "7", ["7.0", "7.3"], node="n1", trial="t")
    assert {path.name for path in containers.iterdir()} == kept
    (containers / "pyxis_7.5" / "stays").mkdir(parents=True)
    with pytest.raises(errors.LeftoverError, match=r"pyxis_7\.5 cannot be removed") as refused:
        image_files.remove_left(WAYS["pyxis"], node, "7", [], node="n1", trial="t")
    assert refused.value.fix == "enroot remove --force pyxis_7.5"
    (containers / "pyxis_7.5" / "stays").rmdir()
    image_files.remove_left(WAYS["apptainer"], node, "7", [], node="n1", trial="t")
    assert (containers / "pyxis_7.5").exists()
