"""One node's attempt at a data set, watched to its end; its raw log is kept on this machine."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors
from orchestrator.datasets import Way, progress
from orchestrator.datasets.progress import DataProgress
from orchestrator.deadlines import DATA_INSIST_S, DATA_SILENT_S
from orchestrator.disk import on_disk
from orchestrator.model.attempt import Attempt, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.runtimes.process import ProcessRuntime

LOOK_S = 0.3


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """An attempt at a data set on a node."""

    attempt: Attempt
    task: Task
    runtime: ProcessRuntime
    way: Way


class Watch:
    """Follows one attempt.

    Args:
        log: this machine's copy of its raw log.
        stopping: whether a signal asked for the end.
        tell: called with each new progress line.
    """

    def __init__(
        self,
        running: RunningAttempt,
        log: Path,
        stopping: Callable[[], bool],
        tell: Callable[[DataProgress], None],
    ) -> None:
        self._running, self._log = running, log
        self._stopping, self._tell = stopping, tell
        self._size = 0
        self._heard = time.monotonic()
        self._stopped_at: float | None = None

    def end(self) -> TaskEnd:
        """Wait for its end; after a signal, stop it first, then remove it.

        Raises:
            NodeError: the node is silent; the work goes on there.
            UnfitError: it was removed while it ran.
            StoreError, LocalError: its log cannot be written here; the work goes on there.
        """
        with on_disk(self._log):
            self._log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._log.write_bytes(b"")
        while True:
            try:
                seen = self._look()
            except errors.NodeError as error:
                self._bear(error)
                seen = None
            if isinstance(seen, TaskEnd):
                return seen
            if seen is None:
                time.sleep(LOOK_S)

    def _look(self) -> TaskEnd | bytes | None:
        """The end, once the log is read whole; else the log's new bytes, or None."""
        attempt, task, runtime = self._running.attempt, self._running.task, self._running.runtime
        state = runtime.inspect(attempt, task)
        piece = runtime.output(attempt, task, self._size)
        self._heard = time.monotonic()
        if piece:
            self._keep(piece)
            return piece
        if state.end is not None:
            return state.end
        if state.phase == "absent":
            raise errors.UnfitError(
                "the work was removed while it ran",
                code="STOPPED",
                node=task.node,
                fix="see who did it, and run the same command to resume",
            )
        self._stop_after_signal()
        return None

    def _stop_after_signal(self) -> None:
        attempt, task, runtime = self._running.attempt, self._running.task, self._running.runtime
        if not self._stopping():
            return
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
            runtime.stop(attempt, task)
        elif time.monotonic() - self._stopped_at > DATA_INSIST_S:
            self._stopped_at = time.monotonic()
            runtime.remove(attempt, task)

    def _keep(self, piece: bytes) -> None:
        with on_disk(self._log), self._log.open("ab") as file:
            file.write(piece)
        self._size += len(piece)
        if now := progress.last(piece.decode(errors="replace")):
            self._tell(now)

    def _bear(self, error: errors.NodeError) -> None:
        """Raise the error once the node was silent too long, or a signal came."""
        if self._stopping() or time.monotonic() - self._heard > DATA_SILENT_S:
            error.fix = "it keeps running there; the same command finds it once the node answers"
            raise error
