"""Tasks of gangs that are steps of a Slurm job, as a runtime of all its nodes."""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator import errors
from orchestrator.deadlines import UNPACKED_S
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Task
from orchestrator.runtimes import TaskState, image_files, marks, step
from orchestrator.runtimes.process import inherited_environment
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.schedulers import slurm_queue
from orchestrator.schedulers.gang_step import ENDING_S, LAST_WORDS_S, LOOK_S, GangStep
from orchestrator.transports.local import LocalTransport
from orchestrator.transports.steps import Steps


class SlurmTasks:
    """Plain processes in steps, or containers, as the inventory says.

    Attributes:
        clean: nodes where the last gang saw at its end that no gang had left anything.
    """

    def __init__(self, fleet: Fleet, job: str, owner: str) -> None:
        self._fleet, self._job = fleet, job
        self._shared = LocalTransport("shared")
        self._way = image_files.WAYS.get(fleet.cluster.members[0].runtime)
        self._containers = {name: fleet.containers_on(name, owner=owner) for name in fleet.engines}
        self.clean: set[str] = set()
        self._lock = threading.Lock()
        self._gangs: dict[tuple[str, str, int], GangStep] = {}

    def extend_limits(self, limits: Limits) -> Limits:
        """Allow more time to create tasks in containers: some unpack the image each time."""
        return replace(limits, create_s=UNPACKED_S) if self._way else limits

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Write the task's files; the last one starts the step, whose tasks wait at their gates."""
        step.write(self._shared, attempt, task, self._script(attempt, task, limits))
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
        gang = self._gang(attempt)
        state = step.look(self._files(attempt, task))
        if state.phase == "ended":
            return state
        gone_s = gang.gone_s()
        if gone_s is None:
            down = task.node in gang.down()
            return self._make_lost_state(attempt, task, "node-down") if down else state
        state = step.look(self._files(attempt, task))  # it may have ended between the two looks
        if state.phase == "ended":
            return state
        # A node that goes down while a container is made there prints an error of pyxis, too.
        down = task.node in gang.down(LOOK_S)
        if not down and (refusal := self.refusal(attempt, task)):
            raise refusal
        if gone_s < LAST_WORDS_S:
            return TaskState("running" if state.phase == "absent" else state.phase)
        return self._make_lost_state(attempt, task, "node-down" if down else "lost")

    def correct_end(self, attempt: Attempt, gang: GangEnd) -> GangEnd:
        """Correct an ended gang's reason by what Slurm reports: node-down or oom.

        A process that its limit of memory ended counts also where the program went on, as in
        containers. Where a node is down, the others' ranks failed for want of their peer, often
        long before Slurm noticed it.
        """
        down = self._gang(attempt).down(0.0) if gang.reason in ("failed", "lost") else ()
        lost = next((end for end in gang.ends if end.node in down), None)
        if lost is not None:
            return replace(gang, reason="node-down", first=replace(lost, why="node-down"))
        nodes = self._gang(attempt).short_of_memory()
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
        """End the step, then what of the task is left on its node.

        Raises:
            LeftoverError: some processes do not end.
        """
        gang, ours = self._gang(attempt), attempt.handle == self._job
        ended = step.look(self._files(attempt, task)).phase == "ended"
        gang.end(ENDING_S if ended else 0.0)
        # An engine's containers are outside of the step, and who is in one may not see the node.
        plain = not (self._containers or self._way)
        if ours and ended and plain and self._files(attempt, task).has("clean"):
            self.clean.add(task.node)
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

    def _script(self, attempt: Attempt, task: Task, limits: Limits) -> str:
        if self._way is not None:
            return step.image_script(self._way, attempt, task, limits)
        if task.node not in self._containers:
            return step.process_script(attempt, task, limits, inherited_environment())
        request = self._containers[task.node].request(attempt, task, limits)
        docker = self._fleet.engines[task.node].command
        return step.docker_script(attempt, task, limits, docker, request)

    def refusal(self, attempt: Attempt, task: Task) -> errors.DlperfError | None:
        """Return why an ended step never put a task into its container; None if it did."""
        files = self._files(attempt, task)
        if self._containers:
            return step.docker_refusal(files, task)
        if self._way is None:
            return None
        said = self._gang(attempt).read_output().decode(errors="replace")
        return image_files.refusal(files, said, task)

    def _make_lost_state(self, attempt: Attempt, task: Task, why: str) -> TaskState:
        return TaskState("lost", self._files(attempt, task).make_lost_end(why))

    def _files(self, attempt: Attempt, task: Task) -> TaskFiles:
        return TaskFiles(self._shared, attempt, task)

    def _gang(self, attempt: Attempt) -> GangStep:
        key = attempt.sweep, attempt.trial, attempt.number
        with self._lock:
            if key not in self._gangs:
                self._gangs[key] = GangStep(Steps(attempt.handle), attempt)
            return self._gangs[key]


def options(way: image_files.ImageFiles | None, attempt: Attempt) -> tuple[str, ...]:
    """Return the options of srun that put the tasks of an attempt into containers."""
    return way.options(image_files.of_task(attempt, attempt.tasks[0])) if way else ()


def step_words(
    cluster: Cluster, attempt: Attempt, task: Task, program: Sequence[str], asking: Sequence[str]
) -> Sequence[str]:
    """Return the words that run one task of an attempt as a step of its own, for --dry-run.

    Args:
        program: the words that run the task on its node.
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
