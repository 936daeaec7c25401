"""Command lines of pyxis and apptainer, word for word, and the proof that a program is inside."""

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Mount, Task
from orchestrator.runtimes import image_files, step
from orchestrator.runtimes.image_files import WAYS, Contained
from orchestrator.runtimes.supervisor import SUPERVISE, program
from orchestrator.schedulers import choice
from orchestrator.schedulers.slurm_tasks import SlurmTasks
from orchestrator.transports.local import LocalTransport
from tests.waiting import wait_for

DATA = Mount("/data/image", "/data", read_only=True)
WANTED = Contained("/state/images/base.sqsh", "/state/a1", (DATA,), gpus=True)
MOUNTS = (
    "/state/images:/state/images:ro,/state/images:/dlperf:ro,/state/a1:/state/a1,"
    "/data/image:/data:ro"
)
PYXIS = (
    "--container-image=/state/images/base.sqsh",
    f"--container-mounts={MOUNTS}",
    "--container-workdir=/state/a1",
    "--container-readonly",
    "--no-container-mount-home",
    "--no-container-entrypoint",
    "--export=HOME,LANG,LC_ALL,LOGNAME,PATH,USER",
)
APPTAINER = (
    *("sh", "-c", 'exec env -i "HOME=$HOME" "PATH=$PATH" "$@"', "sh"),
    *("apptainer", "--quiet", "--nocolor", "exec", "--no-home", "--nv"),
    *("--bind", "/state/images:/state/images:ro", "--bind", "/state/images:/dlperf:ro"),
    *("--bind", "/state/a1:/state/a1:rw", "--bind", "/data/image:/data:ro"),
    *("--pwd", "/state/a1", "/state/images/base.sqsh", "setsid"),
)


def attempt(image: str = "/state/images/base.sqsh") -> Attempt:
    """One of a task on each of two nodes."""
    tasks = tuple(
        Task(node, rank, ("python3", "train.py"), {"A": "1 2"}, (DATA,), (0,))
        for rank, node in enumerate(("n1", "n2"))
    )
    folders = {"n1": "/state/a1", "n2": "/state/a1"}
    return Attempt("s", "t", 1, folders, 29500, tasks, handle="7", image=image)


def queue(runtime: str) -> Cluster:
    """A cluster of Slurm's with that runtime."""
    document = {"name": "queue", "scheduler": "slurm", "slurm": {"time": "01:00:00", "nodes": 2}}
    cluster = Cluster.model_validate({**document, "defaults": {"runtime": runtime}}, strict=False)
    return cluster.with_nodes({"n1": "n1", "n2": "n2"})


def test_pyxis_is_told_by_options_of_srun() -> None:
    """A path that begins with a slash is a file; the user's environment stays outside."""
    assert WAYS["pyxis"].options(WANTED) == PYXIS
    assert WAYS["pyxis"].words(WANTED) == ()


def test_apptainer_stands_before_the_program() -> None:
    """srun is told nothing; GPUs are there where the task has some."""
    assert WAYS["apptainer"].words(WANTED) == APPTAINER
    assert WAYS["apptainer"].options(WANTED) == ()
    assert "--nv" not in WAYS["apptainer"].words(Contained("/i/b.sif", "/w"))


def test_images_are_imported_from_their_registry() -> None:
    """Enroot sets a registry apart by #, and knows Docker Hub by no name."""
    name = "nvidia/pytorch:25.01-py3"
    assert WAYS["pyxis"].importing("nvcr.io", name, "/i/b.sqsh") == (
        *("enroot", "import", "--output", "/i/b.sqsh"),
        "docker://nvcr.io#nvidia/pytorch:25.01-py3",
    )
    hub = WAYS["pyxis"].importing("docker.io", "library/debian:12", "/i/b.sqsh")
    assert hub[-1] == "docker://library/debian:12"
    assert WAYS["apptainer"].importing("nvcr.io", name, "/i/b.sif") == (
        *("apptainer", "pull", "/i/b.sif", "docker://nvcr.io/nvidia/pytorch:25.01-py3"),
    )


def test_a_dry_run_shows_lines_to_paste(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step for each task, in the job that this is, or as the inventory asks for nodes."""
    before = (
        "mkdir -p /state/a1 && srun --overlap --quiet --ntasks-per-node=1 --mem=0 --cpu-bind=none"
    )
    more = "--input=all --kill-on-bad-exit=1 --wait=0 --no-kill --chdir=/state/a1"
    more += " --job-name=dlp-s-t-a1"
    program = "env 'A=1 2' python3 train.py"
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    lines = pasted("pyxis", attempt())
    asked = f"{before} -N 1 -n 1 {more} --partition=p {shlex.join(PYXIS)} {program}"
    assert lines == {"n1": asked, "n2": asked}
    assert "--container-image=/toy.sqsh " in pasted("pyxis", attempt("toy"))["n1"]
    assert pasted("apptainer", attempt())["n1"].endswith(f"{shlex.join(APPTAINER)} {program}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "8(x2)")
    assert pasted("process", attempt(""))["n2"] == (
        f"{before} --jobid=7 --distribution=arbitrary -n 1 -w n2 {more} --cpus-per-task=8 {program}"
    )


def pasted(runtime: str, made: Attempt) -> dict[str, str]:
    """Return by node the line that runs a task on a cluster of Slurm's."""
    lines = choice.quote_lines(queue(runtime), made, {}, ("--partition=p",))
    return {node: " ".join(words) for node, words in lines.items()}


def test_a_gang_waits_while_an_image_is_unpacked() -> None:
    """By enroot for every start, by apptainer where nodes lack what mounts the file."""
    given = Limits(60, 60, 5, 30, 100)
    for runtime, seconds in (("pyxis", 900), ("apptainer", 900), ("process", 30)):
        cluster = queue(runtime)
        with Fleet(cluster, {name: LocalTransport(name) for name in ("n1", "n2")}) as fleet:
            assert SlurmTasks(fleet, "7", "").extend_limits(given) == replace(
                given, create_s=seconds
            )


def test_a_task_is_its_supervisor_inside() -> None:
    """Behind the proof; with the task's variables, and those by which leftovers are found."""
    alone = f"exec {shlex.join(APPTAINER[:6])} "
    for runtime, first in (("pyxis", "exec sh -c "), ("apptainer", alone)):
        made = attempt()
        text = step.image_script(WAYS[runtime], made, made.tasks[1], Limits(60, 60, 5, 30, 100))
        assert f"\n{first}" in text
        assert text.endswith(
            " sh /dlperf/base.sqsh env HOME=/state/a1 'A=1 2' DLPERF_SUPERVISOR=dlp-s-t-a1-r1"
            " DLPERF_JOB=7 sh /state/a1/supervise.sh /state/a1 1 dlp-s-t-a1-r1 90 5 100 ''"
            " python3 train.py\n"
        )


def test_who_is_not_inside_runs_nothing(tmp_path: Path) -> None:
    """srun that does not heed its options would run the program on the node, with exit code 0."""
    ran = tmp_path / "ran"
    words = image_files.proved("/state/images/base.sqsh")
    done = subprocess.run([*words, "touch", str(ran)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "there is no /dlperf/base.sqsh: this is not the container\n"
    assert not ran.exists()
    inside = [*words[:-1], str(tmp_path), "touch", str(ran)]
    subprocess.run(inside, check=True)
    assert ran.exists()


# A stand-in for apptainer before 1.4.5: what serves the image, and what is in the container, are
# of its own process group; its words end with the image. At $HOME is the pid of the server.
BEFORE = """#!/bin/sh
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
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPTAINER_BIND", "/nope")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "apptainer").write_text(BEFORE)
    (tmp_path / "apptainer").chmod(0o755)
    folder = tmp_path / "a1"
    folder.mkdir()
    (folder / "supervise.sh").write_bytes(program(SUPERVISE))
    words = WAYS["apptainer"].words(Contained("/i/base.sif", str(folder)))
    supervised = ("sh", f"{folder}/supervise.sh", str(folder), "0", "dlp-r0", "60", "1", "100", "")
    trains = ("sh", "-c", "exit 3")
    with subprocess.Popen([*words, *supervised, *trains], start_new_session=True) as made:
        wait_for((folder / "r0.pid").exists, "the supervisor at its gate", 20)
        (folder / "r0.gate").write_text("go\n")
        assert made.wait(20) == 0
    assert (tmp_path / "server").read_text() == "served\n"
    assert (folder / "r0.exit").read_text() == "3 exited\n"
    assert "APPTAINER_BIND" not in (tmp_path / "env").read_text()


# A stand-in for enroot, whose containers are folders of one folder; `stays` cannot be removed.
ENROOT = """#!/bin/sh
case $1 in
list) ls "$HOME/containers" ;;
remove) [ "$2" = --force ] && [ ! -e "$HOME/containers/$3/stays" ] && rmdir "$HOME/containers/$3" ;;
esac
"""


def test_files_of_containers_of_this_jobs_ended_steps_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of a step that runs, of other jobs, or with a name of the user's."""
    program, containers = tmp_path / "bin" / "enroot", tmp_path / "containers"
    program.parent.mkdir()
    program.write_text(ENROOT)
    program.chmod(0o755)
    kept = {"pyxis_7.3", "pyxis_70.1", "pyxis_17.1", "pyxis_base", "pyxis_8_8.1", "7.1"}
    for name in (*kept, "pyxis_7.1", "pyxis_7_7.2"):
        (containers / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    node = LocalTransport("n1")
    image_files.remove_left(WAYS["pyxis"], node, "7", ["7.0", "7.3"], node="n1", trial="t")
    assert {path.name for path in containers.iterdir()} == kept
    (containers / "pyxis_7.5" / "stays").mkdir(parents=True)
    with pytest.raises(errors.LeftoverError, match=r"pyxis_7\.5 cannot be removed") as refused:
        image_files.remove_left(WAYS["pyxis"], node, "7", [], node="n1", trial="t")
    assert refused.value.fix == "enroot remove --force pyxis_7.5"
    (containers / "pyxis_7.5" / "stays").rmdir()
    image_files.remove_left(WAYS["apptainer"], node, "7", [], node="n1", trial="t")
    assert (containers / "pyxis_7.5").exists()
