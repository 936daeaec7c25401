"""What becomes of a job: why it waits, what it prints, how it ends."""

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.schedulers import slurm_ends, slurm_queue
from orchestrator.signals import Stopped
from orchestrator.submitting import waits

LOOK_S, QUEUE_EVERY_S = 0.5, 5.0
# Answers of squeue without the job until it counts as over: one alone means nothing.
ABSENT = 4
# For how long every pass of the scheduler (60 s apart by default) must find the same reason anew.
ANEW_S = 150.0
CODE_S = 10.0  # for the file with its exit code to be seen here, after its end
KILLED = 137  # the controller ended without a word of its own
NOT_RUN = (126, 127)  # of the shell of the job's script: the program is not there
NOT_BEGUN = "JobLaunchFailure"  # also where a file for its messages cannot be opened
# What became of a job that left no exit code: code and words.
OUTCOMES: dict[str, tuple[str, str]] = {
    "CANCELLED": ("SLURM-CANCELLED", "it was cancelled from outside"),
    "TIMEOUT": ("WALLTIME", "its time limit ended it before it had ended in good order"),
    "NODE_FAIL": ("NODE-FAIL", "the node of its controller failed"),
    "PREEMPTED": ("PREEMPTED", "another job took its nodes"),
    "BOOT_FAIL": ("NODE-FAIL", "a node did not boot"),
    "OUT_OF_MEMORY": ("OOM", "it used more memory than Slurm gave it"),
    "DEADLINE": ("WALLTIME", "its deadline passed"),
}


@dataclass(slots=True)
class _Tail:
    """A file that grows, copied as it comes."""

    path: Path
    to: int
    offset: int = 0

    def copy(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(self.offset)
            while piece := file.read(1 << 16):
                self.offset += len(piece)
                os.write(self.to, piece)


@dataclass(slots=True)
class _Seen:
    """What was last heard of the job."""

    job: slurm_queue.Job
    absent: int = 0
    said: str = ""
    at: float = 0.0
    never_since: float = 0.0


def follow(job: slurm_queue.Job, folder: Path, voice: Voice) -> int:
    """Tell what becomes of a job until it is over; the exit code of what it ran.

    Raises:
        UnfitError: QUEUE-NEVER; it was cancelled, since it could never start. NOT-SHARED.
        NodeError, LocalError: it ended without an exit code of ours; says how.
        Interrupted: by the user; the job goes on.
    """
    sys.stdout.flush()
    tails = (_Tail(folder / f"{job.id}.log", 2), _Tail(folder / f"{job.id}.out", 1))
    seen = _Seen(job)
    try:
        while not _over(seen, folder, voice):
            for tail in tails:
                tail.copy()
            time.sleep(LOOK_S)
    except Stopped as stopped:
        raise errors.Interrupted(stopped.number, job.id) from None
    if seen.job.reason == NOT_BEGUN:
        raise _not_shared(
            job, str(folder), "work in a folder that all nodes see, or name one with --state"
        )
    code = _code(folder / f"{job.id}.code")
    for tail in tails:
        tail.copy()
    return _told(seen.job, code, voice)


def _told(job: slurm_queue.Job, code: int | None, voice: Voice) -> int:
    if code in NOT_RUN:
        raise _not_shared(job, sys.executable, "install dlperf-orch where all nodes see it")
    if code is None or code == KILLED:
        raise _outcome(job, _state(job))
    words = f"has ended, exit {code}"
    if code == 143:
        state = _state(job)
        why = f" ({state})" if _name(state) in OUTCOMES else ""
        words = f"ended in good order{why}; the same command goes on in another job"
    voice.line(f"job {job.id} {words}")
    return code


def _over(seen: _Seen, folder: Path, voice: Voice) -> bool:
    has_code = (folder / f"{seen.job.id}.code").exists()
    if not has_code and time.monotonic() - seen.at < QUEUE_EVERY_S and seen.at:
        return False
    seen.at = time.monotonic()
    found = [one for one in slurm_queue.jobs(ids=(seen.job.id,)) if one.name == seen.job.name]
    if not found:
        seen.absent += 1
        return has_code or seen.absent >= ABSENT
    seen.absent, seen.job = 0, found[0]
    _say(seen, voice)
    return seen.job.ended


def _say(seen: _Seen, voice: Voice) -> None:
    """Say every new state until it ends, and why it waits; end what can never start."""
    job = seen.job
    if job.ended or job.state == "COMPLETING":
        return
    fix = waits.never(job.reason) if job.state == "PENDING" else ""
    seen.never_since = (seen.never_since or time.monotonic()) if fix else 0.0
    lasts = not waits.anew(job.reason) or time.monotonic() - seen.never_since >= ANEW_S
    if fix and lasts:
        slurm_queue.cancel(job.id)
        raise errors.UnfitError(
            f"job {job.id} can never start: {job.reason}; it was cancelled",
            code="QUEUE-NEVER",
            fix=fix,
        )
    words = waits.told(job)
    if words != seen.said:
        voice.line(words)
        seen.said = words


def _code(path: Path) -> int | None:
    deadline = time.monotonic() + CODE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(path.read_text())
        time.sleep(LOOK_S)
    return None


def _state(job: slurm_queue.Job) -> str:
    """How it ended: by accounting, which also knows who cancelled it; else as the queue had it."""
    found = slurm_ends.recorded(job).replace(" by ", " by uid ")
    if found:
        return found
    return f"{job.state}, {job.reason}" if job.reason not in ("None", "") else job.state


def _name(state: str) -> str:
    return state.replace(",", " ").partition(" ")[0]


def _not_shared(job: slurm_queue.Job, path: str, fix: str) -> errors.UnfitError:
    seen = f"job {job.id} could not begin; needed {path} on its nodes, at this very path"
    return errors.UnfitError(seen, code="NOT-SHARED", fix=fix)


def _outcome(job: slurm_queue.Job, state: str) -> errors.DlperfError:
    code, words = OUTCOMES.get(_name(state), ("JOB-LOST", "its controller left no exit code"))
    kind = errors.NodeError if code in ("NODE-FAIL", "PREEMPTED", "JOB-LOST") else errors.LocalError
    return kind(
        f"job {job.id} ended ({state}): {words}",
        code=code,
        fix="run the same command again: it goes on in another job",
    )
