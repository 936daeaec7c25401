"""Launch a gang over several nodes, watch it, and end its tasks together.

All nodes are polled, and a silent one delays no other.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from orchestrator import errors
from orchestrator.deadlines import ENGINE_LOST_S, NODE_LOST_S
from orchestrator.fleet import MOST_AT_ONCE, Answer, Pool, ask_all, settled
from orchestrator.model.attempt import Attempt, GangEnd, Limits, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.runtimes import Runtime, TaskState

# Seconds between two polls before all tasks are at their gates: least, most, and in between this
# share of the time waited so far.
GATE_S, GATES_S, SHARE = 0.003, 0.05, 0.25
LOOK_S, CALM_S = 0.01, 0.2  # between two looks at a node: while a gang is young, and later
SHARE_S = 0.005  # at least, per node; a poll over SSH takes a fourth of that here
GATHER_S = 0.00001  # per node, to gather answers and take them together
AGAIN_S = 0.5  # between two looks at a node that gave no answer
YOUNG_S = 2.0
PEERS_S = 2.0  # from the first failure until others are ended; they may log its cause
BEHIND_BYTES = 8 << 20  # of an ended task's log; a longer rest is copied later
T = TypeVar("T")
Watch = Callable[[bytes], None]
"""Called with every new piece of the raw log that is measured."""


def ask_tasks(
    runtime: Callable[[str], Runtime],
    tasks: Sequence[Task],
    ask: Callable[[Runtime, Task], T],
    *,
    again: bool = False,
) -> list[Answer[T]]:
    """Ask the runtime of each task's node at the same time, leader first; repeat if ``again``."""
    by_node = {task.node: task for task in tasks}
    return ask_all(list(by_node), lambda node: ask(runtime(node), by_node[node]), again=again)


def launch(
    attempt: Attempt,
    limits: Limits,
    runtime: Callable[[str], Runtime],
    stopping: Callable[[], bool],
) -> bool:
    """Bring every task to its gate, then open all gates; return False if a task did not.

    After False or an error, tasks may wait at their gates or run until they are removed.
    """
    tasks: Sequence[Task] = attempt.tasks
    settled(ask_tasks(runtime, tasks, lambda at, task: at.create(attempt, task, limits)))
    began = time.monotonic()
    while True:
        states = ask_tasks(runtime, tasks, lambda at, task: at.inspect(attempt, task))
        settled(states)
        phases = {state.node: state.checked().phase for state in states}
        # Do not poll a waiting task again: it stays, or opening its gate reports that it is gone.
        tasks = [task for task in tasks if phases[task.node] != "waiting"]
        if not tasks:
            break
        waited_s = time.monotonic() - began
        gone = {"lost", "ended"} & {*phases.values()}
        if gone or waited_s > limits.create_s or stopping():
            return False
        time.sleep(min(max(GATE_S, SHARE * waited_s), GATES_S))
    opened = ask_tasks(runtime, attempt.tasks, lambda at, task: at.start(attempt, task))
    settled(opened)
    return all(answer.value for answer in opened)


@dataclass(slots=True)
class _Watched:
    task: Task
    unheard_since: float | None = None  # when its node was first polled without an answer
    silence: str = ""  # how the task ends if its engine alone stays silent
    rests_until: float = 0.0  # its node is not polled before
    read: int = 0
    pending: "Future[tuple[bytes, TaskState]] | None" = None
    end: TaskEnd | None = None

    def unknown_end(self, why: str) -> TaskEnd:
        return TaskEnd(self.task.node, self.task.node_rank, None, why, 0, "", None)


class Gang:
    """Watches one gang until all of it has ended; the first task that fails ends the others.

    Args:
        lost_s: seconds without an answer until a node is given up; 12 s once the gang is to end,
            and 10 s if only its engine is silent. What such a node runs is unknown.
    """

    def __init__(
        self,
        attempt: Attempt,
        limits: Limits,
        runtime: Callable[[str], Runtime],
        lost_s: float = NODE_LOST_S,
    ) -> None:
        self._attempt, self._limits, self._lost_s = attempt, limits, lost_s
        self._runtime = runtime
        # Two more than nodes, so that stopping tasks need not wait for a silent node.
        self.pool = Pool(min(MOST_AT_ONCE, len(attempt.tasks) + 2))
        self._began = self._grew = self._turned = time.monotonic()
        self._watched = [_Watched(task) for task in attempt.tasks]
        self._answered = threading.Event()
        self._reason = ""
        self._served = False
        self._first: TaskEnd | None = None
        self._insisted_at = self._began
        self._asks_at: float | None = None  # when to ask what still runs to end

    def run(self, watch: Watch, stopping: Callable[[], bool]) -> GangEnd:
        with contextlib.closing(self.pool):
            while any(watched.end is None for watched in self._watched):
                self._leave_out_pause()
                young = time.monotonic() - self._began < YOUNG_S
                pause_s = max(CALM_S, SHARE_S * len(self._watched))
                if pause_s == CALM_S and (young or self._reason or self._served):
                    pause_s = LOOK_S
                for watched in self._watched:
                    if watched.end is None:
                        self._look(watched, watch, pause_s)
                self._judge(stopping)
                if self._answered.wait(pause_s):
                    time.sleep(GATHER_S * len(self._watched))
                self._answered.clear()
        ends = tuple(watched.end for watched in self._watched if watched.end is not None)
        # Ending a task for its long log makes others fail, and their ends may be seen first.
        flooded = next((end for end in ends if end.why == "log-too-large"), None)
        reason = flooded.why if flooded else self._reason or "done"
        return GangEnd(reason, ends, first=flooded or self._first)

    def _leave_out_pause(self) -> None:
        """Do not count time in which this process was suspended, as by Ctrl-Z, as silence."""
        before, self._turned = self._turned, time.monotonic()
        if (stood_s := self._turned - before) > NODE_LOST_S:
            self._began, self._grew = self._began + stood_s, self._grew + stood_s
            for watched in self._watched:
                if watched.unheard_since is not None:
                    watched.unheard_since = self._turned

    def _look(self, watched: _Watched, watch: Watch, pause_s: float) -> None:
        """Take an answer that has come, or poll; do not block."""
        now = time.monotonic()
        if watched.pending is None and now > watched.rests_until:
            watched.pending = self.pool.submit(partial(self._ask, watched))
            watched.pending.add_done_callback(lambda _: self._answered.set())
        elif watched.pending is not None and watched.pending.done():
            answer, watched.pending = watched.pending, None
            error = answer.exception()
            if error is None:
                watched.unheard_since, watched.silence = None, ""
                watched.rests_until = now + pause_s
                self._take(watched, answer.result(), watch)
            elif not isinstance(error, errors.NodeError):
                raise error
            else:
                watched.rests_until = now + AGAIN_S
                engine = "docker-hung" if error.code == "DOCKER-HUNG" else "docker-down"
                watched.silence = engine if error.code.startswith("DOCKER-") else ""
        since = watched.unheard_since
        lost_s = NODE_LOST_S if self._reason else self._lost_s
        patience_s = ENGINE_LOST_S if watched.silence else lost_s
        if watched.end is None and since is not None and now - since > patience_s:
            self._end(watched, watched.unknown_end(watched.silence or "unreachable"))

    def _ask(self, watched: _Watched) -> tuple[bytes, TaskState]:
        """Read the state before the log, so that the log of an ended task is complete."""
        if watched.unheard_since is None:  # not earlier: the poll may have waited in the pool
            watched.unheard_since = time.monotonic()
        task, runtime = watched.task, self._runtime(watched.task.node)
        state = runtime.inspect(self._attempt, task)
        return runtime.output(self._attempt, task, watched.read), state

    def _take(self, watched: _Watched, answer: tuple[bytes, TaskState], watch: Watch) -> None:
        piece, state = answer
        if piece:
            watched.read += len(piece)
            self._grew = time.monotonic()
            if watched.task.node_rank == self._attempt.log_rank:
                watch(piece)
        if state.phase == "absent":
            self._end(watched, watched.unknown_end("lost"))
        elif state.end is not None:
            left = state.end.size_bytes - watched.read  # by the size that its supervisor gave
            if not piece or (state.end.sha256 and (left <= 0 or left > BEHIND_BYTES)):
                self._end(watched, state.end)

    def _end(self, watched: _Watched, end: TaskEnd) -> None:
        watched.end = end
        if self._reason or (watched.task.service and self._served):
            return
        if end.status == 0 and end.why == "exited" and not watched.task.service:
            return
        # A stop that this program did not ask for, and a task on an unreachable node, are losses.
        self._first = end
        lost = {"stopped": "lost", "unreachable": "lost", "exited": "failed"}
        self._stop(lost.get(end.why, end.why))

    def _judge(self, stopping: Callable[[], bool]) -> None:
        now = time.monotonic()
        if self._asks_at is not None:
            if now >= self._asks_at or stopping():
                self._ask_to_end()
        elif self._reason or self._served:
            # Remove tasks that did not end within the grace, and again after each further grace.
            if now - self._insisted_at > self._limits.grace_s + 5.0:
                self._insisted_at = now
                self._tell(lambda task: self._runtime(task.node).remove(self._attempt, task))
        elif all(watched.end or watched.task.service for watched in self._watched):
            self._served = True  # only services are left, and nobody uses them
            self._ask_to_end()
        elif stopping():
            self._stop("stopped")
        elif now - self._grew > self._limits.stall_s:
            self._stop("stalled")
        elif now - self._began > self._limits.time_s + self._limits.grace_s:
            self._stop("deadline")  # the supervisors should have done it; insist from here

    def _stop(self, reason: str) -> None:
        self._reason = reason
        self._asks_at = time.monotonic() + (PEERS_S if reason == "failed" else 0.0)

    def _ask_to_end(self) -> None:
        self._asks_at, self._insisted_at = None, time.monotonic()
        self._tell(lambda task: self._runtime(task.node).stop(self._attempt, task))

    def _tell(self, say: Callable[[Task], None]) -> None:
        """Call ``say`` for every task that runs, in the background; polling shows its effect."""
        for watched in self._watched:
            if watched.end is None:
                self.pool.submit(partial(say, watched.task))
