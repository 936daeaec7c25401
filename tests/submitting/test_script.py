"""The batch script, word for word, and what Slurm's reasons for waiting mean."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.model.slurm import Slurm
from orchestrator.submitting import script, waits

SLURM = Slurm(partition="gpu", account="perf", time="04:00:00", nodes=4, extra=("--qos=high day",))
SUBMISSION = script.Submission(
    words=("/venv/bin/python", "-m", "orchestrator", "sweep", "my book"),
    name="dlperf-dgx-0a1b2c3d",
    folder="/shared/w/.dlperf/slurm",
    cwd="/shared/w",
    nodes=4,
    requeue=False,
)
HEAD = """\
#!/bin/sh
#SBATCH --job-name=dlperf-dgx-0a1b2c3d
#SBATCH --comment=dlperf:7a37c1a9ae3c2f35
#SBATCH --partition=gpu
#SBATCH --account=perf
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --no-kill
#SBATCH --no-requeue
#SBATCH --dependency=singleton
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --chdir=/shared/w
#SBATCH --output=/shared/w/.dlperf/slurm/%j.out
#SBATCH --error=/shared/w/.dlperf/slurm/%j.log
#SBATCH '--qos=high day'
"""


def test_the_script_is_this_one() -> None:
    """Every option of sbatch, and the command with its words quoted."""
    head, _, body = script.batch(SLURM, SUBMISSION).partition("\nrm -f ")
    assert f"{head}" == HEAD.replace("7a37c1a9ae3c2f35", SUBMISSION.comment[7:])
    assert "/venv/bin/python -m orchestrator sweep 'my book' &\n" in body
    assert "scontrol" not in body


@pytest.mark.parametrize("code", [0, 3, 143])
def test_the_script_keeps_the_exit_code(code: int, tmp_path: Path) -> None:
    """In a file, whatever Slurm remembers of the job."""
    submission = script.Submission(
        ("sh", "-c", f"exit {code}"), "name", str(tmp_path), "/", 1, requeue=False
    )
    done = subprocess.run(
        ["sh", "-c", script.batch(SLURM, submission)],
        env={"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "7"},
        check=False,
    )
    assert done.returncode == code
    assert (tmp_path / "7.code").read_text() == f"{code}\n"


def test_one_command_has_one_comment() -> None:
    """By which it finds its job; another command, folder or width has another."""
    other = replace(SUBMISSION, words=("sweep", "other"))
    assert SUBMISSION.comment.startswith("dlperf:")
    assert SUBMISSION.comment != other.comment


@pytest.mark.parametrize(
    ("reason", "fix"), [("Resources", ""), ("PartitionTimeLimit", "slurm.time"), ("(Priority)", "")]
)
def test_reasons_that_never_pass_say_what_to_do(reason: str, fix: str) -> None:
    """Only those; a maintenance window passes."""
    assert (fix in waits.never(reason)) if fix else waits.never(reason) == ""
    assert waits.words(reason)


@pytest.mark.parametrize(("code", "state"), [(143, "RUNNING"), (6, "RUNNING"), (143, "COMPLETING")])
def test_a_job_is_queued_again_whose_time_does_not_suffice(
    code: int, state: str, tmp_path: Path
) -> None:
    """Where the command says so by its exit code, and the job was not cancelled meanwhile."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in (("squeue", f"echo {state}"), ("scontrol", 'echo "$@" >>asked')):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    submission = script.Submission(
        ("sh", "-c", f"exit {code}"), "name", str(tmp_path), "/", 1, requeue=True
    )
    done = subprocess.run(
        ["sh", "-c", script.batch(SLURM, submission)],
        cwd=tmp_path,
        env={"PATH": f"{tools}:/usr/bin:/bin", "SLURM_JOB_ID": "7"},
        check=False,
    )
    again = (code, state) == (143, "RUNNING")
    assert done.returncode == code
    assert (tmp_path / "asked").exists() == again
    assert (tmp_path / "7.code").exists() != again
