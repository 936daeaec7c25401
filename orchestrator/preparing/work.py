"""One node's preparation of a data set: begun or found again, judged, and put into place."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from orchestrator import errors
from orchestrator.datasets import SOURCE, Tool, Way, judge, progress
from orchestrator.datasets.progress import Progress
from orchestrator.deadlines import DATA_COMMAND_S, DATA_SETTLE_S
from orchestrator.fleet import Fleet
from orchestrator.inputs import yaml_files
from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.plan import Mount, Task
from orchestrator.preparing import held, plan
from orchestrator.preparing.plan import Asked, Planned
from orchestrator.preparing.watch import Running, Watch
from orchestrator.runtimes import Runtime
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.runtimes.settings import ContainerSettings

LIMITS = Limits(time_s=7 * 86400, stall_s=7 * 86400, grace_s=10, create_s=60)
LOOK_S = 0.05
MOST_WORDS = 300


@dataclass(frozen=True, slots=True)
class Work:
    """What all nodes' preparations have in common.

    Args:
        labels: by node name, the class of each validation image as the script wants it.
        logs: a folder here for the raw logs.
        stopping: whether a signal asked for the end.
        progress: by node name; written by the preparations, read by whoever shows it.
    """

    fleet: Fleet
    asked: Asked
    labels: Mapping[str, bytes]
    logs: Path
    stopping: Callable[[], bool]
    progress: dict[str, Progress] = field(default_factory=dict)


def left(work: Work, planned: Planned) -> Running | None:
    """What an earlier run began on the node and that still runs, or ended well, unseen.

    Raises:
        NodeError: the node does not answer.
    """
    number, ways = planned.found.attempt, work.asked.dataset.ways
    if not number:
        return None
    folder = f"{plan.home(planned.node, work.asked.dataset)}/a{number}"
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


def begin(work: Work, planned: Planned, nonce: str, running: Running | None) -> str:
    """Make the folder in which the data set comes to be.

    Args:
        nonce: the same for all nodes of this run.
        running: what works there already.

    Returns:
        The name of the node that does the work where several see one file system.

    Raises:
        UnfitError: it cannot be made.
    """
    node, dataset = planned.node, work.asked.dataset
    way = "as it is"
    if running is None and planned.way is not None:
        # What a tool was at when it ended, nobody can go on with.
        way = "anew" if planned.way.tool else str(dataset.ways.index(planned.way))
    words = (_partial(planned), dataset.name, node.name, nonce, way)
    said = _shell(work, planned, "begin.sh", words)
    if said.startswith("shared "):
        return said.removeprefix("shared ").strip()
    if running is None and node.name in work.labels:
        path = f"{_partial(planned)}/notes/labels"
        work.fleet.transports[node.name].put(work.labels[node.name], path)
    return node.name


def prepare(work: Work, planned: Planned, running: Running | None) -> str:
    """Do the work, or go on watching it; afterwards the data set has its place.

    Returns:
        What there is now, in words.

    Raises:
        UnfitError: it failed, or ended because it was asked to; what is done is kept.
        NodeError: the node is silent; the work goes on there.
    """
    name = planned.node.name
    if running is None:
        _refuse_once_stopped(work, name)
        running = _started(work, planned)

    def tell(now: Progress) -> None:
        work.progress[name] = now

    log = work.logs / f"{name}.log"
    end = Watch(running, log, work.stopping, tell).end()
    running.runtime.remove(running.attempt, running.task)
    try:
        _refuse_bad_end(running, end, log)
        words = _refuse_bad_result(work, planned)
        _shell(work, planned, "settle.sh", (planned.found.real, _partial(planned)))
    finally:
        home = plan.home(planned.node, work.asked.dataset)
        work.fleet.transports[name].run(("rm", "-rf", "--", home), timeout_s=DATA_COMMAND_S)
    return words


def script(name: str) -> str:
    """The text of a shipped script."""
    return resources.files("orchestrator.datasets").joinpath(name).read_text()


def _started(work: Work, planned: Planned) -> Running:
    if planned.way is None:
        raise AssertionError("a node that is ready has a way")
    running = _running(work, planned, planned.way, planned.found.attempt + 1)
    attempt, task, runtime = running.attempt, running.task, running.runtime
    index = str(work.asked.dataset.ways.index(planned.way)).encode()
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


def _running(work: Work, planned: Planned, way: Way, number: int) -> Running:
    node, dataset = planned.node, work.asked.dataset
    if way.tool is None:
        words = (_partial(planned), work.asked.source or "", *way.words)
        argv = ("sh", "-c", script(way.script), way.script, *words)
        task = Task(node.name, 0, argv, {}, (), ())
        runtime: Runtime = ProcessRuntime(work.fleet.transports[node.name])
    else:
        task = _in_container(work, planned, way, way.tool)
        record = work.asked.images.get(way.tool.image)
        access = work.fleet.cluster.container.gpu_access
        settings = ContainerSettings(record.id if record else "", gpu_access=access)
        runtime = work.fleet.containers_on(node.name, settings)
    folders = {node.name: f"{plan.home(node, dataset)}/a{number}"}
    attempt = Attempt("data", f"{dataset.name}-{node.name}", number, folders, 0, (task,))
    return Running(attempt, task, runtime, way)


def _in_container(work: Work, planned: Planned, way: Way, tool: Tool) -> Task:
    node = planned.node
    code = yaml_files.image(tool.image)[0].code
    places = tuple(place.format(code=code) for place in tool.places)
    argv = (
        *("sh", "-c", script(way.script), way.script, tool.target, str(tool.total)),
        *(tool.program, *places, "--", *tool.argv),
    )
    mounts = [Mount(f"{_partial(planned)}/set", tool.target, read_only=False)]
    if way.needs and work.asked.source is not None:
        mounts.append(Mount(work.asked.source, SOURCE, read_only=True))
    if way.after is not None:
        mounts.append(Mount(node.data[way.after], way.after_at, read_only=True))
    gpus = node.usable_gpus if tool.gpus else ()
    return Task(node.name, 0, argv, {}, tuple(mounts), gpus)


def _refuse_once_stopped(work: Work, node: str) -> None:
    if work.stopping():
        raise errors.UnfitError("not begun", code="STOPPED", node=node)


def _refuse_bad_end(running: Running, end: TaskEnd, log: Path) -> None:
    node, text = running.task.node, log.read_text(errors="replace")
    if end.why == "stopped":
        raise errors.UnfitError("ended before it was done", code="STOPPED", node=node)
    named = progress.problem(text)
    doubt = running.way.tool.doubt(text) if running.way.tool and end.status == 0 else ""
    if (end.status, end.why) == (0, "exited") and not (named or doubt):
        return
    last = [line for line in text.splitlines() if line and not line.startswith("dlperf ")]
    said = doubt or (last[-1].strip()[:MOST_WORDS] if last else "no word")
    how = f"{running.way.script} ended with {end.status} ({end.why}): {said}"
    code, words = named or ("DATA-TOOL", how)
    fix = f"see {log}; run the same command to resume"
    raise errors.UnfitError(words, code=code, node=node, fix=fix)


def _refuse_bad_result(work: Work, planned: Planned) -> str:
    """What came out, in words; an error if programs could not read it."""
    dataset, node = work.asked.dataset, planned.node
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
    """What a shipped script prints on a node.

    Raises:
        UnfitError: it failed, in its own words.
    """
    transport = work.fleet.transports[planned.node.name]
    done = transport.run(("sh", "-c", script(name), name, *words), timeout_s=DATA_SETTLE_S)
    if done.exit_code != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise errors.UnfitError(
            said[-1] if said else f"{name} ended with {done.exit_code}",
            code="DISK-FULL" if "No space left" in " ".join(said) else "DATA-TARGET",
            node=planned.node.name,
            fix=f"look at {_partial(planned)} there",
        )
    return done.stdout.decode(errors="replace").strip()


def _partial(planned: Planned) -> str:
    return f"{planned.found.real}.partial"
