"""A gang as one step of a Slurm job: its gate and its end are lines on srun's standard input."""

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import NODE_STATE_S, STEP_END_S
from orchestrator.model.attempt import Attempt
from orchestrator.model.slurm import environment
from orchestrator.schedulers import slurm_queue
from orchestrator.schedulers.scheduler import LISTENING_ROW
from orchestrator.transports.steps import Steps

LOOK_S = 1.0
# Answers of squeue without a step until it counts as gone: one may be wrong.
ABSENT = 3
# From the end of its step until a task without an end file counts as lost.
LAST_WORDS_S = 1.5
# From the end of a task's program to that of its step: Docker removes the container in between.
ENDING_S = 2.0
_BY_STEPD = b"DUE TO PREEMPTION"
_OOM = re.compile(r"^srun: error: (\S+): tasks? \S+: Out Of Memory", re.MULTILINE)


def short_of_memory(said: bytes) -> frozenset[str]:
    """Return the nodes where Slurm's limit of memory ended a process of a step that is over.

    Args:
        said: what its srun printed, at its end: of tasks by node, however the tasks exited.
    """
    folded = _OOM.findall(said.decode(errors="replace"))
    return frozenset(name for part in folded for name in slurm_queue.names(part))


class GangStep:
    """The step of one attempt, started here or found running."""

    def __init__(self, steps: Steps, attempt: Attempt) -> None:
        self._steps, self._attempt = steps, attempt
        # Unique: the name of its tasks without their rank.
        self._name = f"dlp-{attempt.sweep}-{attempt.trial}-a{attempt.number}"
        self._output_path = Path(attempt.folder(attempt.tasks[0])) / "srun.err"
        self._lock = threading.Lock()
        self._created = 0
        self._srun: subprocess.Popen[bytes] | None = None
        self._opened = self._told = False
        self._gone_at = 0.0
        self._looked_at = self._states_at = 0.0
        self._absent = 0
        self._down = frozenset[str]()
        self._preempted: bool | None = None

    def create(self, cpus: int, options: Sequence[str] = ()) -> None:
        """Note that one more task's files are written; start the step after the last task's.

        Args:
            options: of srun, beside those of every gang.
        """
        with self._lock:
            self._created += 1
            if self._created < len(self._attempt.tasks):
                return
            folder = self._attempt.folder(self._attempt.tasks[0])
            command = ("sh", f"{folder}/step.sh", folder, LISTENING_ROW)
            words = self.words((f"--cpus-per-task={cpus}", *options), command)
            # A file: srun may outlive this program, and end where it writes to a pipe unread.
            with open(self._output_path, "wb") as said:
                self._srun = subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,
                    env=environment(os.environ),
                )
            self._states_at = time.monotonic()  # they were looked at when they were allocated

    def words(self, options: Sequence[str], command: Sequence[str]) -> Sequence[str]:
        """Return the words that run a command on each node as the step."""
        more = (
            *("--input=all", "--kill-on-bad-exit=1", "--wait=0", "--no-kill"),
            f"--chdir={self._attempt.folder(self._attempt.tasks[0])}",
            f"--job-name={self._name}",
        )
        return self._steps.words(self._attempt.nodes, *more, *options, *command, ranked=True)

    def read_output(self) -> bytes:
        """Read what srun and Slurm's daemons printed; tasks print into their own logs."""
        with contextlib.suppress(FileNotFoundError):
            return self._output_path.read_bytes()
        return b""

    def open(self) -> bool:
        """Open all gates by one line; False if no step waits."""
        with self._lock:
            self._opened = self._opened or self._say(b"go\n")
            return self._opened

    def stop(self) -> None:
        """Ask every task to end, once."""
        with self._lock:
            if self._told:
                return
            self._told = True
            if self._say(b"stop\n"):
                return
        for step in self._ids():
            slurm_queue.cancel(step, "--signal=TERM")

    def end(self, patience_s: float = 0.0) -> None:
        """End the step if it still runs, and wait for that.

        Args:
            patience_s: how long it may take to end by itself.

        Raises:
            LeftoverError: it does not end.
        """
        if self._has_ended(patience_s):
            return
        deadline = time.monotonic() + STEP_END_S
        while ids := self._ids():
            for step in ids:
                slurm_queue.cancel(step)
            if self.down():
                break  # Slurm shows the step until its silent node answers, or the job ends
            if time.monotonic() > deadline:
                raise errors.LeftoverError(
                    f"step {ids[0]} of Slurm's does not end",
                    code="LEFTOVER",
                    trial=self._attempt.trial,
                    fix=f"scancel {ids[0]}",
                )
            time.sleep(0.1)
        if self._srun is not None and not self._has_ended(1.0):
            self._srun.kill()  # srun itself, which holds nothing any more
            self._srun.wait()

    def gone_s(self) -> float | None:
        """Return for how long no step has run; None while a step runs, or before it starts."""
        if not self._gone_at:
            if self._srun is None and (self._created or not self._is_absent()):
                return None
            if self._srun is not None and not self._has_ended():
                return None
            # One that was found may have gone long ago: nobody's last words are waited for.
            self._gone_at = time.monotonic() - (LAST_WORDS_S if self._srun is None else 0.0)
        return time.monotonic() - self._gone_at

    def down(self, fresh_s: float = NODE_STATE_S) -> frozenset[str]:
        """Return the nodes of the gang that Slurm has given up, or taken from the job.

        Args:
            fresh_s: how old Slurm's answer may be.
        """
        with self._lock:
            if time.monotonic() - self._states_at > fresh_s:
                self._states_at = time.monotonic()
                with contextlib.suppress(errors.DlperfError):
                    job = slurm_queue.query_job(self._attempt.handle, patience_s=0.0)
                    self._down = slurm_queue.find_down(job, self._attempt.nodes)
            return self._down

    def was_preempted(self) -> bool:
        """Return True if its tasks were told to end to make room for another job; asked once."""
        with self._lock:
            if self._preempted is None:
                # srun's output is the one place that tells of a job that was queued again.
                self._preempted = _BY_STEPD in self.read_output()
                with contextlib.suppress(errors.LocalError, errors.UnfitError):
                    job = slurm_queue.query_job(self._attempt.handle, patience_s=0.0)
                    self._preempted |= slurm_queue.is_preempted(job)
            return self._preempted

    def short_of_memory(self) -> frozenset[str]:
        """List nodes where Slurm's memory limit ended a process; call it once all have ended."""
        self._has_ended(ENDING_S)
        return short_of_memory(self.read_output())

    def _has_ended(self, patience_s: float = 0.0) -> bool:
        """Return True once the srun that was started here has ended; wait so long for it."""
        if self._srun is None:
            return False
        try:
            self._srun.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        with self._lock, contextlib.suppress(OSError):
            if self._srun.stdin is not None:
                self._srun.stdin.close()
        return True

    def _is_absent(self) -> bool:
        """Return True once squeue has not listed the step in several looks, or its job is over."""
        with self._lock:
            if time.monotonic() - self._looked_at >= LOOK_S:
                self._looked_at = time.monotonic()
                with contextlib.suppress(errors.LocalError):
                    self._absent = 0 if self._ids() else self._absent + 1
                    if self._absent:
                        jobs = slurm_queue.jobs(ids=(self._attempt.handle,))
                        self._absent = ABSENT if all(it.is_over for it in jobs) else self._absent
            return self._absent >= ABSENT

    def _ids(self) -> list[str]:
        running = slurm_queue.steps(self._attempt.handle)
        return [step for step, name in running.items() if name == self._name]

    def _say(self, line: bytes) -> bool:
        if self._srun is None or self._srun.stdin is None or self._srun.poll() is not None:
            return False
        try:
            self._srun.stdin.write(line)
            self._srun.stdin.flush()
        except OSError:
            return False
        return True
