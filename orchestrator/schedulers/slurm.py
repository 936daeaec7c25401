"""The nodes of a Slurm allocation as a scheduler: a gang is one step of its job.

The exit code of srun is not used: the files of a task's supervisor record how it ended.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from orchestrator import errors, nodeset, words
from orchestrator.deadlines import QUEUE_IN_JOB_S
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Allocation, Attempt, GangEnd, Limits, Request
from orchestrator.model.cluster import Cluster
from orchestrator.model.findings import found
from orchestrator.model.plan import Seat, Task
from orchestrator.model.site import Finding
from orchestrator.model.slurm import END_S, seconds
from orchestrator.schedulers import addresses, slurm_queue, strays
from orchestrator.schedulers.gang import Watch
from orchestrator.schedulers.scheduler import Scheduler, Seen, choose_port
from orchestrator.schedulers.slurm_queue import GO_ON
from orchestrator.schedulers.slurm_tasks import SlurmTasks
from orchestrator.state import lock
from orchestrator.transports.local import LocalTransport


class Slurm(Scheduler):
    """Give the nodes of one job, in Slurm's order; a node runs one attempt at a time.

    Slurm gives these nodes to nobody else while the job lives. All see the state folder.
    """

    def __init__(self, cluster: Cluster, state: Path, stopping: Callable[[], bool]) -> None:
        self._job = slurm_queue.job_id()
        fleet, seats = Fleet.of(cluster, state.resolve()), addresses.seats(cluster, state)
        self._tasks = SlurmTasks(fleet, self._job, lock.own(state).record())
        # Also of nodes that only an earlier job had.
        shared = LocalTransport("shared")
        super().__init__(fleet, seats, lambda _: self._tasks, lambda _: shared, stopping)
        self._lost: set[str] = set()
        self._has_given = False

    @property
    def lanes(self) -> int:
        """Return one per node of the job, but one in all where containers come from image files.

        A step removes the files of containers that have ended; with several lanes another
        container could start on the node meanwhile.
        """
        return 1 if self._fleet.cluster.from_files else len(self._seats)

    @property
    def nodes(self) -> int:
        return len(self._seats) - len(self._lost)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        if not self._job:
            raise errors.UnfitError(
                "this is not inside a job of Slurm's; needed one, whose nodes are used",
                code="NO-ALLOCATION",
                fix="run it on a login node without SLURM_JOB_ID, where it submits itself",
            )
        yield

    def others(self, ours: Collection[str], inventory: str) -> tuple[Finding, ...]:
        """Look at containers, which outlive a job, at processes, and at what the job shares."""
        strangers = super().others(ours, inventory)
        job = slurm_queue.query_job(self._job, patience_s=QUEUE_IN_JOB_S)
        # NO is a job that has whole nodes; OK, the default, one that others may run beside.
        if job.get("OverSubscribe", "NO") == "NO":
            return strangers
        seen = f"job {self._job} has no whole nodes: OverSubscribe={job['OverSubscribe']}"
        where = nodeset.fold(seat.node for seat in self._seats)
        return (*strangers, found("SLURM-SHARED", where, seen, "a job with --exclusive"))

    def allocate(self, request: Request) -> Allocation | None:
        with self._lock:
            healthy, free = self._healthy()
        if len(request.seated(free)) < request.nodes <= len(request.seated(healthy)):
            return None  # without asking slurmctld each time
        job = slurm_queue.query_job(self._job, patience_s=QUEUE_IN_JOB_S)
        self._refuse_late(request, job)
        with self._lock:
            with contextlib.suppress(errors.LocalError):
                self._lost |= slurm_queue.find_down(job, [seat.node for seat in self._seats])
            healthy, free = self._healthy()
            if len(request.seated(healthy)) < request.nodes:
                raise self._too_few(request, len(request.seated(healthy)))
            given = request.seated(free)
            if len(given) < request.nodes:
                return None
            self._taken.update((seat.node, 0) for seat in given)
            self._has_given = True
        try:
            clean = self._tasks.clean  # by their gangs' own steps, which saves one here
            listening = {it.node: clean.pop(it.node) for it in given if it.node in clean}
            if dirty := [seat.node for seat in given if seat.node not in listening]:
                live = {known.id for known in slurm_queue.jobs() if not known.is_over}
                strays.end_jobs(self._fleet, dirty, self._job, live)
                listening |= self._listening(dirty)
            return Allocation(given, choose_port(request, request.ports, listening), self._job)
        except BaseException:
            self.release(Allocation(given, 0, self._job))
            raise

    def reclaim(self, attempt: Attempt) -> Attempt:
        """Return the whole attempt: a step of any job is ended or adopted as a whole."""
        self._take(attempt.seats, attempt.port)
        return attempt

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        return super().launch(attempt, self._tasks.extend_limits(limits))

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        return self._tasks.correct_end(attempt, super().wait(attempt, limits, watch))

    def _healthy(self) -> tuple[list[Seat], list[Seat]]:
        """Return the nodes that are not lost, and those of them that are not taken."""
        healthy = [seat for seat in self._seats if seat.node not in self._lost]
        return healthy, [seat for seat in healthy if seat.node not in self._taken]

    def _refuse_late(self, request: Request, job: Mapping[str, str]) -> None:
        trial = request.trial
        if slurm_queue.is_preempted(job):
            seen = "Slurm ends the job soon, to make room for one of higher priority"
            raise errors.TimeOver(seen, code="PREEMPTED", trial=trial, fix=GO_ON)
        limit_s, run_s = (seconds(job.get(name, "")) for name in ("TimeLimit", "RunTime"))
        if limit_s is None or run_s is None or limit_s - run_s >= request.time_s + END_S:
            return
        left_s = limit_s - run_s
        needed = f"an attempt may take {words.limit(request.time_s)}, and {END_S} s are for ending"
        if self._has_given:
            seen = f"the job ends in {words.limit(left_s)}; {needed}"
            raise errors.TimeOver(seen, code="WALLTIME", trial=trial, fix=GO_ON)
        # Another job like this one would not suffice either.
        raise errors.UnfitError(
            f"the job has {words.limit(left_s)} when its first attempt could begin; {needed}",
            code="WALLTIME",
            trial=trial,
            fix="allow more with slurm.time, or less with method.time_limit_s",
        )

    def _too_few(self, request: Request, fitting: int) -> errors.DlperfError:
        seen = f"{request.nodes} nodes are needed; {fitting} of the job's fit"
        if self._lost:
            return errors.NodeError(
                f"{seen}, and Slurm has given up {nodeset.fold(sorted(self._lost))}",
                code="NODE-DOWN",
                node=nodeset.fold(sorted(self._lost)),
                trial=request.trial,
                fix=f"{GO_ON}, on other nodes",
            )
        return errors.UnfitError(
            f"{seen} with {request.gpus_per_node} GPUs",
            code="NO-NODES",
            trial=request.trial,
            fix="ask for more with slurm.nodes",
        )

    def _inspect(self, attempt: Attempt, task: Task) -> Seen:
        try:
            return super()._inspect(attempt, task)
        except errors.UnfitError:
            refusal = self._tasks.refusal(attempt, task)
            if refusal is None:
                raise
            return Seen("lost", 0, refusal)
