"""What is said of a job until it is over, from what Slurm's queue and its files have of it."""

import sys
from pathlib import Path

import pytest

from tests import commands

FOLLOW = """\
import sys
from dataclasses import replace
from pathlib import Path
from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.schedulers import slurm_queue
from orchestrator.submitting import follow

voice = Voice(as_json=False)
follow.ANEW_S = float(sys.argv[2])
try:
    job = slurm_queue.Job("7", "PENDING", "None", "dlperf-queue-1", "dlperf:2", "")
    jobs = [replace(job, id=number) for number in sys.argv[3:]]
    sys.exit(follow.follow_all(jobs, Path(sys.argv[1]), voice))
except errors.DlperfError as error:
    voice.error(error)
    sys.exit(error.exit_code)
"""


def followed(
    folder: Path, *states: str, anew_s: float = 150.0, jobs: tuple[str, ...] = ("7",)
) -> tuple[int, str]:
    """Exit code and messages for jobs of which squeue says this, time after time."""
    listed = [state if state.count("|") > 1 else f"7|{state}" for state in states]
    lines = [f"{line}|n1|dlperf-queue-1|dlperf:2\n" for line in listed]
    (folder / "queue").write_text("".join(lines))
    squeue = folder / "squeue"
    squeue.write_text(f"#!/bin/sh\nhead -n 1 {folder}/queue\nsed -i '1{{$!d}}' {folder}/queue\n")
    squeue.chmod(0o755)
    scancel = folder / "scancel"
    scancel.write_text(f'#!/bin/sh\necho "$@" >>{folder}/cancelled\n')
    scancel.chmod(0o755)
    done = commands.run(
        [sys.executable, "-c", FOLLOW, folder, str(anew_s), *jobs],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
    )
    return done.returncode, done.stderr


def test_an_end_is_said_after_the_last_line(tmp_path: Path) -> None:
    """With the exit code; a state in between is not news."""
    (tmp_path / "7.log").write_text("[1/1] valid\n")
    (tmp_path / "7.code").write_text("0\n")
    said = followed(tmp_path, "COMPLETING|None", "COMPLETED|None")
    assert said == (0, "[1/1] valid\njob 7 has ended, exit 0\n")


@pytest.mark.parametrize("reason", ["InvalidAccount", "(InvalidQOS)"])
def test_a_reason_that_the_next_pass_may_not_find_cancels_nothing(
    reason: str, tmp_path: Path
) -> None:
    """As 23.11 without accounting says it of jobs that it starts a moment later."""
    (tmp_path / "7.code").write_text("0\n")
    code, said = followed(tmp_path, f"PENDING|{reason}", "RUNNING|None", "COMPLETED|None")
    assert code == 0, said
    assert f"job 7 waits: {reason.strip('()')}: Slurm finds no such" in said
    assert not (tmp_path / "cancelled").exists()


@pytest.mark.parametrize(
    ("reason", "anew_s"), [("InvalidAccount", 0.6), ("PartitionNodeLimit", 150.0)]
)
def test_a_reason_that_lasts_cancels_the_job(reason: str, anew_s: float, tmp_path: Path) -> None:
    """At once, or where Slurm still says so after some passes of its scheduler."""
    (tmp_path / "7.code").write_text("0\n")
    code, said = followed(tmp_path, *[f"PENDING|{reason}"] * 9, anew_s=anew_s)
    assert (code, f"QUEUE-NEVER: job 7 can never start: {reason}" in said) == (5, True), said
    assert "7" in (tmp_path / "cancelled").read_text()


@pytest.mark.parametrize(
    ("reason", "code", "path"),
    [("NonZeroExitCode", "127\n", sys.executable), ("JobLaunchFailure", "", "{folder}")],
)
def test_what_its_node_does_not_have_is_named(
    reason: str, code: str, path: str, tmp_path: Path
) -> None:
    """The program, by the shell's 127, or the folder, where 22.05 cannot open the job's messages.

    Neither is a bug of ours or an end that the same command could mend.
    """
    if code:
        (tmp_path / "7.code").write_text(code)
    exit_code, said = followed(tmp_path, f"FAILED|{reason}")
    assert exit_code == 5
    assert "ERROR NOT-SHARED: job 7 could not begin; needed " in said
    assert f"needed {path.format(folder=tmp_path)} on its nodes" in said


def test_an_error_of_one_job_leaves_no_other_unmentioned(tmp_path: Path) -> None:
    """All are followed to their ends; the gravest error counts, and the others are said too."""
    for job, ended in (("8", "0"), ("9", "3")):
        (tmp_path / f"{job}.code").write_text(f"{ended}\n")
    ends = ("7|NODE_FAIL|None", "8|COMPLETED|None", "9|FAILED|None", "10|OUT_OF_MEMORY|None")
    code, said = followed(tmp_path, *ends, jobs=("7", "8", "9", "10"))
    assert "NODE-FAIL" in said
    assert "job 8 has ended, exit 0" in said
    assert "job 9 has ended, exit 3" in said
    assert "OOM" in said
    assert code == 6
