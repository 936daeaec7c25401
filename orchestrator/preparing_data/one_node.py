"""One node's preparation of a data set: started or resumed, watched, judged, moved into place."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from orchestrator import errors
from orchestrator.datasets import Way, judge, progress
from orchestrator.datasets.progress import DataProgress
from orchestrator.deadlines import (
    DATA_COMMAND_S,
    DATA_INSIST_S,
    DATA_SETTLE_S,
    DATA_SILENT_S,
)
from orchestrator.disk import on_disk
from orchestrator.fleet import Fleet
from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.preparing_data import held, plan
from orchestrator.preparing_data.plan import DataRequest, Planned
from orchestrator.runtimes.process import ProcessRuntime

LIMITS = Limits(time_s=7 * 86400, stall_s=7 * 86400, grace_s=10, create_s=60)
LOOK_S, WATCH_S = 0.05, 0.3
MOST_WORDS = 300


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """An attempt at a data set on a node."""

    attempt: Attempt
    task: Task
    runtime: ProcessRuntime
    way: Way


@dataclass(frozen=True, slots=True)
class Work:
    """The request and the progress that the preparations of all nodes share.

    Args:
        labels: by node name, the classes of validation images as the script wants it.
        owner: the record of who prepares it, for others who find the work on a node.
        logs: a folder here for the raw logs.
        stopping: whether a signal asked for the end.
        progress: by node name; written by the preparations, read by the progress line.
    """

    fleet: Fleet
    request: DataRequest
    labels: Mapping[str, bytes]
    owner: str
    logs: Path
    stopping: Callable[[], bool]
    progress: dict[str, DataProgress] = field(default_factory=dict)


def find_running(work: Work, planned: Planned) -> RunningAttempt | None:
    """Find an attempt of an earlier run that still runs, or ended well while unwatched.

    Raises:
        NodeError: the node does not answer.
    """
    number, ways = planned.observed.attempt, work.request.dataset.ways
    if not number:
        return None
    folder = f"{plan.home(planned.node, work.request.dataset)}/a{number}"
    index = work.fleet.transports[planned.node.name].get_own(f"{folder}/way") or b""
    if not index.isdigit() or int(index) >= len(ways):
        return None
    running = _running(work, planned, ways[int(index)], number)
    state = running.runtime.inspect(running.attempt, running.task)
    well = state.end is not None and (state.end.status, state.end.why) == (0, "exited")
    if state.phase == "running" or (state.phase == "ended" and well):
        return running
    running.runtime.remove(running.attempt, running.task)
    return None


def begin(work: Work, planned: Planned, nonce: str, running: RunningAttempt | None) -> str:
    """Create the folder that is filled, and claim it for one node.

    Args:
        nonce: the same for all nodes of this run.
        running: an attempt of an earlier run that goes on.

    Returns:
        The name of the node that does the work where several see one file system.

    Raises:
        UnfitError: it cannot be made.
    """
    node, dataset = planned.node, work.request.dataset
    way = "as it is"
    if running is None and planned.way is not None:
        way = str(dataset.ways.index(planned.way))
    arguments = (_partial(planned), dataset.name, node.name, nonce, way)
    answer = _shell(work, planned, "begin.sh", arguments)
    if answer.startswith("shared "):
        return answer.removeprefix("shared ").strip()
    if running is None and node.name in work.labels:
        path = f"{_partial(planned)}/notes/labels"
        work.fleet.transports[node.name].put(work.labels[node.name], path)
    return node.name


def prepare(work: Work, planned: Planned, running: RunningAttempt | None) -> str:
    """Do the work, or resume watching it; afterwards the data set lies at its path.

    Returns:
        What the data set holds, in words.

    Raises:
        UnfitError: it failed, or ended because it was asked to; what is done is kept.
        NodeError: the node is silent; the work goes on there.
    """
    name = planned.node.name
    if running is None:
        if work.stopping():
            raise errors.UnfitError("not begun", code="STOPPED", node=name)
        running = _start(work, planned)

    def tell(now: DataProgress) -> None:
        work.progress[name] = now

    log = work.logs / f"{name}.log"
    end = _Watch(running, log, work.stopping, tell).end()
    running.runtime.remove(running.attempt, running.task)
    try:
        _refuse_bad_end(running, end, log)
        contents = _refuse_bad_result(work, planned)
        _shell(work, planned, "settle.sh", (planned.observed.real, _partial(planned)))
    finally:
        home = plan.home(planned.node, work.request.dataset)
        work.fleet.transports[name].run(("rm", "-rf", "--", home), timeout_s=DATA_COMMAND_S)
    return contents


def script(name: str) -> str:
    """Return the text of a shipped script."""
    return resources.files("orchestrator.datasets").joinpath(name).read_text()


def _start(work: Work, planned: Planned) -> RunningAttempt:
    if planned.way is None:
        raise AssertionError("a node that is ready has a way")
    running = _running(work, planned, planned.way, planned.observed.attempt + 1)
    attempt, task, runtime = running.attempt, running.task, running.runtime
    index = str(work.request.dataset.ways.index(planned.way)).encode()
    work.fleet.transports[task.node].put(index, f"{attempt.folder(task)}/way")
    runtime.create(attempt, task, LIMITS)
    deadline = time.monotonic() + LIMITS.create_s
    while runtime.inspect(attempt, task).phase != "waiting":
        if time.monotonic() > deadline:
            runtime.remove(attempt, task)
            raise errors.UnfitError(
                f"{running.way.script} did not come to its start in {LIMITS.create_s:g} s",
                code="START",
                node=task.node,
                fix=f"look at {attempt.folder(task)} there",
            )
        time.sleep(LOOK_S)
    runtime.start(attempt, task)
    return running


def _running(work: Work, planned: Planned, way: Way, number: int) -> RunningAttempt:
    node, dataset = planned.node, work.request.dataset
    arguments = (_partial(planned), work.request.source or "", *way.words)
    argv = ("sh", "-c", script(way.script), way.script, *arguments)
    task = Task(node.name, 0, argv, {}, (), ())
    folders = {node.name: f"{plan.home(node, dataset)}/a{number}"}
    attempt = Attempt("data", f"{dataset.name}-{node.name}", number, folders, 0, (task,))
    runtime = ProcessRuntime(work.fleet.transports[node.name], work.owner)
    return RunningAttempt(attempt, task, runtime, way)


def _refuse_bad_end(running: RunningAttempt, end: TaskEnd, log: Path) -> None:
    node, text = running.task.node, log.read_text(errors="replace")
    if end.why == "stopped":
        raise errors.UnfitError("ended before it was done", code="STOPPED", node=node)
    script_problem = progress.problem(text)
    if (end.status, end.why) == (0, "exited") and not script_problem:
        return
    last = [line for line in text.splitlines() if line and not line.startswith("dlperf ")]
    last_line = last[-1].strip()[:MOST_WORDS] if last else "no message"
    ending = f"{running.way.script} ended with {end.status} ({end.why}): {last_line}"
    code, message = script_problem or ("DATA-TOOL", ending)
    fix = f"see {log}; run the same command to resume"
    raise errors.UnfitError(message, code=code, node=node, fix=fix)


def _refuse_bad_result(work: Work, planned: Planned) -> str:
    """Count the contents of the new data set; raise if programs could not read it."""
    dataset, node = work.request.dataset, planned.node
    path = f"{_partial(planned)}/set"
    seen = held.contents_of(work.fleet, dataset, node, path)
    judged = judge.judge(dataset, node.name, path, seen)
    broken = [finding for finding in judged if finding.severity == "error"]
    if broken:
        raise errors.UnfitError(
            f"{broken[0].seen}; needed {broken[0].expected}",
            code=broken[0].code,
            node=node.name,
            fix="complete the sources, and run the same command again",
        )
    return judge.counted(dataset, seen)


def _shell(work: Work, planned: Planned, name: str, words: tuple[str, ...]) -> str:
    """Run a shipped script on a node; its output.

    Raises:
        UnfitError: it failed; the message is its last line on standard error.
    """
    transport = work.fleet.transports[planned.node.name]
    done = transport.run(("sh", "-c", script(name), name, *words), timeout_s=DATA_SETTLE_S)
    if done.exit_code != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise errors.UnfitError(
            lines[-1] if lines else f"{name} ended with {done.exit_code}",
            code="DISK-FULL" if "No space left" in " ".join(lines) else "DATA-TARGET",
            node=planned.node.name,
            fix=f"look at {_partial(planned)} there",
        )
    return done.stdout.decode(errors="replace").strip()


def _partial(planned: Planned) -> str:
    return f"{planned.observed.real}.partial"


class _Watch:
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
                time.sleep(WATCH_S)

    def _look(self) -> TaskEnd | bytes | None:
        """Return new bytes of the log; None if there are none; the end once the log is read."""
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
