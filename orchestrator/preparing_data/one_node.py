"""One node's preparation of a data set: started or resumed, watched, judged, moved into place."""

import time
from collections.abc import Callable
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
        owner: the record of who prepares it, for others who find the work on a node.
        logs: a folder here for the raw logs.
        stopping: whether a signal asked for the end.
        progress: by node name; written by the preparations, read by the progress line.
    """

    fleet: Fleet
    request: DataRequest
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
    index = work.fleet.transports[planned.node.name].get(f"{folder}/way", own=True) or b""
    if not index.isdigit() or int(index) >= len(ways):
        return None
    running = _bind(work, planned, ways[int(index)], number)
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
    if running is None and planned.labels:
        path = f"{_partial(planned)}/notes/labels"
        work.fleet.transports[node.name].put(planned.labels, path)
    return node.name


def prepare(work: Work, planned: Planned, running: RunningAttempt | None) -> str:
    """Do the work, or resume watching it; afterwards the data set lies at its path.

    Returns:
        What the data set holds, in words.

    Raises:
        UnfitError: it failed, or ended because it was asked to; what is done is kept.
        NodeError: the node is silent; the work goes on there.
    """
    name, dataset = planned.node.name, work.request.dataset
    if running is None:
        if work.stopping():
            raise errors.UnfitError("not begun", code="STOPPED", node=name)
        running = _start(work, planned)
    log = work.logs / f"{name}.log"
    end = _watch(work, running, log)
    running.runtime.remove(running.attempt, running.task)
    try:
        _refuse_bad_end(running, end, log)
        path = f"{_partial(planned)}/set"
        contents = held.contents_of(work.fleet, dataset, planned.node, path)
        for finding in judge.judge(dataset, name, path, contents):
            if finding.severity == "error":
                raise errors.UnfitError(
                    f"{finding.seen}; needed {finding.expected}",
                    code=finding.code,
                    node=name,
                    fix="complete the sources, and run the same command again",
                )
        _shell(work, planned, "settle.sh", (planned.observed.real, _partial(planned)))
    finally:
        home = plan.home(planned.node, dataset)
        work.fleet.transports[name].run(("rm", "-rf", "--", home), timeout_s=DATA_COMMAND_S)
    return judge.counted(dataset, contents)


def script(name: str) -> str:
    return resources.files("orchestrator.datasets").joinpath(name).read_text()


def _start(work: Work, planned: Planned) -> RunningAttempt:
    if planned.way is None:
        raise AssertionError("a node that is ready has a way")
    running = _bind(work, planned, planned.way, planned.observed.attempt + 1)
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


def _bind(work: Work, planned: Planned, way: Way, number: int) -> RunningAttempt:
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


def _shell(work: Work, planned: Planned, name: str, words: tuple[str, ...]) -> str:
    """Run a shipped script on a node; return its output.

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


def _watch(work: Work, running: RunningAttempt, log: Path) -> TaskEnd:
    """Wait for the end of an attempt; after a signal, stop it first, then remove it.

    Args:
        log: this machine's copy of its raw log.

    Raises:
        NodeError: the node is silent; the work goes on there.
        UnfitError: it was removed while it ran.
        StoreError, LocalError: its log cannot be written here; the work goes on there.
    """
    attempt, task, runtime = running.attempt, running.task, running.runtime
    size, stopped_at = 0, 0.0
    heard = time.monotonic()
    with on_disk(log):
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        log.write_bytes(b"")
    while True:
        try:
            state = runtime.inspect(attempt, task)
            piece = runtime.output(attempt, task, size)
            heard = time.monotonic()
            if not piece and state.phase == "running" and work.stopping():
                stopped_at = _stop(running, stopped_at)
        except errors.NodeError as error:
            if work.stopping() or time.monotonic() - heard > DATA_SILENT_S:
                error.fix = (
                    "it keeps running there; the same command finds it once the node answers"
                )
                raise
            time.sleep(WATCH_S)
            continue
        if piece:
            with on_disk(log), log.open("ab") as file:
                file.write(piece)
            size += len(piece)
            if now := progress.last(piece.decode(errors="replace")):
                work.progress[task.node] = now
            continue
        if state.end is not None:
            return state.end
        if state.phase == "absent":
            raise errors.UnfitError(
                "the work was removed while it ran",
                code="STOPPED",
                node=task.node,
                fix="see who did it, and run the same command to resume",
            )
        time.sleep(WATCH_S)


def _stop(running: RunningAttempt, stopped_at: float) -> float:
    """Stop an attempt, or remove one that was asked to stop too long ago; return when."""
    now = time.monotonic()
    if not stopped_at:
        running.runtime.stop(running.attempt, running.task)
    elif now - stopped_at > DATA_INSIST_S:
        running.runtime.remove(running.attempt, running.task)
    else:
        return stopped_at
    return now
