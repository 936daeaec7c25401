"""The batch script, word for word, and how a job is shown."""

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator.model.slurm import OF_GPUS, Slurm
from orchestrator.schedulers import slurm_queue
from orchestrator.submitting.submit import Submission
from tests import commands

SLURM = Slurm(partition="gpu", account="perf", time="04:00:00", nodes=4, extra=("--qos=high day",))
SUBMISSION = Submission(
    SLURM,
    words=("/venv/bin/python", "-m", "orchestrator", "sweep", "my book"),
    name="dlperf-dgx-0a1b2c3d",
    folder="/shared/w/.dlperf/slurm",
    cwd="/shared/w",
    requeue=False,
)


def run(
    folder: Path, script: str, env: Mapping[str, str] | None = None, *, requeue: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run the script of a job whose program is a line of sh."""
    job = Submission(SLURM, ("sh", "-c", script), "name", str(folder), "/", requeue=requeue)
    more = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "7", **(env or {})}
    return commands.run(["sh", "-c", job.script], cwd=folder, env=more)


def test_the_script_is_this_one(snapshot: SnapshotAssertion) -> None:
    """Every option of sbatch, and the command with its words quoted."""
    assert SUBMISSION.script == snapshot


def test_the_script_asks_for_gpus_where_slurm_gives_them() -> None:
    """Beside whole nodes, and before what the user adds."""
    text = replace(SUBMISSION, gpus=8).script
    assert "#SBATCH --mem=0\n#SBATCH --gres=gpu:8\n#SBATCH --time" in text
    assert not SLURM.asks(OF_GPUS)
    for option in ("--gres=gpu:h100:8", "--gpus-per-node=8", "-G=8"):
        assert SLURM.model_copy(update={"extra": ("--qos=high", option)}).asks(OF_GPUS)


@pytest.mark.parametrize("option", ["--mem=400G", "--mem-per-cpu=2G", "--mem-per-gpu=100G"])
def test_a_job_has_all_memory_of_its_nodes_unless_its_user_asks_for_less(option: str) -> None:
    """A site's DefMemPerCPU would give it a part, and end what needs more."""
    own = SLURM.model_copy(update={"extra": (option,)})
    text = replace(SUBMISSION, slurm=own).script
    assert ("--mem=0" in text, f"#SBATCH {option}\n" in text) == (False, True)


def test_one_command_has_one_comment() -> None:
    """By which it finds its job; another command, folder or width has another."""
    others = (
        replace(SUBMISSION, words=("sweep", "other")),
        replace(SUBMISSION, cwd="/other"),
        replace(SUBMISSION, slurm=SLURM.model_copy(update={"nodes": 5})),
    )
    assert SUBMISSION.comment.startswith("dlperf:")
    assert len({SUBMISSION.comment, *(other.comment for other in others)}) == 4


@pytest.mark.parametrize("code", [0, 3, 143])
def test_the_script_keeps_the_exit_code(code: int, tmp_path: Path) -> None:
    """In a file, whatever Slurm remembers of the job."""
    assert run(tmp_path, f"exit {code}").returncode == code
    assert (tmp_path / "7.code").read_text() == f"{code}\n"


@pytest.mark.parametrize(
    ("code", "state", "taken"),
    [
        *((143, "RUNNING", True), (143, "RUNNING", False)),
        *((6, "RUNNING", True), (143, "COMPLETING", True)),
    ],
)
def test_a_job_whose_time_does_not_suffice_is_queued_again(
    code: int, state: str, taken: bool, tmp_path: Path
) -> None:
    """Where the exit code says so, the job was not cancelled, and Slurm takes it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    requeue = f'echo "$@" >>asked; exit {0 if taken else 1}'
    for name, body in (("squeue", f"echo {state}"), ("scontrol", requeue)):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    done = run(tmp_path, f"exit {code}", {"PATH": f"{tools}:/usr/bin:/bin"}, requeue=True)
    asked = (code, state) == (143, "RUNNING")
    assert done.returncode == code
    assert (tmp_path / "asked").exists() == asked
    assert (tmp_path / "7.code").exists() != (asked and taken)
    assert ("queued again" in done.stderr) == (asked and taken)


@pytest.mark.parametrize(("restarts", "begins"), [(None, False), ("0", False), ("1", True)])
def test_a_job_that_begins_again_says_so(
    tmp_path: Path, restarts: str | None, begins: bool
) -> None:
    """In its own messages, however short its wait was."""
    done = run(tmp_path, "true", {"SLURM_RESTART_COUNT": restarts} if restarts else None)
    assert ("job 7 begins again" in done.stderr) == begins


@pytest.mark.parametrize(
    ("state", "reason", "nodes", "words"),
    [
        ("PENDING", "None", "", "job 7 waits"),
        ("PENDING", "ReqNodeNotAvail, May be", "", "job 7 waits: ReqNodeNotAvail, May be"),
        ("RUNNING", "None", "n[1-2]", "job 7 is running on n[1-2]"),
        ("RUNNING", "None", "n[2,4]", "job 7 is running on n[2,4], without n1, which ran its"),
        ("COMPLETING", "None", "n2", "job 7 is completing on n2"),
        ("CONFIGURING", "None", "", "job 7 is configuring"),
    ],
)
def test_a_job_is_shown_in_a_line(state: str, reason: str, nodes: str, words: str) -> None:
    """Its state, or why it waits, in the words of Slurm's own manual."""
    job = slurm_queue.Job("7", state, reason, nodes, "n1", "name", "comment")
    assert job.summary.startswith(words)
    assert bool(job.lost_host) == ("without" in words)
