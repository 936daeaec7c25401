"""status: the states of a sweep's trials, and which of its tasks run where."""

import shlex
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from orchestrator import errors, nodeset, report, words, workloads
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import Which
from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.model.attempt import Attempt
from orchestrator.model.process import Holder
from orchestrator.model.result import NOT_NEEDED
from orchestrator.schedulers.scheduler import Scheduler, Seen
from orchestrator.state.store import Store
from orchestrator.submitting import jobs
from orchestrator.sweeping.observed_sweep import Running

OVER = ("absent", "ended", "lost")  # phases of tasks that do not go on
TAIL_BYTES = 64 << 10  # of a log, in which its last iteration is


@dataclass(frozen=True, slots=True)
class _TaskRow:
    """One task of an attempt that is open, as its node describes it now."""

    trial: str
    attempt: int
    node: str
    node_rank: int
    phase: str
    log_bytes: int
    name: str


@dataclass(frozen=True, slots=True)
class _Progress:
    """The last step in the log of a running trial."""

    trial: str
    attempt: int
    iteration: int
    iterations: int  # the last one that its log will show
    rate: float  # in samples per second, as its program prints it
    left_s: float | None  # until its last iteration at that rate; None if the rate is not positive


@dataclass(slots=True)
class _Look:
    """A sweep at one moment: its trials, and what nodes report about open ones."""

    running: Running
    holder: Holder | None
    states: Mapping[str, str] = field(default_factory=dict)
    rows: list[_TaskRow] = field(default_factory=list)
    going: list[_Progress] = field(default_factory=list)
    failures: list[errors.DlperfError] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """True if no controller runs and no task may still run."""
        return self.holder is None and all(row.phase in OVER for row in self.rows)


@command("status", "status --watch", "status smoke")
def status(
    face: Face,
    sweep_id: Which = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Repeat until nothing runs.")
    ] = False,
    every: Annotated[
        float,
        typer.Option(min=0.5, max=3600, metavar="S", help="Seconds between looks, with --watch."),
    ] = 5.0,
) -> int:
    store, voice = face.store, face.voice
    face.is_look = watch
    is_first = not watch and sweep_id is None and not store.sweeps()
    if queued := jobs.list_waiting(store) if is_first else []:  # will make the first sweep
        for job in queued:
            voice.result(job.summary)
        return voice.finish({"jobs": [asdict(job) for job in queued]})
    look = _look(Running.of(store, sweep_id))
    sweep_id = look.running.sweep.id  # do not switch to a newer sweep
    while watch and not look.over:
        if not voice.as_json:  # the last look alone is the document
            voice.clear()
            _print(store, look, voice)
        time.sleep(every)
        look = _look(Running.of(store, sweep_id))
    return _print(store, look, voice)


def _look(running: Running) -> _Look:
    """Look at a sweep now; a controller that begins or ends meanwhile counts as running."""
    lock = running.sweep.lock()
    found = _Look(running, lock.held_by())
    if open_attempts := running.sweep.open_attempts():
        with running.scheduler() as scheduler:
            for attempt in open_attempts:
                _look_at(attempt, scheduler, found)
        # An attempt may have ended meanwhile; its outcome is newer than these rows.
        still = {(attempt.trial, attempt.number) for attempt in running.sweep.open_attempts()}
        found.rows = [row for row in found.rows if (row.trial, row.attempt) in still]
        found.going = [it for it in found.going if (it.trial, it.attempt) in still]
    found.holder = found.holder or lock.held_by()
    found.states = running.states(controlled=found.holder is not None)
    return found


def _look_at(attempt: Attempt, scheduler: Scheduler, found: _Look) -> None:
    """Add the tasks and the progress of an open attempt to ``found``."""
    for task, answer in zip(attempt.tasks, scheduler.seen(attempt), strict=True):
        seen = answer.value or Seen("unknown", 0)  # its error says why
        if error := answer.error or seen.refusal:
            found.failures.append(error)
        at = (attempt.trial, attempt.number, task.node, task.node_rank)
        found.rows.append(_TaskRow(*at, seen.phase, seen.log_bytes, attempt.token(task)))
        if task.node_rank == attempt.log_rank and seen.phase == "running":
            try:
                going = _find_progress(found.running, scheduler, attempt, seen.log_bytes)
                found.going += [going] if going else []
            except errors.NodeError as error:  # though it has just answered
                found.failures.append(error)


def _find_progress(
    running: Running, scheduler: Scheduler, attempt: Attempt, log_bytes: int
) -> _Progress | None:
    """Return the progress of an attempt by the end of its log; None before its first iteration.

    Raises:
        NodeError: its node does not answer.
    """
    if (workload := workloads.find(running.plan.workload)) is None:
        return None
    task, begin = attempt.tasks[attempt.log_rank], max(0, log_bytes - TAIL_BYTES)
    tail = scheduler.read(attempt, task, f"r{task.node_rank}.log", begin) or b""
    if (step := workload.progress(tail[: tail.rfind(b"\n") + 1])) is None:
        return None
    (case,) = (trial.case for trial in running.plan.trials if trial.name == attempt.trial)
    (iteration, rate), last = step, workload.last_iteration(running.plan.method.iterations)
    left = (last - iteration) * case.global_batch_size / rate if rate > 0 else None
    return _Progress(attempt.trial, attempt.number, iteration, last, rate, left)


def _print(store: Store, look: _Look, voice: Voice) -> int:
    running, states = look.running, look.states
    try:
        so_far = measured(running.sweep)
    except errors.StoreError:  # `collect` reports it; `status` still shows what runs
        so_far = None
    queued = jobs.list_alive(store, running.cluster)
    summary = ", ".join(f"{count} {state}" for state, count in Counter(states.values()).items())
    voice.result(f"sweep {running.sweep.id} on cluster {running.cluster.name}: {summary}")
    is_complete = {*states.values()} <= {"valid", NOT_NEEDED}
    rest = None
    if not look.holder and not is_complete:
        # The sweep's last command line, without --new, which would start another sweep.
        *_, last = ("", *running.sweep.record().commands)
        again = shlex.join(word for word in shlex.split(last) if word != "--new")
        rest = again or f"dlperf-orch sweep {running.plan.experiment}"
    ended = f"no controller runs; {f'continue with: {rest}' if rest else 'nothing is left to run'}"
    voice.result(f"controller: {look.holder}" if look.holder else ended)
    for job in queued:
        voice.result(job.summary)
    for it in look.going:
        left = "" if it.left_s is None else f", about {words.duration(it.left_s)} left"
        at = f"iteration {it.iteration} of {it.iterations}, {it.rate:.2f} samples/s"
        voice.result(f"{it.trial} a{it.attempt}: {at}{left}")
    # Tasks of an attempt in the same phase share a line; --json lists each.
    alike: dict[tuple[str, str, str], list[_TaskRow]] = {}
    for row in look.rows:
        alike.setdefault((row.trial, str(row.attempt), row.phase), []).append(row)
    folded = [
        (*key, nodeset.fold(it.node for it in tasks), words.size(sum(it.log_bytes for it in tasks)))
        for key, tasks in alike.items()
    ]
    voice.table("Tasks", ("trial", "attempt", "phase", "nodes", "logs"), folded)
    medians = [it for it in so_far.results if it.statistics] if so_far else []
    if so_far and medians:
        (title, head, rows), _ = report.terminal_tables(so_far)
        voice.table(title.replace(so_far.source, "Medians so far"), head, rows, report_files.SPARE)
    document = {
        "sweep": running.sweep.id,
        "cluster": running.cluster.name,
        "controller": str(look.holder) if look.holder else None,
        "continue": rest,
        "trials": dict(states),
        "tasks": [asdict(row) for row in look.rows],
        "running": [asdict(it) for it in look.going],
        "medians": [
            {
                "case": dict(it.case.document()),
                "median": it.median,
                "trials_valid": len(it.valid),
                "trials_planned": sum(trial.state != NOT_NEEDED for trial in it.trials),
                "settled": it.settled,
            }
            for it in medians
        ],
        **({"jobs": [asdict(job) for job in queued]} if running.cluster.slurm else {}),
    }
    return voice.finish(document, look.failures)
