"""What is said of a job until it is over, from what Slurm's queue and its files have of it."""

import sys
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path

import pytest

from tests import commands

FOLLOW = """\
import sys
from pathlib import Path
from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.schedulers import slurm_queue
from orchestrator.submitting import follow

voice = Voice(as_json=False)
follow.QUEUE_EVERY_S = 0.1
try:
    job = slurm_queue.Job("7", "PENDING", "None", "", "", "dlperf-queue-1", "dlperf:2")
    sys.exit(follow.follow(job, Path(sys.argv[1]), voice))
except errors.DlperfError as error:
    voice.error(error)
    sys.exit(error.exit_code)
"""


def followed(
    folder: Path,
    *states: str,
    nodes: Sequence[str] = ("n1",),
    requeue: int = 0,
    before: str = "",
) -> tuple[int, str]:
    """Exit code and messages for a job of which squeue says this, time after time.

    Args:
        nodes: those of the job, time after time; its script runs on n1.
        before: what squeue does first.
    """
    given = chain(nodes, repeat(nodes[-1]))
    shown = zip(states, given, strict=False)
    said = [f"7|{state}|{on}|n1|dlperf-queue-1|dlperf:2\n" for state, on in shown]
    (folder / "queue").write_text("".join(said))
    for name, body in (
        ("squeue", f"{before}\nhead -n 1 {folder}/queue\nsed -i '1{{$!d}}' {folder}/queue"),
        ("scancel", f'echo "$@" >>{folder}/cancelled'),
        ("scontrol", f'echo "$@" >>{folder}/asked\necho "JobId=7 Requeue={requeue}"'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    done = commands.run(
        [sys.executable, "-c", FOLLOW, folder], env={"PATH": f"{folder}:/usr/bin:/bin"}
    )
    return done.returncode, done.stderr


def test_an_end_is_said_after_the_last_line(tmp_path: Path) -> None:
    """With the exit code; a state in between is not news."""
    (tmp_path / "7.log").write_text("[1/1] valid\n")
    (tmp_path / "7.code").write_text("0\n")
    said = followed(tmp_path, "COMPLETING|None", "COMPLETED|None")
    assert said == (0, "[1/1] valid\njob 7 has ended, exit 0\n")


def test_why_a_job_waits_is_shown_in_slurms_words(tmp_path: Path) -> None:
    """Once a reason, and nothing is cancelled for one: Slurm's scheduler may find otherwise."""
    (tmp_path / "7.code").write_text("0\n")
    states = ("PENDING|InvalidAccount", "PENDING|Resources", "RUNNING|None", "COMPLETED|None")
    code, said = followed(tmp_path, *states)
    assert code == 0, said
    assert "job 7 waits: InvalidAccount\njob 7 waits: Resources\njob 7 is running on n1\n" in said
    assert not (tmp_path / "cancelled").exists()


@pytest.mark.parametrize("nodes", ["n2", "n[2-3]"])
def test_a_job_whose_batch_host_died_is_cancelled(nodes: str, tmp_path: Path) -> None:
    """It would stay RUNNING on its other nodes until its time limit."""
    code, said = followed(tmp_path, "RUNNING|None", "RUNNING|None", nodes=("n[1-3]", nodes))
    assert code == 4, said
    assert f"job 7 is running on {nodes}, without n1, which ran its script\n" in said
    assert "ERROR NODE-DOWN node=n1: Slurm gave up the node that ran job 7; the job was" in said
    assert "Fix: run the same command again: it goes on in another job, on other nodes." in said
    assert (tmp_path / "cancelled").read_text() == "7\n"


def test_a_job_whose_batch_host_died_is_queued_again_where_it_may_be(tmp_path: Path) -> None:
    """With ``--requeue``, which Slurm itself ignores for a job with ``--no-kill``."""
    (tmp_path / "7.code").write_text("0\n")
    states = ("RUNNING|None", "PENDING|BeginTime", "RUNNING|None", "COMPLETED|None")
    code, said = followed(tmp_path, *states, nodes=("n2", "", "n1", "n1"), requeue=1)
    assert code == 0, said
    assert "job 7 is queued again, since n1 is down\njob 7 waits: BeginTime\n" in said
    assert (tmp_path / "asked").read_text() == "-o show job 7\nrequeue 7\n"
    assert not (tmp_path / "cancelled").exists()


def test_a_silent_slurmctld_does_not_end_following(tmp_path: Path) -> None:
    """It may be restarted for minutes; the job goes on, and what it prints is still shown."""
    (tmp_path / "7.log").write_text("[1/1] valid\n")
    silent = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    failing = f"if mkdir {tmp_path}/once 2>/dev/null; then echo '{silent}' >&2; exit 1; fi"
    (tmp_path / "7.code").write_text("0\n")
    code, said = followed(tmp_path, "RUNNING|None", "COMPLETED|None", before=failing)
    assert code == 0, said
    assert f"job 7 is followed by its files alone: squeue: {silent}\n" in said
    assert "[1/1] valid\n" in said


@pytest.mark.parametrize(
    ("reason", "code"), [("NonZeroExitCode", "127\n"), ("JobLaunchFailure", "")]
)
def test_what_its_node_does_not_have_is_named(reason: str, code: str, tmp_path: Path) -> None:
    """The program, by the shell's 127, or the folder, where 22.05 cannot open the job's messages.

    Neither is a bug of ours or an end that the same command could mend.
    """
    if code:
        (tmp_path / "7.code").write_text(code)
    exit_code, said = followed(tmp_path, f"FAILED|{reason}")
    assert exit_code == 5
    needed = f"needed {tmp_path} and {sys.executable} on its nodes"
    assert f"ERROR NOT-SHARED: job 7 could not begin; {needed}" in said
