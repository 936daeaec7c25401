"""status: the states of a sweep's trials, and which of its tasks run where."""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from orchestrator import errors, nodeset, report, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import Which
from orchestrator.collecting import report_files
from orchestrator.console import Voice
from orchestrator.model.attempt import Attempt
from orchestrator.model.process import Holder
from orchestrator.model.result import NOT_NEEDED
from orchestrator.schedulers import Seen
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.state.store import Store
from orchestrator.submitting import jobs
from orchestrator.sweeping import progress
from orchestrator.sweeping.observed_sweep import Running

OVER = ("absent", "ended", "lost")  # phases of tasks that do not go on


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


@dataclass(slots=True)
class _Look:
    """A sweep at one moment: its trials, and what its nodes say of those that are open."""

    running: Running
    holder: Holder | None
    states: Mapping[str, str] = field(default_factory=dict)
    rows: list[_TaskRow] = field(default_factory=list)
    going: list[progress.Progress] = field(default_factory=list)
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
    if watch:
        face.is_look = True
        return _watch(store, sweep_id, voice, every)
    queued = jobs.list_waiting(store) if sweep_id is None and not store.sweeps() else []
    for job in queued:  # which are to make the first sweep, and of which Slurm has begun none
        voice.result(job.summary)
    if queued:
        return voice.finish({"jobs": [asdict(job) for job in queued]})
    return _print(store, _look(Running.of(store, sweep_id)), voice)


def _watch(store: Store, sweep_id: str | None, voice: Voice, every_s: float) -> int:
    """Show the same again and again until no controller and no task is left; exit code.

    With ``as_json`` nothing is shown before the last look, which is the document.
    """
    sweep_id = Running.of(store, sweep_id).sweep.id  # a newer sweep is another one
    while True:
        look = _look(Running.of(store, sweep_id))
        if look.over:
            return _print(store, look, voice)
        if not voice.as_json:
            voice.clear()
            _print(store, look, voice)
        time.sleep(every_s)


def _print(store: Store, look: _Look, voice: Voice) -> int:
    running, states = look.running, look.states
    so_far = progress.results(running)
    queued = jobs.list_alive(store, running.cluster)
    counts = {state: list(states.values()).count(state) for state in dict.fromkeys(states.values())}
    summary = ", ".join(f"{count} {state}" for state, count in counts.items())
    voice.result(f"sweep {running.sweep.id} on cluster {running.cluster.name}: {summary}")
    voice.result(f"controller: {look.holder}" if look.holder else _describe_rest(running, states))
    for job in queued:
        voice.result(job.summary)
    for progress_now in look.going:
        voice.result(progress_now.words())
    _show_tasks(voice, look.rows)
    medians = [it for it in so_far.results if it.statistics] if so_far else []
    if so_far and medians:
        (title, head, rows), _ = report.terminal_tables(so_far)
        voice.table(title.replace(so_far.source, "Medians so far"), head, rows, report_files.SPARE)
    document = {
        "sweep": running.sweep.id,
        "cluster": running.cluster.name,
        "controller": str(look.holder) if look.holder else None,
        "continue": None if look.holder or _are_valid(states) else _build_command(running),
        "trials": dict(states),
        "tasks": [asdict(row) for row in look.rows],
        "running": [progress_now.document() for progress_now in look.going],
        "medians": [progress.document(median) for median in medians],
        **({"jobs": [asdict(job) for job in queued]} if running.cluster.slurm else {}),
    }
    return voice.finish(document, look.failures)


def _show_tasks(voice: Voice, rows: Sequence[_TaskRow]) -> None:
    """Show a line for the tasks of an attempt that are equally far; --json has each."""
    alike: dict[tuple[str, str, str], list[_TaskRow]] = {}
    for row in rows:
        alike.setdefault((row.trial, str(row.attempt), row.phase), []).append(row)
    folded = [
        (*key, nodeset.fold(it.node for it in tasks), words.size(sum(it.log_bytes for it in tasks)))
        for key, tasks in alike.items()
    ]
    voice.table("Tasks", ("trial", "attempt", "phase", "nodes", "logs"), folded)


def _describe_rest(running: Running, states: Mapping[str, str]) -> str:
    if _are_valid(states):
        needed = " that is needed" if NOT_NEEDED in states.values() else ""
        return f"not running; every trial{needed} is valid"
    unfinished = [trial for trial, state in states.items() if state == "open"]
    names = unfinished[0] if len(unfinished) == 1 else words.count(len(unfinished), "trial")
    seen = f"its controller ended before {names} had an outcome"
    return f"{seen if unfinished else 'not running'}; continue with: {_build_command(running)}"


def _are_valid(states: Mapping[str, str]) -> bool:
    return set(states.values()) <= {"valid", NOT_NEEDED}


def _build_command(running: Running) -> str:
    """Return the sweep's last command line without ``--new``, which would start another sweep."""
    *_, last = ("", *running.sweep.record().commands)
    words_again = [word for word in shlex.split(last) if word != "--new"]
    return shlex.join(words_again) or f"dlperf-orch sweep {running.plan.experiment}"


def _look(running: Running) -> _Look:
    """Look at a sweep now; a controller that begins or ends meanwhile counts as there."""
    lock = running.sweep.lock()
    found = _Look(running, lock.held_by())
    if open_attempts := running.sweep.open_attempts():
        with running.scheduler() as scheduler:
            for attempt in open_attempts:
                _look_at(attempt, scheduler, found)
        # An attempt may have ended meanwhile; then only its outcome is true.
        still = {(attempt.trial, attempt.number) for attempt in running.sweep.open_attempts()}
        found.rows = [row for row in found.rows if (row.trial, row.attempt) in still]
        found.going = [it for it in found.going if (it.trial, it.attempt) in still]
    found.holder = found.holder or lock.held_by()
    found.states = running.states(controlled=found.holder is not None)
    return found


def _look_at(attempt: Attempt, scheduler: Scheduler, found: _Look) -> None:
    """Add the tasks of an open attempt, and how far it is, to what was found."""
    answers = scheduler.seen(attempt)
    for answer in answers:
        error = answer.error or (answer.value and answer.value.refusal)
        found.failures += [error] if error else []
    tasks = {task.node: task for task in attempt.tasks}
    own = []
    for answer in answers:
        task, seen = tasks[answer.node], answer.value or Seen("unknown", 0)  # its error says why
        at = (attempt.trial, attempt.number, task.node, task.node_rank)
        own.append(_TaskRow(*at, seen.phase, seen.log_bytes, attempt.token(task)))
    found.rows += own
    sizes = {row.node_rank: row.log_bytes for row in own if row.phase == "running"}
    if attempt.log_rank in sizes:
        try:
            going = progress.of(found.running, scheduler, attempt, sizes[attempt.log_rank])
            found.going += [going] if going else []
        except errors.NodeError as error:  # it answered just before
            found.failures.append(error)
