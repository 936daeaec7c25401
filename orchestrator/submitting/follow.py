"""Follow a job: print why it waits, its output, and how it ends."""

import contextlib
import math
import os
import sys
import time
from pathlib import Path

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.schedulers import slurm_queue
from orchestrator.signals import Stopped

LOOK_S, QUEUE_EVERY_S = 0.5, 5.0
# Answers of squeue without the job until it counts as over: one alone means nothing.
ABSENT = 4
CODE_S = 10.0  # for the file with its exit code to be seen here, after its end
KILLED = 137  # the controller ended without a word of its own
NOT_RUN = (126, 127)  # of the shell of the job's script: the program is not there
NOT_BEGUN = "JobLaunchFailure"  # also where a file for its messages cannot be opened
# Of a job that left no exit code, by its state.
CODES = {
    "BOOT_FAIL": "NODE-FAIL",
    "CANCELLED": "SLURM-CANCELLED",
    "DEADLINE": "WALLTIME",
    "NODE_FAIL": "NODE-FAIL",
    "OUT_OF_MEMORY": "OOM",
    "PREEMPTED": "PREEMPTED",
    "TIMEOUT": "WALLTIME",
}


def follow(job: slurm_queue.Job, folder: Path, voice: Voice) -> int:
    """Report the states and the output of a job until it is over; return its program's exit code.

    Raises:
        NodeError, LocalError: it ended without an exit code of ours, or (NODE-DOWN) was cancelled,
            since the node that ran it died.
        Interrupted: by the user; the job goes on.
    """
    sys.stdout.flush()
    code_file, offsets = folder / f"{job.id}.code", dict[str, int]()
    try:
        job = _follow_to_end(job, code_file, offsets, voice)
    except Stopped as stopped:
        raise errors.Interrupted(stopped.number, job.id) from None
    code, deadline = None, time.monotonic() + CODE_S
    while code is None and job.reason != NOT_BEGUN and time.monotonic() < deadline:
        try:
            code = int(code_file.read_text())
        except (FileNotFoundError, ValueError):
            time.sleep(LOOK_S)
    _copy(folder / job.id, offsets)
    if job.reason == NOT_BEGUN or code in NOT_RUN:
        raise errors.UnfitError(
            f"job {job.id} could not begin; needed {folder} and {sys.executable} on its nodes",
            code="NOT-SHARED",
            fix="work (or name --state), and install dlperf-orch, where all nodes see it",
        )
    if code is None or code == KILLED:
        lost = CODES.get(job.state, "JOB-LOST")
        is_remote = lost in ("NODE-FAIL", "PREEMPTED", "JOB-LOST")
        state = job.state if job.reason in ("None", "") else f"{job.state}, {job.reason}"
        cause = f"job {job.id} ended ({state}), and its controller left no exit code"
        kind = errors.NodeError if is_remote else errors.LocalError
        raise kind(cause, code=lost, fix=slurm_queue.GO_ON)
    words = f"has ended, exit {code}"
    if code == 143:
        why = f" ({job.state})" if job.state in CODES else ""
        words = f"ended in good order{why}; the same command goes on in another job"
    voice.line(f"job {job.id} {words}")
    return code


def _follow_to_end(
    job: slurm_queue.Job, code_file: Path, offsets: dict[str, int], voice: Voice
) -> slurm_queue.Job:
    """Return the job as it was seen last; say each new state once."""
    absent, last_line, looked = 0, "", -math.inf
    while True:
        has_code = code_file.exists()
        if has_code or time.monotonic() - looked >= QUEUE_EVERY_S:
            looked, found = time.monotonic(), None
            try:
                shown = slurm_queue.jobs(ids=(job.id,), patience_s=0.0)
            except errors.LocalError as error:
                if error.code != "SLURM-SILENT":
                    raise
                line = f"job {job.id} is followed by its files alone: {error.cause}"
                is_over = has_code
            else:
                found = next((it for it in shown if it.name == job.name), None)
                job, absent = found or job, 0 if found else absent + 1
                ends = job.is_over or job.state == "COMPLETING"
                line = job.summary if found and not ends else ""
                is_over = job.is_over if found else has_code or absent >= ABSENT
            if line and line != last_line:
                voice.line(line)
                last_line = line
            if found and found.lost_host:
                _give_up(job, voice)
            if is_over:
                return job
        _copy(code_file.with_suffix(""), offsets)
        time.sleep(LOOK_S)


def _copy(job: Path, offsets: dict[str, int]) -> None:
    for ending, to in ((".log", 2), (".out", 1)):
        with contextlib.suppress(FileNotFoundError), open(f"{job}{ending}", "rb") as file:
            file.seek(offsets.get(ending, 0))
            while piece := file.read(1 << 16):
                os.write(to, piece)
            offsets[ending] = file.tell()


def _give_up(job: slurm_queue.Job, voice: Voice) -> None:
    """Queue a job again whose batch host died, if it may be; else cancel it."""
    if slurm_queue.query_job(job.id).get("Requeue") == "1":
        slurm_queue.call("scontrol", "requeue", job.id)
        voice.line(f"job {job.id} is queued again, since {job.lost_host} is down")
        return
    slurm_queue.cancel(job.id)
    raise errors.NodeError(
        f"Slurm gave up the node that ran job {job.id}; the job was cancelled",
        code="NODE-DOWN",
        node=job.lost_host,
        fix=f"{slurm_queue.GO_ON}, on other nodes",
    )
