"""One gang over several nodes: started together, ended together."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from orchestrator import errors
from orchestrator.fleet import MOST_AT_ONCE, Answer, Pool, ask_all, settled
from orchestrator.model.attempt import Attempt, GangEnd, Limits
from orchestrator.model.plan import Task
from orchestrator.retries import REPEATABLE
from orchestrator.runtimes import Runtime
from orchestrator.schedulers import Watch
from orchestrator.schedulers._wait import Wait

# Between two looks at tasks that come to their gates: at first, and at most; in between a share of
# what they have taken so far.
QUICK_S, CALM_S, SHARE = 0.003, 0.05, 0.25
T = TypeVar("T")


class Gangs:
    """Implements the part of ``Scheduler`` that runs gangs; all nodes are called at the same time.

    Args:
        runtimes: by node name.
        stopping: polled while a gang runs; once true, the gang is ended.
    """

    def __init__(self, runtimes: Mapping[str, Runtime], stopping: Callable[[], bool]) -> None:
        self._runtimes, self._stopping = runtimes, stopping

    def launch(self, attempt: Attempt, limits: Limits) -> bool:
        tasks: Sequence[Task] = attempt.tasks
        settled(self._ask_all(tasks, lambda at, task: at.create(attempt, task, limits)))
        began = time.monotonic()
        # Who waits at its gate stays there, or is missed when it is opened: nobody looks again.
        while coming := self._find_coming(attempt, tasks):
            gone = any(phase in ("lost", "ended") for _, phase in coming)
            waited_s = time.monotonic() - began
            if gone or waited_s > limits.create_s or self._stopping():
                return False
            tasks = tuple(task for task, _ in coming)
            time.sleep(min(max(QUICK_S, SHARE * waited_s), CALM_S))
        opened = self._ask_all(attempt.tasks, lambda at, task: at.start(attempt, task))
        settled(opened)
        return all(answer.value for answer in opened)

    def wait(self, attempt: Attempt, limits: Limits, watch: Watch) -> GangEnd:
        """Watch the gang until all of it has ended; the first task that fails ends the others.

        A node without an answer for 12 s is given up, and after 10 s one whose engine alone is
        silent; what it runs is not known then.
        """
        # Two more than nodes, so that stopping tasks need not wait for a silent node.
        pool = Pool(min(MOST_AT_ONCE, len(attempt.tasks) + 2))
        try:
            return Wait(attempt, limits, self._runtimes, pool).run(watch, self._stopping)
        finally:
            pool.close()

    def adoptable(self, attempt: Attempt) -> bool:
        states = self._ask_all(
            attempt.tasks,
            lambda at, task: REPEATABLE.call(lambda: at.inspect(attempt, task)),
        )
        settled(states)
        return all(
            state.phase == "running"
            or (state.phase == "ended" and state.end is not None and state.end.went_at is not None)
            for state in (answer.checked() for answer in states)
        )

    def clear(self, attempt: Attempt) -> None:
        answers = self._ask_all(
            attempt.tasks, lambda at, task: REPEATABLE.call(lambda: at.remove(attempt, task))
        )
        left = {answer.node: answer.error for answer in answers if answer.error is not None}
        if left:
            raise _leftover(attempt, left)

    def _find_coming(self, attempt: Attempt, tasks: Sequence[Task]) -> list[tuple[Task, str]]:
        states = self._ask_all(tasks, lambda at, task: at.inspect(attempt, task))
        settled(states)
        phases = ((task, at.checked().phase) for task, at in zip(tasks, states, strict=True))
        return [(task, phase) for task, phase in phases if phase != "waiting"]

    def _ask_all(self, tasks: Sequence[Task], ask: Callable[[Runtime, Task], T]) -> list[Answer[T]]:
        by_node = {task.node: task for task in tasks}
        return ask_all(list(by_node), lambda node: ask(self._runtimes[node], by_node[node]))


def _leftover(attempt: Attempt, left: Mapping[str, errors.DlperfError]) -> errors.LeftoverError:
    tasks = [task for task in attempt.tasks if task.node in left]
    names = ", ".join(f"{attempt.token(task)} on {task.node}" for task in tasks)
    causes = "; ".join(f"{node}: {error.cause}" for node, error in left.items())
    fixes = [error.fix for error in left.values() if isinstance(error, errors.LeftoverError)]
    return errors.LeftoverError(
        f"it is not certain that {names} has ended ({causes})",
        code="LEFTOVER",
        fix="; ".join((*fixes, "`dlperf-orch stop` tries again, and so does the same command")),
        node=",".join(left),
        trial=attempt.trial,
    )
