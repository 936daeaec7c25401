"""collect: logs to medians, speedups, tables and reports; offline and repeatable."""

from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors, measure, report, words, workloads
from orchestrator.console import Voice
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.history import History
from orchestrator.model.log import Rule
from orchestrator.model.outcome import Outcome
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import Measurement, Result
from orchestrator.model.sweep import SweepRecord
from orchestrator.report import Language
from orchestrator.store import Store, Sweep
from orchestrator.verbs import _evidence, _fabric, _folder, _known, _logs, _surroundings, _written
from orchestrator.verbs._logs import Reading
from orchestrator.workloads import Workload

NOT_IN_LOGS = frozenset({"CODE-CHANGED"})  # what was seen when it ran, and no log can tell


@dataclass(frozen=True, slots=True)
class Out:
    """Where reports on a folder of logs are written, and in which language report.md is."""

    folder: Path
    language: Language


def collect_sweep(
    store: Store, sweep_id: str | None, voice: Voice, language: Language = "en"
) -> int:
    """Measure a sweep again from its logs, write its reports, show the table; exit code."""
    sweep = store.sweep(sweep_id) if sweep_id else store.newest()
    return present(sweep, measured(sweep), voice, language=language)


def collect_logs(folder: Path, reading: Reading, voice: Voice, out: Out | None) -> int:
    """Measure a folder of logs that no sweep of ours made; exit code."""
    how = reading.found()
    found = _folder.report_on(folder, how, reading.window)
    found = _known.completed(found, how)
    voice.results(found)
    _say_reasons(found, voice)
    if out is not None:
        _written.reports(out.folder, found, out.language)
        voice.result(f"Report: {out.folder / 'report.md'}")
    code = 3 if found.incomplete else 0
    voice.document({"exit_code": code, **report.document(found)})
    return code


def present(
    sweep: Sweep,
    found: Report,
    voice: Voice,
    wanted: frozenset[str] | None = None,
    *,
    language: Language = "en",
) -> int:
    """Write a sweep's reports, show its table and where they are; exit code.

    Args:
        wanted: names of the trials that the exit code is about; None for all.
        language: of report.md.
    """
    _written.reports(sweep.folder, found, language)
    if found.shared_machine:
        voice.result(report.SHARED_MACHINE)
    voice.results(found)
    _say_reasons(found, voice)
    voice.result(f"Report: {sweep.folder / 'report.md'}")
    trials = [trial for result in found.results for trial in result.trials]
    asked = [trial for trial in trials if wanted is None or trial.trial in wanted]
    code = 3 if any(trial.state != "valid" for trial in asked) else 0
    voice.document({"exit_code": code, "sweep": sweep.id, **report.document(found)})
    return code


def measured(sweep: Sweep) -> Report:
    """Everything that a sweep's folder gives, measured from its raw logs.

    Raises:
        StoreError: the folder is damaged.
    """
    record = sweep.record()
    plan = record.plan
    workload = workloads.find(plan.workload)
    if workload is None:
        raise errors.StoreError(
            f"sweep {sweep.id} is of workload {plan.workload}, which is not installed",
            code="NO-WORKLOAD",
        )
    known = sweep.histories()
    trials = measure.same_evidence(
        [
            _trial(sweep, plan.method, trial, workload, known.get(trial.name, History()))
            for trial in plan.trials
        ]
    )
    by_case: dict[Case, list[Measurement]] = {}
    for trial, measurement in zip(plan.trials, trials, strict=True):
        by_case.setdefault(trial.case, []).append(measurement)
    results = measure.compared([measure.result(*item) for item in by_case.items()])
    return _report(record, workload, results)


def _report(record: SweepRecord, workload: Workload, results: tuple[Result, ...]) -> Report:
    plan, site = record.plan, record.site
    repeats = max((trial.repeat for trial in plan.trials), default=0)
    counts = {len(result.trials) for result in results}
    found = Report(
        source=record.id,
        title=workload.title,
        experiment=plan.experiment,
        workload=plan.workload,
        unit=workload.unit,
        window=plan.method.window,
        rule=plan.method.rule or measured_by(workload, plan.method.window),
        method=plan.method.model_copy(update={"repeats": repeats}),
        trials_planned=repeats if counts == {repeats} else None,
        cluster=plan.cluster,
        image=plan.image,
        image_digest=plan.image_digest,
        shared_machine=site.shared_machine,
        environment={name: _surroundings.rows(facts) for name, facts in site.nodes.items()},
        topologies=_surroundings.topologies(site),
        peak_tflops=_surroundings.peak_tflops(site),
        results=results,
        lone=(),
        names={trial.case: trial.name_of_case for trial in plan.trials if trial.name_of_case},
    )
    return _known.completed(found, workload)


def measured_by(workload: Workload, window: tuple[int, int] | None) -> Rule:
    """How the workload's logs are measured over a window, where nothing else was said."""
    return workload.read((), window).rule


def _trial(
    sweep: Sweep, method: Method, trial: Trial, workload: Workload, history: History
) -> Measurement:
    kept = _evidence.kept(sweep, trial, history)
    outcome = kept.outcome
    if outcome is None and not kept.problems:
        missing = Problem("MISSING", "it has not been run")
        return _unmeasured(trial, 0, "planned", (missing,))
    if outcome is None:
        return _unmeasured(trial, 0, "invalid", kept.problems)
    path = sweep.log(trial.log)
    if outcome.state not in ("valid", "invalid") or not path.is_file():
        state = "invalid" if outcome.state == "valid" else outcome.state
        problems = (*kept.problems, *outcome.problems)
        return _unmeasured(trial, outcome.attempt, state, problems)
    log = _logs.read(path, workload, method.window)
    found = _logs.judged(log, trial, method, str(path.relative_to(sweep.folder)))
    if trial.case.nodes > 1 and not kept.problems:  # only logs that are what they were prove it
        found = _proved(sweep, found, workload, outcome)
    more = (*kept.problems, *(each for each in outcome.problems if each.code in NOT_IN_LOGS))
    return replace(
        found,
        state="invalid" if more else found.state,
        problems=(*found.problems, *more),
        attempt=outcome.attempt,
        provenance=outcome.provenance,
        nodes=tuple(end.node for end in outcome.tasks),
    )


def _proved(sweep: Sweep, found: Measurement, workload: Workload, outcome: Outcome) -> Measurement:
    try:
        attempt = sweep.attempt(outcome.trial, outcome.attempt)
    except errors.StoreError as error:
        changed = Problem("OUTCOME-CHANGED", f"its outcome does not count: {error.cause}")
        return replace(found, state="invalid", problems=(*found.problems, changed))
    folder = sweep.attempt_folder(outcome.trial, outcome.attempt)
    return _fabric.proved(found, attempt, _fabric.seen(folder, attempt.tasks, workload))


def _unmeasured(
    trial: Trial, attempt: int, state: str, problems: tuple[Problem, ...]
) -> Measurement:
    return Measurement(trial.name, trial.repeat, attempt, state, None, None, problems, (), None, {})


def _say_reasons(found: Report, voice: Voice) -> None:
    trials = [trial for result in found.results for trial in result.trials]
    for trial in trials:
        for problem in (*trial.problems, *trial.marks):
            if trial.state != "planned":
                voice.line(f"{trial.trial}: {trial.state}: {problem.code}: {problem.message}")
    missing = sum(trial.state == "planned" for trial in trials)
    if missing:
        voice.line(f"{missing} of {len(trials)} planned trials have not been run")
    for lone in found.lone:
        for problem in lone.problems:
            path = words.printable(lone.path)
            voice.line(f"{path}: {problem.code}: {problem.message}")
