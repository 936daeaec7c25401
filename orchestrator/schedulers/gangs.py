"""One gang over several nodes: started together, ended together."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from orchestrator import errors
from orchestrator.fleet import Pool
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.plan import Task
from orchestrator.retries import REPEATABLE
from orchestrator.runtimes import Runtime
from orchestrator.schedulers import Watch
from orchestrator.schedulers._wait import Wait

# Between two looks at tasks that come to their gates: at first, and at most; in between a share of
# what they have taken so far.
QUICK_S, CALM_S, SHARE = 0.003, 0.05, 0.25
MOST_AT_ONCE = 32
T = TypeVar("T")


class Gangs:
    """Runs gangs; all nodes are called at the same time.

    Args:
        runtimes: by node name.
        stopping: polled while a gang runs; once true, the gang is ended.
    """

    def __init__(self, runtimes: Mapping[str, Runtime], stopping: Callable[[], bool]) -> None:
        self._runtimes = runtimes
        self._stopping = stopping
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str, int], Pool] = {}

    def __enter__(self) -> "Gangs":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def also(self, runtimes: Mapping[str, Runtime]) -> "Gangs":
        """Add these nodes; return itself."""
        with self._lock:
            self._runtimes = {**self._runtimes, **runtimes}
        return self

    def close(self) -> None:
        """Let all threads end."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        """Implement ``Scheduler.launch``."""
        tasks = attempt.tasks
        self._all(attempt, tasks, lambda task: self._at(task).create(attempt, task, limits))
        began = time.monotonic()
        # Who waits at its gate stays there, or is missed when it is opened: nobody looks again.
        while coming := self._find_coming(attempt, tasks):
            gone = any(phase in ("lost", "ended") for _, phase in coming)
            waited_s = time.monotonic() - began
            if gone or waited_s > limits.create_s or self._stopping():
                return False
            tasks = tuple(task for task, _ in coming)
            time.sleep(min(max(QUICK_S, SHARE * waited_s), CALM_S))
        return all(
            self._all(attempt, attempt.tasks, lambda task: self._at(task).start(attempt, task))
        )

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Watch the gang until all of it has ended; the first task that fails ends the others.

        A node without an answer for 12 s is given up, and after 10 s one whose engine alone is
        silent; what it runs is not known then.
        """
        return Wait(attempt, limits, self._runtimes, self._pool(attempt)).run(watch, self._stopping)

    def adoptable(self, attempt: Attempt) -> bool:
        """Implement ``Scheduler.adoptable``."""
        states = self._all(
            attempt,
            attempt.tasks,
            lambda task: REPEATABLE.call(lambda: self._at(task).inspect(attempt, task)),
        )
        return all(
            state.phase == "running"
            or (state.phase == "ended" and state.end is not None and state.end.went_at is not None)
            for state in states
        )

    def clear(self, attempt: Attempt) -> None:
        """Implement ``Scheduler.clear``."""
        answers = self._answers(
            attempt,
            attempt.tasks,
            lambda task: REPEATABLE.call(lambda: self._at(task).remove(attempt, task)),
        )
        self._close(attempt)
        left = [
            (task, answer)
            for task, answer in zip(attempt.tasks, answers, strict=True)
            if isinstance(answer, errors.DlperfError)
        ]
        if left:
            raise _leftover(attempt, left)

    def _at(self, task: Task) -> Runtime:
        return self._runtimes[task.node]

    def _find_coming(self, attempt: Attempt, tasks: Sequence[Task]) -> list[tuple[Task, str]]:
        states = self._all(attempt, tasks, lambda task: self._at(task).inspect(attempt, task))
        phases = ((task, state.phase) for task, state in zip(tasks, states, strict=True))
        return [(task, phase) for task, phase in phases if phase != "waiting"]

    def _all(self, attempt: Attempt, tasks: Sequence[Task], ask: Callable[[Task], T]) -> list[T]:
        values: list[T] = []
        failures: list[errors.DlperfError] = []
        for answer in self._answers(attempt, tasks, ask):
            if isinstance(answer, errors.DlperfError):
                failures.append(answer)
            else:
                values.append(answer)
        if failures:
            raise errors.gravest(failures)
        return values

    def _answers(
        self, attempt: Attempt, tasks: Sequence[Task], ask: Callable[[Task], T]
    ) -> list[T | errors.DlperfError]:
        def answer(task: Task) -> T | errors.DlperfError:
            try:
                return ask(task)
            except errors.DlperfError as error:
                error.where.setdefault("node", task.node)
                return error

        pool = self._pool(attempt)
        futures = [pool.submit(partial(answer, task)) for task in tasks]
        return [future.result() for future in futures]

    def _pool(self, attempt: Attempt) -> Pool:
        """Return the attempt's own threads: a silent node delays no other attempt's end."""
        with self._lock:
            # Two more than nodes, so that stopping tasks need not wait for a silent node.
            fresh = Pool(min(MOST_AT_ONCE, len(attempt.tasks) + 2))
            return self._pools.setdefault(_key(attempt), fresh)

    def _close(self, attempt: Attempt) -> None:
        with self._lock:
            self._pools.pop(_key(attempt)).close()


def _key(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.sweep, attempt.trial, attempt.number


def _leftover(
    attempt: Attempt, left: list[tuple[Task, errors.DlperfError]]
) -> errors.LeftoverError:
    names = ", ".join(f"{attempt.token(task)} on {task.node}" for task, _ in left)
    causes = "; ".join(f"{task.node}: {error.cause}" for task, error in left)
    fixes = [error.fix for _, error in left if isinstance(error, errors.LeftoverError)]
    return errors.LeftoverError(
        f"it is not certain that {names} has ended ({causes})",
        code="LEFTOVER",
        fix="; ".join((*fixes, "`dlperf-orch stop` tries again, and so does the same command")),
        node=",".join(task.node for task, _ in left),
        trial=attempt.trial,
    )
