"""A gang as one step of a Slurm job: its gate and its end are lines on srun's standard input."""

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import NODE_STATE_S, STEP_END_S
from orchestrator.model.attempt import Attempt
from orchestrator.model.slurm import environment
from orchestrator.schedulers import slurm_nodes, slurm_queue
from orchestrator.transports.steps import Steps

LOOK_S = 1.0
# Answers of squeue without a step until it counts as gone: one may be wrong.
ABSENT = 3
# From the end of its step until a task without an end file counts as lost: on a healthy node later
# than on one that is down, at once, so that the trial names the latter.
LAST_WORDS_S = 1.5
# From the end of a task's program to that of its step: Docker removes the container in between.
ENDING_S = 2.0
_BY_STEPD = b"DUE TO PREEMPTION"
_OOM = re.compile(r"^srun: error: (\S+): tasks? \S+: Out Of Memory", re.MULTILINE)
HEARD_S = 0.2  # between two looks at what tasks print when they end


def short_of_memory(said: bytes) -> frozenset[str]:
    """Return the nodes where Slurm's limit of memory ended a process of a step that is over.

    Args:
        said: what its srun printed, at its end: of tasks by node, however the tasks exited.
    """
    folded = _OOM.findall(said.decode(errors="replace"))
    return frozenset(name for part in folded for name in slurm_queue.names(part))


def name_of(attempt: Attempt) -> str:
    """Return the step's unique name: the name of its tasks without their rank."""
    return f"dlp-{attempt.sweep}-{attempt.trial}-a{attempt.number}"


class GangStep:
    """The step of one attempt, started here or found running."""

    def __init__(self, steps: Steps, attempt: Attempt) -> None:
        self._steps, self._attempt = steps, attempt
        self._lock = threading.Lock()
        self._created = 0
        self._srun: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._listening: threading.Thread | None = None
        self._over_at = 0.0
        self._lines: list[tuple[float, str]] = []
        self._opened = self._told = False
        self._gone_at = 0.0
        self._looked_at = self._states_at = 0.0
        self._absent = 0
        self._states: Mapping[str, str] = {}
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
            command = ("sh", f"{folder}/step.sh", folder)
            words = self.words((f"--cpus-per-task={cpus}", *options), command)
            # Files: srun may outlive this program, and end where it writes to a pipe unread.
            with open(self._output_path, "wb") as said, open(self._looks, "wb") as looks:
                self._srun = subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE,
                    stdout=looks,
                    stderr=said,
                    start_new_session=True,
                    env=environment(os.environ),
                )
            self._states_at = time.monotonic()  # they were looked at when they were allocated
            self._listening = threading.Thread(target=self._listen, daemon=True)
            self._listening.start()
            threading.Thread(target=self._attend, args=(self._srun,), daemon=True).start()

    def _attend(self, srun: "subprocess.Popen[bytes]") -> None:
        srun.wait()
        self._over_at = time.monotonic()
        self._over.set()
        with self._lock:  # nobody says anything just now
            if srun.stdin is not None:
                with contextlib.suppress(OSError):
                    srun.stdin.close()

    def _listen(self) -> None:
        """Keep what the tasks print at their ends, each line with a time before it came."""
        before, rest = time.monotonic(), ""
        with open(self._looks, encoding="utf-8", errors="replace") as looks:
            over = False
            while not over:
                over, now = self._over.wait(HEARD_S), time.monotonic()
                *whole, rest = (rest + looks.read()).split("\n")
                self._lines += [(before, line) for line in whole]
                before = now

    def clean(self) -> Mapping[str, tuple[float, frozenset[int]]]:
        """Return, by node, when its task saw no process of any gang, and the busy ports.

        Of nodes alone on which nothing can have begun since: the step ended soon after.
        """
        if self._listening is None or not self._over.is_set():
            return {}
        self._listening.join()
        said: dict[str, list[str]] = {}
        seen: dict[str, tuple[float, frozenset[int]]] = {}
        for at, line in self._lines:
            node, _, words = line.partition(" ")
            said.setdefault(node, []).append(words)
            if words == "clean" and self._over_at - at <= slurm_nodes.FRESH_S:
                seen[node] = at, slurm_nodes.parse_listening(said[node])
        return seen

    def words(self, options: Sequence[str], command: Sequence[str]) -> Sequence[str]:
        """Return the words that run a command on each node as the step."""
        more = (
            *("--input=all", "--kill-on-bad-exit=1", "--wait=0", "--no-kill"),
            f"--chdir={self._attempt.folder(self._attempt.tasks[0])}",
            f"--job-name={name_of(self._attempt)}",
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
            if not self._opened:
                self._opened = self._say(b"go\n")
            return self._opened

    def stop(self) -> None:
        """Ask every task to end, once."""
        with self._lock:
            if self._told:
                return
            self._told = True
            if self._srun is not None and self._say(b"stop\n"):
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
        if self._srun is not None and self._over.wait(patience_s):
            return
        deadline = time.monotonic() + STEP_END_S
        while ids := self._ids():
            for step in ids:
                slurm_queue.cancel(step)
            if self.any_down():
                break  # Slurm shows the step until its silent node answers, or the job ends
            if time.monotonic() > deadline:
                raise errors.LeftoverError(
                    f"step {ids[0]} of Slurm's does not end",
                    code="LEFTOVER",
                    trial=self._attempt.trial,
                    fix=f"scancel {ids[0]}",
                )
            time.sleep(0.1)
        if self._srun is not None and not self._over.wait(1.0):
            self._srun.kill()  # srun itself, which holds nothing any more
            self._over.wait()

    def gone_s(self) -> float | None:
        """Return for how long no step has run; None while a step runs, or before it starts."""
        if self._gone_at:
            return time.monotonic() - self._gone_at
        if self._srun is None and self._created:
            return None
        if self._srun is not None and not self._over.is_set():
            return None
        if self._srun is None and not self._is_absent():
            return None
        # One that was found may have gone long ago: nobody's last words are waited for.
        self._gone_at = time.monotonic() - (0.0 if self._srun is not None else LAST_WORDS_S)
        return time.monotonic() - self._gone_at

    def state(self, node: str) -> str:
        """Return a node's state as Slurm saw it a few seconds ago; empty if it is unknown."""
        now = time.monotonic()
        with self._lock:
            fresh = NODE_STATE_S if not self._gone_at else LOOK_S
            if now - self._states_at > fresh:
                self._states_at = now
                with contextlib.suppress(errors.DlperfError):
                    job = slurm_queue.query_job(self._attempt.handle, patience_s=0.0)
                    self._states = slurm_nodes.health(job, self._attempt.nodes)
        return self._states.get(node, "")

    def down(self) -> frozenset[str]:
        """Return the nodes of the gang that Slurm has given up by now, or taken from the job."""
        self._states_at = 0.0
        return frozenset(
            node for node in self._attempt.nodes if slurm_nodes.is_down(self.state(node))
        )

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
        if self._srun is not None:
            self._over.wait(ENDING_S)
        return short_of_memory(self.read_output())

    def any_down(self) -> bool:
        """Return whether Slurm considers any of the gang's nodes down."""
        return any(slurm_nodes.is_down(self.state(node)) for node in self._attempt.nodes)

    @property
    def _looks(self) -> Path:
        return self._output_path.with_suffix(".looks")

    @property
    def _output_path(self) -> Path:
        return Path(self._attempt.folder(self._attempt.tasks[0])) / "srun.err"

    def _is_absent(self) -> bool:
        """Return whether squeue, several times in a row, no longer lists a step that it listed."""
        now = time.monotonic()
        with self._lock:
            if now - self._looked_at < LOOK_S:
                return self._absent >= ABSENT
            self._looked_at = now
            with contextlib.suppress(errors.LocalError):
                self._absent = 0 if self._ids() else self._absent + 1
                jobs = slurm_queue.jobs(ids=(self._attempt.handle,)) if self._absent else ()
                if self._absent and all(job.is_over for job in jobs):
                    self._absent = ABSENT
            return self._absent >= ABSENT

    def _ids(self) -> list[str]:
        wanted = name_of(self._attempt)
        running = slurm_queue.steps(self._attempt.handle)
        return [step for step, name in running.items() if name == wanted]

    def _say(self, line: bytes) -> bool:
        if self._srun is None or self._srun.stdin is None or self._over.is_set():
            return False
        try:
            self._srun.stdin.write(line)
            self._srun.stdin.flush()
        except OSError:
            return False
        return True
