"""What becomes of a job: why it waits, what it prints, how it ends."""

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.schedulers import slurm_nodes, slurm_queue
from orchestrator.signals import Stopped

LOOK_S, QUEUE_EVERY_S = 0.5, 5.0
# Answers of squeue without the job until it counts as over: one alone means nothing.
ABSENT = 4
CODE_S = 10.0  # for the file with its exit code to be seen here, after its end
KILLED = 137  # the controller ended without a word of its own
NOT_RUN = (126, 127)  # of the shell of the job's script: the program is not there
NOT_BEGUN = "JobLaunchFailure"  # also where a file for its messages cannot be opened
# What became of a job that left no exit code: code and words.
OUTCOMES: dict[str, tuple[str, str]] = {
    "CANCELLED": ("SLURM-CANCELLED", "it was cancelled from outside, or a node's prolog failed"),
    "TIMEOUT": ("WALLTIME", "its time limit ended it before it had ended in good order"),
    "NODE_FAIL": ("NODE-FAIL", "the node of its controller failed"),
    "PREEMPTED": ("PREEMPTED", "another job took its nodes"),
    "BOOT_FAIL": ("NODE-FAIL", "a node did not boot"),
    "OUT_OF_MEMORY": ("OOM", "it used more memory than Slurm gave it"),
    "DEADLINE": ("WALLTIME", "its deadline passed"),
}


@dataclass(slots=True)
class _Seen:
    """The last known state of the job."""

    job: slurm_queue.Job
    absent: int = 0
    said: str = ""
    at: float = 0.0


def follow(job: slurm_queue.Job, folder: Path, voice: Voice) -> int:
    """Tell what becomes of a job until it is over; the exit code of what it ran.

    Raises:
        UnfitError: NOT-SHARED.
        NodeError, LocalError: it ended without an exit code of ours; says how. NODE-DOWN; it
            was cancelled, since the node that ran it died.
        Interrupted: by the user; the job goes on.
    """
    sys.stdout.flush()
    offsets: dict[str, int] = {}
    seen = _Seen(job)
    try:
        while not _over(seen, folder, voice):
            _copy(folder / job.id, offsets)
            time.sleep(LOOK_S)
    except Stopped as stopped:
        raise errors.Interrupted(stopped.number, job.id) from None
    if seen.job.reason == NOT_BEGUN:
        raise _not_shared(
            job, str(folder), "work in a folder that all nodes see, or name one with --state"
        )
    code = _code(folder / f"{job.id}.code")
    _copy(folder / job.id, offsets)
    return _report(seen.job, code, voice)


def _copy(job: Path, offsets: dict[str, int]) -> None:
    """Copy what the job has printed since the last time to this program's own streams."""
    for ending, to in ((".log", 2), (".out", 1)):
        with contextlib.suppress(FileNotFoundError), open(f"{job}{ending}", "rb") as file:
            file.seek(offsets.get(ending, 0))
            while piece := file.read(1 << 16):
                os.write(to, piece)
            offsets[ending] = file.tell()


def _report(job: slurm_queue.Job, code: int | None, voice: Voice) -> int:
    if code in NOT_RUN:
        raise _not_shared(job, sys.executable, "install dlperf-orch where all nodes see it")
    if code is None or code == KILLED:
        raise _outcome(job)
    words = f"has ended, exit {code}"
    if code == 143:
        why = f" ({job.state})" if job.state in OUTCOMES else ""
        words = f"ended in good order{why}; the same command goes on in another job"
    voice.line(f"job {job.id} {words}")
    return code


def _over(seen: _Seen, folder: Path, voice: Voice) -> bool:
    has_code = (folder / f"{seen.job.id}.code").exists()
    if not has_code and time.monotonic() - seen.at < QUEUE_EVERY_S and seen.at:
        return False
    seen.at = time.monotonic()
    try:
        shown = slurm_queue.jobs(ids=(seen.job.id,), patience_s=0.0)
    except errors.LocalError as error:
        if error.code != "SLURM-SILENT":
            raise
        words = f"job {seen.job.id} is followed by its files alone: {error.cause}"
        _say_once(words, seen, voice)
        return has_code
    found = [job for job in shown if job.name == seen.job.name]
    if not found:
        seen.absent += 1
        return has_code or seen.absent >= ABSENT
    seen.absent, seen.job = 0, found[0]
    _say(seen, voice)
    return seen.job.is_over


def _say(seen: _Seen, voice: Voice) -> None:
    """Say every new state until the job ends, and why it waits; end a job whose node died."""
    job = seen.job
    if job.is_over or job.state == "COMPLETING":
        return
    words = job.summary
    if job.state == "RUNNING" and not job.lost_host and _is_silent(job.batch_host):
        words += f"; Slurm hears nothing of {job.batch_host}, which runs its script"
    _say_once(words, seen, voice)
    if job.lost_host:
        _give_up(job, voice)


def _say_once(words: str, seen: _Seen, voice: Voice) -> None:
    if words != seen.said:
        voice.line(words)
        seen.said = words


def _is_silent(host: str) -> bool:
    with contextlib.suppress(errors.DlperfError):
        return slurm_nodes.are_down(host)
    return False


def _give_up(job: slurm_queue.Job, voice: Voice) -> None:
    """Queue a job again whose batch host died, if it may be; else cancel it."""
    if slurm_queue.shown(job.id).get("Requeue") == "1":
        slurm_queue.call("scontrol", "requeue", job.id)
        voice.line(f"job {job.id} is queued again, since {job.lost_host} is down")
        return
    slurm_queue.cancel(job.id)
    raise errors.NodeError(
        f"Slurm gave up the node that ran job {job.id}; the job was cancelled",
        code="NODE-DOWN",
        node=job.lost_host,
        fix="run the same command again: it goes on in another job, on other nodes",
    )


def _code(path: Path) -> int | None:
    deadline = time.monotonic() + CODE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(path.read_text())
        time.sleep(LOOK_S)
    return None


def _not_shared(job: slurm_queue.Job, path: str, fix: str) -> errors.UnfitError:
    seen = f"job {job.id} could not begin; needed {path} on its nodes, at this very path"
    return errors.UnfitError(seen, code="NOT-SHARED", fix=fix)


def _outcome(job: slurm_queue.Job) -> errors.DlperfError:
    code, words = OUTCOMES.get(job.state, ("JOB-LOST", "its controller left no exit code"))
    state = job.state if job.reason in ("None", "") else f"{job.state}, {job.reason}"
    kind = errors.NodeError if code in ("NODE-FAIL", "PREEMPTED", "JOB-LOST") else errors.LocalError
    return kind(
        f"job {job.id} ended ({state}): {words}",
        code=code,
        fix="run the same command again: it goes on in another job",
    )
