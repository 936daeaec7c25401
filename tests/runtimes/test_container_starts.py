"""Why a container did not start, from what the real pyxis printed; and which task never had one."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.attempt import Attempt
from orchestrator.model.plan import Task
from orchestrator.runtimes import image_files
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.transports.local import LocalTransport
from tests import TESTS

SAMPLES = TESTS / "samples" / "srun-pyxis"
UNWRITABLE = "mkdir: cannot create directory ‘/root/.local/share/enroot’: File exists"  # noqa: RUF001 - as printed
CAUSES = {
    "disk_full_on_one_node": (
        "vs002",
        "Write on output file failed because No space left on device",
    ),
    "unwritable_on_one_node": ("vs002", UNWRITABLE),
    "invalid_image": ("vs001", "Invalid image format: /shared/t/bad.sqsh"),
    "mount_missing": ("vs001", "--container-mounts: source path does not exist: /nope"),
    "mount_fails": (
        "vs001",
        "enroot-mount: failed to mount: /etc/passwd at /root/.local/share/enroot/pyxis_25.0/etc:"
        " Not a directory",
    ),
    "workdir_missing": ("vs001", "couldn't chdir to /nowhere: No such file or directory"),
    "no_plugin": None,
    "stopped": None,
}


def sample(name: str) -> str:
    """What srun printed."""
    return (SAMPLES / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.txt")))
def test_the_node_to_blame_is_named_with_its_cause(name: str) -> None:
    """Not one whose container was given up for another's, wherever its lines stand."""
    said = sample(name)
    assert image_files.find_failed_start(said) == CAUSES[name]
    nodes = [
        "".join(line for line in said.splitlines(True) if name in line)
        for name in ("vs001", "vs002")
    ]
    assert image_files.find_failed_start("".join(nodes)) == CAUSES[name]


def test_a_slurmstepd_that_is_alone_on_its_machine_names_no_node() -> None:
    """The node is then not known; a line without any cause is still one of pyxis'."""
    said = sample("invalid_image").replace("slurmstepd-vs001", "slurmstepd")
    assert image_files.find_failed_start(said) == (
        "",
        "Invalid image format: /shared/t/bad.sqsh",
    )
    first, *_ = said.splitlines()
    assert image_files.find_failed_start(first) == ("", "child 8265 failed with error code: 1")


def test_the_first_error_of_srun_is_no_remark() -> None:
    """Without pyxis there is no line of its; the remark on CPUs comes first on some clusters."""
    assert image_files.first_error(sample("no_plugin")) == (
        "srun: unrecognized option '--container-image=/x.sqsh'"
    )
    assert image_files.first_error(sample("stopped")).startswith("slurmstepd-vs001: error: **")
    assert image_files.first_error("srun: a remark\n") == "srun: a remark"
    assert image_files.first_error("\n") == "no reason given"


# Of apptainer 1.4.5 on two nodes: the second has no /dev/fuse; and where none has the file.
NO_FUSE = """\
FATAL:   container creation failed: image driver mount failure: image driver squashfuse_ll instance\
 exited with error: squashfuse_ll exited: fuse: device not found, try 'modprobe fuse' first
srun: error: vs002: task 1: Exited with exit code 255
"""
NO_FILE = """\
FATAL:   While checking container encryption: could not open image /nope.sif: failed to retrieve\
 path for /nope.sif: lstat /nope.sif: no such file or directory
FATAL:   While checking container encryption: could not open image /nope.sif: failed to retrieve\
 path for /nope.sif: lstat /nope.sif: no such file or directory
srun: error: vs001: task 0: Exited with exit code 255
srun: error: vs002: task 1: Exited with exit code 255
"""


def test_apptainer_says_why_and_srun_where() -> None:
    """Where one node fails, it is named; where pyxis told of one, that counts."""
    node, cause = image_files.blame(NO_FUSE)
    assert node == "vs002"
    assert cause.startswith("container creation failed: image driver mount failure: ")
    node, cause = image_files.blame(NO_FILE)
    assert node == ""
    assert cause.endswith("lstat /nope.sif: no such file or directory")
    assert image_files.blame(sample("mount_missing")) == CAUSES["mount_missing"]


def refused(folder: Path, said: str, **files: str) -> errors.UnfitError | None:
    """What is made of a task's files and of srun's words."""
    task = Task("vs001", 0, ("true",), {}, (), ())
    attempt = Attempt("s", "t", 1, {"vs001": str(folder)}, 1, (task,))
    for name, text in files.items():
        (folder / f"r0.{name}").write_text(text)
    return image_files.refusal(TaskFiles(LocalTransport("shared"), attempt, task), said, task)


def test_a_task_without_a_container_is_told_by_its_node(tmp_path: Path) -> None:
    """That of another node, where its container failed and this one was given up for it."""
    error = refused(tmp_path, sample("unwritable_on_one_node"))
    assert error is not None
    assert (error.code, error.where["node"]) == ("CONTAINER-START", "vs002")
    assert error.cause == f"no container started: {UNWRITABLE}"


def test_what_stood_before_the_supervisor_says_why_in_its_own_words(tmp_path: Path) -> None:
    """As apptainer, or the proof that a task is inside."""
    words = "there is no /dlperf/base.sqsh: this is not the container\n"
    error = refused(tmp_path, "", gone="1\n", err=words)
    assert error is not None
    assert (error.where["node"], error.cause) == (
        "vs001",
        f"no container started: {words.strip()}",
    )
    said = f"WARNING: could not find any nv files\n{NO_FUSE.splitlines()[0]}\n"
    error = refused(tmp_path, "", err=said)
    assert error is not None
    assert error.cause.startswith("no container started: container creation failed: ")


def test_a_task_that_was_inside_is_not_told_as_one_without_a_container(tmp_path: Path) -> None:
    """Its program's exit 1 is its own; and nothing is said of one that just never came."""
    assert refused(tmp_path, sample("stopped")) is None
    assert refused(tmp_path, "", gone="143\n") is None  # killed, since another failed
    said = sample("unwritable_on_one_node")
    assert refused(tmp_path, said, gone="1\n", pid="7 7 boot\n") is None
