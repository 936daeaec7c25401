"""One gang over several nodes: started together, ended together."""

import time
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TypeVar

from orchestrator import errors
from orchestrator.model.attempt import Attempt, GangEnd, Limits, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.pool import Pool
from orchestrator.runtimes import Runtime, TaskState

QUICK_S, CALM_S = 0.01, 0.2  # between two looks at a node: while a gang is young, and later
AGAIN_S = 0.5  # between two looks at a node that gave no answer
YOUNG_S = 2.0
LOST_S = 12.0  # without an answer of a node until its task is given up
MOST_AT_ONCE = 32
Watch = Callable[[bytes], None]
T = TypeVar("T")


class Fanout:
    """Runs gangs over runtimes by node name; nodes are asked at the same time.

    Args:
        stopping: asked between two looks; true ends the gang.
    """

    def __init__(self, runtimes: Mapping[str, Runtime], stopping: Callable[[], bool]) -> None:
        self._runtimes = runtimes
        self._stopping = stopping
        # Two more than nodes: what is to be stopped need not wait for a node that is silent.
        self._pool = Pool(min(MOST_AT_ONCE, len(runtimes) + 2))

    def __enter__(self) -> "Fanout":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        """Bring every task to its gate, then open all gates.

        Returns:
            False if some task did not come to its gate or was stopped there; none is running.

        Raises:
            NodeError, UnfitError, LocalError: tasks may wait at their gates; ``clear`` ends them.
        """
        self._all(attempt, lambda task: self._at(task).create(attempt, task, limits))
        deadline = time.monotonic() + limits.create_s
        while not (phases := self._phases(attempt)) <= {"waiting"}:
            if time.monotonic() > deadline or self._stopping() or phases & {"lost", "ended"}:
                self.clear(attempt)
                return False
            time.sleep(QUICK_S)
        opened = self._all(attempt, lambda task: self._at(task).start(attempt, task))
        if not all(opened):
            self.clear(attempt)
        return all(opened)

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Watch the gang until all of it has ended; the first that fails ends the others.

        A node that gives no answer for 12 s is given up; what it runs is not known.

        Args:
            watch: given the leader's raw log piece by piece as it grows.
        """
        return _Wait(attempt, limits, self._runtimes, self._pool).run(watch, self._stopping)

    def adoptable(self, attempt: Attempt) -> bool:
        """Whether every task was let through its gate: then the gang may go on or has ended.

        Raises:
            NodeError: a node does not answer; what it runs is not known.
        """
        states = self._all(attempt, lambda task: self._at(task).inspect(attempt, task))
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
        answers = self._answers(attempt, lambda task: self._at(task).remove(attempt, task))
        left = [
            (task, answer)
            for task, answer in zip(attempt.tasks, answers, strict=True)
            if isinstance(answer, errors.DlperfError)
        ]
        if left:
            raise _leftover(attempt, left)

    def _at(self, task: Task) -> Runtime:
        return self._runtimes[task.node]

    def _phases(self, attempt: Attempt) -> set[str]:
        states = self._all(attempt, lambda task: self._at(task).inspect(attempt, task))
        return {state.phase for state in states}

    def _all(self, attempt: Attempt, ask: Callable[[Task], T]) -> list[T]:
        """Every task's answer, leader first; the first error once all have answered."""
        said: list[T] = []
        for answer in self._answers(attempt, ask):
            if isinstance(answer, errors.DlperfError):
                raise answer
            said.append(answer)
        return said

    def _answers(self, attempt: Attempt, ask: Callable[[Task], T]) -> list[T | errors.DlperfError]:
        def answer(task: Task) -> T | errors.DlperfError:
            try:
                return ask(task)
            except errors.DlperfError as error:
                error.where.setdefault("node", task.node)
                return error

        asked = [self._pool.submit(partial(answer, task)) for task in attempt.tasks]
        return [each.result() for each in asked]


def _leftover(
    attempt: Attempt, left: list[tuple[Task, errors.DlperfError]]
) -> errors.LeftoverError:
    names = ", ".join(f"{attempt.token(task)} on {task.node}" for task, _ in left)
    causes = "; ".join(f"{task.node}: {error.cause}" for task, error in left)
    fixes = [error.fix for _, error in left if isinstance(error, errors.LeftoverError)]
    return errors.LeftoverError(
        f"it is not proved that {names} has ended ({causes})",
        code="LEFTOVER",
        fix="; ".join(fixes) or "run the same command again when the node answers: it ends them",
        node=",".join(task.node for task, _ in left),
        trial=attempt.trial,
    )


@dataclass(slots=True)
class _Watched:
    """One task while its gang runs."""

    task: Task
    heard_at: float
    rests_until: float = 0.0
    read: int = 0
    asked: "Future[tuple[bytes, TaskState]] | None" = None
    end: TaskEnd | None = None


class _Wait:
    """What is remembered while one gang runs."""

    def __init__(
        self,
        attempt: Attempt,
        limits: Limits,
        runtimes: Mapping[str, Runtime],
        pool: Pool,
    ) -> None:
        self._attempt, self._limits = attempt, limits
        self._runtimes, self._pool = runtimes, pool
        self._began = self._grew = time.monotonic()
        self._watched = [_Watched(task, self._began) for task in attempt.tasks]
        self._reason = ""
        self._first: TaskEnd | None = None
        self._stopped_at = self._insisted_at = self._began

    def run(self, watch: Watch, stopping: Callable[[], bool]) -> GangEnd:
        while any(each.end is None for each in self._watched):
            young = time.monotonic() - self._began < YOUNG_S
            pause_s = QUICK_S if young or self._reason else CALM_S
            for each in self._watched:
                if each.end is None:
                    self._look(each, watch, pause_s)
            self._judge(stopping)
            self._rest(pause_s)
        return GangEnd(
            reason=self._reason or "done",
            ends=tuple(each.end for each in self._watched if each.end is not None),
            lasted_s=time.monotonic() - self._began,
            first=self._first,
        )

    def _rest(self, pause_s: float) -> None:
        """Wait until an answer comes, or for so long."""
        asked = [each.asked for each in self._watched if each.asked and each.end is None]
        if asked:
            futures.wait(asked, pause_s, futures.FIRST_COMPLETED)
        else:
            time.sleep(pause_s)

    def _look(self, each: _Watched, watch: Watch, pause_s: float) -> None:
        """Take an answer that has come, or ask; no node waits for another."""
        now = time.monotonic()
        if each.asked is None and now > each.rests_until:
            each.asked = self._pool.submit(partial(self._ask, each.task, each.read))
        elif each.asked is not None and each.asked.done():
            answer, each.asked = each.asked, None
            error = answer.exception()
            if error is None:
                each.heard_at, each.rests_until = now, now + pause_s
                self._take(each, answer.result(), watch)
            elif not isinstance(error, errors.NodeError):
                raise error
            else:
                each.rests_until = now + AGAIN_S
        if each.end is None and now - each.heard_at > LOST_S:
            self._end(each, _unknown(each.task, "unreachable"))

    def _ask(self, task: Task, offset: int) -> tuple[bytes, TaskState]:
        """The state before the log: what an ended task has written is then there."""
        runtime = self._runtimes[task.node]
        state = runtime.inspect(self._attempt, task)
        return runtime.output(self._attempt, task, offset), state

    def _take(self, each: _Watched, answer: tuple[bytes, TaskState], watch: Watch) -> None:
        piece, state = answer
        if piece:
            each.read += len(piece)
            self._grew = time.monotonic()
            if each.task.node_rank == 0:
                watch(piece)
        if state.phase == "absent":
            self._end(each, _unknown(each.task, "lost"))
        elif state.end is not None and (not piece or _is_read(each, state.end)):
            self._end(each, state.end)

    def _end(self, each: _Watched, end: TaskEnd) -> None:
        each.end = end
        if self._reason or (end.status == 0 and end.why == "exited"):
            return
        # Nobody but us asks a task to stop; and what became of an unreachable one is not known.
        self._first = end
        lost = {"stopped": "lost", "unreachable": "lost", "exited": "failed"}
        self._stop(lost.get(end.why, end.why))

    def _judge(self, stopping: Callable[[], bool]) -> None:
        now = time.monotonic()
        if self._reason:
            self._insist(now)
        elif stopping():
            self._stop("stopped")
        elif now - self._grew > self._limits.stall_s:
            self._stop("stalled")
        elif now - self._began > self._limits.time_s + self._limits.grace_s:
            self._stop("deadline")  # the supervisors should have done it; insist from here

    def _stop(self, reason: str) -> None:
        self._reason = reason
        self._stopped_at = self._insisted_at = time.monotonic()
        self._tell(lambda task: self._runtimes[task.node].stop(self._attempt, task))

    def _insist(self, now: float) -> None:
        """Remove what did not end within the grace, and once more every grace after that."""
        if now - self._insisted_at > self._limits.grace_s + 5.0:
            self._insisted_at = now
            self._tell(lambda task: self._runtimes[task.node].remove(self._attempt, task))

    def _tell(self, say: Callable[[Task], None]) -> None:
        """Say something to every task that runs; whether it heard is seen by looking."""
        for each in self._watched:
            if each.end is None:
                self._pool.submit(partial(say, each.task))


def _unknown(task: Task, why: str) -> TaskEnd:
    return TaskEnd(task.node, task.node_rank, None, why, 0, "", None)


def _is_read(each: _Watched, end: TaskEnd) -> bool:
    """Whether all of the log is here, by the size that a supervisor took; others took none."""
    return bool(end.sha256) and each.read >= end.size_bytes
