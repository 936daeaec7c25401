"""Tasks of gangs that are steps of a Slurm job, as a runtime of all its nodes.

A gang is one step: its gate and its end are lines on srun's standard input.
"""

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import NODE_STATE_S, STEP_END_S, UNPACKED_S
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Task
from orchestrator.model.slurm import environment
from orchestrator.runtimes import TaskState, image_files, marks, step
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.schedulers import slurm_queue
from orchestrator.schedulers.scheduler import LISTENING_ROW
from orchestrator.transports.local import LocalTransport
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


class GangStep:
    """The step of one attempt, started here or found running."""

    def __init__(self, steps: Steps, attempt: Attempt) -> None:
        self._steps, self._attempt = steps, attempt
        self._folder = attempt.folder(attempt.tasks[0])
        # Unique: the name of its tasks without their rank.
        self._name = f"dlp-{attempt.sweep}-{attempt.trial}-a{attempt.number}"
        self._output_path = Path(self._folder) / "srun.err"
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
        """Note that one more task's files are written; start the step after the last task's."""
        with self._lock:
            self._created += 1
            if self._created < len(self._attempt.tasks):
                return
            command = ("sh", f"{self._folder}/step.sh", self._folder, LISTENING_ROW)
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
            *(f"--chdir={self._folder}", f"--job-name={self._name}"),
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
        for step_id in self._ids():
            slurm_queue.cancel(step_id, "--signal=TERM")

    def end(self, patience_s: float = 0.0) -> None:
        """Wait ``patience_s`` for the step's own end, then end it; raise LEFTOVER if it goes on."""
        if self.has_ended(patience_s):
            return
        deadline = time.monotonic() + STEP_END_S
        while ids := self._ids():
            for step_id in ids:
                slurm_queue.cancel(step_id)
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
        if self._srun is not None and not self.has_ended(1.0):
            self._srun.kill()  # srun itself, which holds nothing any more
            self._srun.wait()

    def gone_s(self) -> float | None:
        """Return for how long no step has run; None while a step runs, or before it starts."""
        if not self._gone_at:
            if self._srun is None and (self._created or not self._is_absent()):
                return None
            if self._srun is not None and not self.has_ended():
                return None
            # One that was found may have gone long ago: nobody's last words are waited for.
            self._gone_at = time.monotonic() - (LAST_WORDS_S if self._srun is None else 0.0)
        return time.monotonic() - self._gone_at

    def down(self, fresh_s: float = NODE_STATE_S) -> frozenset[str]:
        """Return nodes that Slurm has given up or taken from the job, as of ``fresh_s`` ago."""
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

    def has_ended(self, patience_s: float = 0.0) -> bool:
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
                    jobs = slurm_queue.jobs(ids=(self._attempt.handle,)) if self._absent else ()
                    if self._absent and all(job.is_over for job in jobs):
                        self._absent = ABSENT
            return self._absent >= ABSENT

    def _ids(self) -> list[str]:
        running = slurm_queue.steps(self._attempt.handle)
        return [step for step, name in running.items() if name == self._name]

    def _say(self, line: bytes) -> bool:
        srun = self._srun
        with contextlib.suppress(OSError):
            if srun and srun.stdin and srun.poll() is None:
                srun.stdin.write(line)
                srun.stdin.flush()
                return True
        return False


class SlurmTasks:
    """Plain processes in steps, or containers, as the inventory says.

    ``clean`` has the ports in use on each node where the last gang left nothing behind.
    """

    def __init__(self, fleet: Fleet, job: str, owner: str) -> None:
        self._fleet, self._job = fleet, job
        self._shared = LocalTransport("shared")
        self._way = image_files.WAYS.get(fleet.cluster.members[0].runtime)
        self._containers = {name: fleet.containers_on(name, owner=owner) for name in fleet.engines}
        self.clean: dict[str, frozenset[int]] = {}
        self._lock = threading.Lock()
        self._gangs: dict[tuple[str, str, int], GangStep] = {}

    def extend_limits(self, limits: Limits) -> Limits:
        """Allow more time to create tasks in containers: some unpack the image each time."""
        return replace(limits, create_s=UNPACKED_S) if self._way else limits

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Write the task's files; the last one starts the step, whose tasks wait at their gates."""
        if self._way is not None:
            script = step.image_script(self._way, attempt, task, limits)
        elif task.node in self._containers:
            request = self._containers[task.node].request(attempt, task, limits)
            docker = self._fleet.engines[task.node].command
            script = step.docker_script(attempt, task, limits, docker, request)
        else:
            script = step.process_script(attempt, task, limits)
        step.write(self._shared, attempt, task, script)
        self._gang(attempt).create(least_cpus(os.environ), options(self._way, attempt))

    def start(self, attempt: Attempt, task: Task) -> bool:  # noqa: ARG002 - all at once
        """Open the gates of all tasks, once."""
        return self._gang(attempt).open()

    def inspect(self, attempt: Attempt, task: Task) -> TaskState:
        """Determine the state from its files; without an end file, from its step and node."""
        state = self._look(attempt, task)
        end = state.end
        # In both ways Slurm ends it: by a signal to its supervisor, later by the kill of all.
        if end and end.why in ("stopped", "lost") and self._gang(attempt).was_preempted():
            return replace(state, end=replace(end, why="preempted"))
        return state

    def _look(self, attempt: Attempt, task: Task) -> TaskState:
        gang, state = self._gang(attempt), step.look(self._files(attempt, task))
        gone_s = None if state.phase == "ended" else gang.gone_s()
        if gone_s is not None:
            state = step.look(self._files(attempt, task))  # it may have ended between the two looks
        if state.phase == "ended":
            return state
        is_down = task.node in gang.down(NODE_STATE_S if gone_s is None else LOOK_S)
        if gone_s is None and not is_down:
            return state
        # A node that goes down while a container is made there prints an error of pyxis, too.
        if not is_down and (refusal := self.refusal(attempt, task)):
            raise refusal
        if gone_s is not None and gone_s < LAST_WORDS_S:
            return TaskState("running" if state.phase == "absent" else state.phase)
        end = self._files(attempt, task).make_end("node-down" if is_down else "lost")
        return TaskState("lost", end)

    def correct_end(self, attempt: Attempt, gang: GangEnd) -> GangEnd:
        """Correct an ended gang's reason by what Slurm reports: node-down or oom.

        oom counts also where the program went on, as in containers. Where a node is down, the
        others' ranks failed for want of their peer, often long before Slurm noticed it.
        """
        gang_step = self._gang(attempt)
        down = gang_step.down(0.0) if gang.reason in ("failed", "lost") else ()
        lost = next((end for end in gang.ends if end.node in down), None)
        if lost is not None:
            return replace(gang, reason="node-down", first=replace(lost, why="node-down"))
        gang_step.has_ended(ENDING_S)
        nodes = short_of_memory(gang_step.read_output())
        short = next((end for end in gang.ends if end.node in nodes), None)
        if short is None or gang.reason == "stopped":
            return gang
        return replace(gang, reason="oom", first=replace(short, why="oom"))

    def output(self, attempt: Attempt, task: Task, offset: int) -> bytes:
        return self._files(attempt, task).output(offset)

    def stop(self, attempt: Attempt, task: Task) -> None:  # noqa: ARG002 - a gang ends as a whole
        """Ask all tasks of the step to end."""
        self._gang(attempt).stop()

    def remove(self, attempt: Attempt, task: Task) -> None:
        """End the step, then what of the task is left on its node."""
        gang, ours = self._gang(attempt), attempt.handle == self._job
        ended = step.look(self._files(attempt, task)).phase == "ended"
        gang.end(ENDING_S if ended else 0.0)
        # An engine's containers are outside of the step, and who is in one may not see the node.
        plain = not (self._containers or self._way)
        if ours and ended and plain and (said := self._files(attempt, task).text("clean")):
            self.clean[task.node] = frozenset(int(port, 16) for port in said.split()[1:])
            return
        if ours and task.node in gang.down():
            return  # not ours to enter; Slurm ends what a job had there before it gives it again
        where = {"node": task.node, "trial": attempt.trial}
        try:
            if task.node in self._containers:  # also of a job that is over, which left them
                self._containers[task.node].remove(attempt, task)
            elif ours and not self._containers:
                transport, fix = self._fleet.transports[task.node], f"scancel {self._job}"
                marks.kill(transport, attempt.token(task), fix=fix, **where)
                if self._way is not None and not ended:
                    steps = slurm_queue.steps(self._job)
                    image_files.remove_left(self._way, transport, self._job, steps, **where)
        except errors.NodeUnreachable:
            states = [job.state for job in slurm_queue.jobs(ids=(self._job,))]
            if states == ["RUNNING"] and task.node not in gang.down(0.0):
                raise
            # the job was cancelled or queued again, or has lost the node: Slurm ends all

    def refusal(self, attempt: Attempt, task: Task) -> errors.DlperfError | None:
        """Return why an ended step never put a task into its container; None if it did."""
        files = self._files(attempt, task)
        if self._containers:
            return step.docker_refusal(files, task)
        if self._way is None:
            return None
        said = self._gang(attempt).read_output().decode(errors="replace")
        return image_files.refusal(files, said, task)

    def _files(self, attempt: Attempt, task: Task) -> TaskFiles:
        return TaskFiles(self._shared, attempt, task)

    def _gang(self, attempt: Attempt) -> GangStep:
        key = attempt.sweep, attempt.trial, attempt.number
        with self._lock:
            if key not in self._gangs:
                self._gangs[key] = GangStep(Steps(attempt.handle), attempt)
            return self._gangs[key]


def short_of_memory(said: bytes) -> frozenset[str]:
    """Return the nodes where Slurm's limit of memory ended a process, by what srun printed."""
    folded = _OOM.findall(said.decode(errors="replace"))
    return frozenset(name for part in folded for name in slurm_queue.names(part))


def options(way: image_files.ImageFiles | None, attempt: Attempt) -> tuple[str, ...]:
    """Return the options of srun that put the tasks of an attempt into containers."""
    return way.options(image_files.of_task(attempt, attempt.tasks[0])) if way else ()


def step_words(
    cluster: Cluster, attempt: Attempt, task: Task, program: Sequence[str], asking: Sequence[str]
) -> Sequence[str]:
    """Return the words that run a program as a step of one task, for --dry-run.

    Args:
        asking: options of a job, for a step outside of one.
    """
    job, way = slurm_queue.job_id(), image_files.WAYS.get(cluster.members[0].runtime)
    alone = replace(attempt, tasks=(task,))
    if way is not None:
        known = attempt.image.startswith("/")  # else only its name
        alone = replace(alone, image=attempt.image if known else f"/{attempt.image}{way.suffix}")
        program = (*way.words(image_files.of_task(alone, task)), *program)
    given = (f"--cpus-per-task={least_cpus(os.environ)}",) if job else asking
    return GangStep(Steps(job), alone).words((*given, *options(way, alone)), program)


def least_cpus(environ: Mapping[str, str]) -> int:
    """Return the number of CPUs that each node has for the job: 16 for ``32(x3),16``."""
    counts = environ.get("SLURM_JOB_CPUS_PER_NODE", "1").split(",")
    return min(int(count.partition("(")[0]) for count in counts)
