"""One gang over several nodes: started together, ended together."""

import time
from collections.abc import Callable, Mapping

from orchestrator import errors
from orchestrator.model.attempt import Attempt, GangEnd, Limits, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.runtimes import Runtime, TaskState

QUICK_S, CALM_S = 0.01, 0.1  # between two looks: while a gang is young, and later
YOUNG_S = 2.0
Watch = Callable[[bytes], None]


class Fanout:
    """Runs gangs over runtimes by node name.

    Args:
        stopping: asked between two looks; true ends the gang.
    """

    def __init__(self, runtimes: Mapping[str, Runtime], stopping: Callable[[], bool]) -> None:
        self._runtimes = runtimes
        self._stopping = stopping

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        """Bring every task to its gate, then open all gates.

        Returns:
            False if some task did not come to its gate or was stopped there; none is running.

        Raises:
            NodeError, LocalError: tasks may wait at their gates; ``clear`` ends them.
        """
        for task in attempt.tasks:
            self._at(task).create(attempt, task, limits)
        deadline = time.monotonic() + limits.create_s
        while not self._phases(attempt) <= {"waiting"}:
            if time.monotonic() > deadline or self._stopping() or "lost" in self._phases(attempt):
                self.clear(attempt)
                return False
            time.sleep(QUICK_S)
        opened = [self._at(task).start(attempt, task) for task in attempt.tasks]
        if not all(opened):
            self.clear(attempt)
        return all(opened)

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Watch the gang until all of it has ended; the first that fails ends the others.

        Args:
            watch: given the leader's raw log piece by piece as it grows.
        """
        return _Wait(attempt, limits, self._runtimes, self._stopping).run(watch)

    def adoptable(self, attempt: Attempt) -> bool:
        """Whether every task was let through its gate: then the gang may go on or has ended."""
        states = [self._at(task).inspect(attempt, task) for task in attempt.tasks]
        return all(
            state.phase == "running"
            or (state.phase == "ended" and state.end is not None and state.end.went_at is not None)
            for state in states
        )

    def clear(self, attempt: Attempt) -> None:
        """End every process of the attempt on every node and make sure that none is left.

        Raises:
            LeftoverError: names what would not go, after trying everywhere.
        """
        left: list[errors.DlperfError] = []
        for task in attempt.tasks:
            try:
                self._at(task).remove(attempt, task)
            except errors.DlperfError as error:
                left.append(error)
        if left:
            raise left[0]

    def _at(self, task: Task) -> Runtime:
        return self._runtimes[task.node]

    def _phases(self, attempt: Attempt) -> set[str]:
        return {self._at(task).inspect(attempt, task).phase for task in attempt.tasks}


class _Wait:
    """What is remembered while one gang runs."""

    def __init__(
        self,
        attempt: Attempt,
        limits: Limits,
        runtimes: Mapping[str, Runtime],
        stopping: Callable[[], bool],
    ) -> None:
        self._attempt, self._limits = attempt, limits
        self._runtimes, self._stopping = runtimes, stopping
        self._read = dict.fromkeys((task.node_rank for task in attempt.tasks), 0)
        self._ends: dict[int, TaskEnd] = {}
        self._began = self._grew = time.monotonic()
        self._reason = ""
        self._stopped_at: float | None = None

    def run(self, watch: Watch) -> GangEnd:
        while len(self._ends) < len(self._attempt.tasks):
            self._look(watch)
            if not self._reason:
                self._judge()
                if self._reason:
                    self._stop()
            elif self._overdue():
                self._insist()
            young = time.monotonic() - self._began < YOUNG_S
            time.sleep(QUICK_S if young or self._reason else CALM_S)
        self._listen(watch)
        ends = tuple(self._ends[rank] for rank in sorted(self._ends))
        return GangEnd(
            reason=self._reason or "done",
            ends=ends,
            lasted_s=time.monotonic() - self._began,
        )

    def _look(self, watch: Watch) -> None:
        self._listen(watch)
        for task in self._attempt.tasks:
            if task.node_rank in self._ends:
                continue
            state = self._runtimes[task.node].inspect(self._attempt, task)
            if state.phase == "absent":
                state = TaskState(
                    "lost", TaskEnd(task.node, task.node_rank, None, "lost", 0, "", None)
                )
            if state.end is not None:
                self._ends[task.node_rank] = state.end
                self._ended(state.end)

    def _listen(self, watch: Watch) -> None:
        for task in self._attempt.tasks:
            rank = task.node_rank
            piece = self._runtimes[task.node].output(self._attempt, task, self._read[rank])
            if piece:
                self._read[rank] += len(piece)
                self._grew = time.monotonic()
                if rank == 0:
                    watch(piece)

    def _ended(self, end: TaskEnd) -> None:
        if self._reason or (end.status == 0 and end.why == "exited"):
            return
        self._reason = {"exited": "failed", "stopped": "lost"}.get(end.why, end.why)
        self._stop()

    def _judge(self) -> None:
        now = time.monotonic()
        if self._stopping():
            self._reason = "stopped"
        elif now - self._grew > self._limits.stall_s:
            self._reason = "stalled"
        elif now - self._began > self._limits.time_s + self._limits.grace_s:
            self._reason = "deadline"  # the supervisors should have done it; insist from here

    def _stop(self) -> None:
        self._stopped_at = time.monotonic()
        for task in self._attempt.tasks:
            if task.node_rank not in self._ends:
                self._runtimes[task.node].stop(self._attempt, task)

    def _overdue(self) -> bool:
        stopped_at = self._stopped_at or self._began
        return time.monotonic() - stopped_at > self._limits.grace_s + 5.0

    def _insist(self) -> None:
        for task in self._attempt.tasks:
            if task.node_rank not in self._ends:
                self._runtimes[task.node].remove(self._attempt, task)
