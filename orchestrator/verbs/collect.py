"""collect: logs to medians, speedups, tables and reports; offline and repeatable."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import errors, measure, report, workloads
from orchestrator.console import Voice
from orchestrator.model.case import Case
from orchestrator.model.facts import JSON
from orchestrator.model.log import Rule
from orchestrator.model.plan import Plan, TrialPlan
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import Measurement, Result
from orchestrator.model.site import Site
from orchestrator.report import Language
from orchestrator.store import Store, Sweep
from orchestrator.verbs import _fabric, _folder, _known, _logs, _surroundings, _written
from orchestrator.verbs._logs import Reading
from orchestrator.workloads import Workload

PLAN = TypeAdapter(Plan)
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
    sweeps = store.sweeps()
    if sweep_id is None and not sweeps:
        raise errors.UsageError(
            f"no sweep in {store.root}", code="NO-SWEEP", fix="run `dlperf-orch sweep PLAYBOOK`"
        )
    sweep = store.sweep(sweep_id) if sweep_id else sweeps[0]
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
    try:
        plan = PLAN.validate_python(record["plan"], strict=False)
        site = TypeAdapter(Site).validate_python(record["site"], strict=False)
    except (KeyError, ValueError) as error:
        raise errors.StoreError(
            f"{sweep.folder}/sweep.json does not read: {str(error).splitlines()[0]}",
            code="STORE-DAMAGED",
            fix="start anew with sweep --new; the logs are untouched",
        ) from error
    workload = workloads.find(plan.workload)
    if workload is None:
        raise errors.StoreError(
            f"sweep {sweep.id} is of workload {plan.workload}, which is not installed",
            code="NO-WORKLOAD",
        )
    sums = _sums(sweep)
    trials = measure.same_evidence(
        [_trial(sweep, plan, trial, workload, sums) for trial in plan.trials]
    )
    by_case: dict[Case, list[Measurement]] = {}
    for trial, measurement in zip(plan.trials, trials, strict=True):
        by_case.setdefault(trial.case, []).append(measurement)
    results = measure.compared([measure.result(*item) for item in by_case.items()])
    return _report(sweep, plan, site, workload, results)


def _report(
    sweep: Sweep, plan: Plan, site: Site, workload: Workload, results: tuple[Result, ...]
) -> Report:
    planned = max((trial.repeat for trial in plan.trials), default=0)
    found = Report(
        source=sweep.id,
        title=workload.title,
        experiment=plan.experiment,
        workload=plan.workload,
        unit=workload.unit,
        window=plan.method.window,
        rule=plan.method.rule or measured_by(workload, plan.method.window),
        method=plan.method.model_copy(update={"repeats": planned}),
        trials_planned=planned,
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
    sweep: Sweep, plan: Plan, trial: TrialPlan, workload: Workload, sums: Mapping[str, set[str]]
) -> Measurement:
    outcome = sweep.outcome(trial.log)
    if outcome is None:
        missing = Problem("MISSING", "it has not been run")
        return Measurement(
            trial.name, trial.repeat, 0, "planned", None, None, (missing,), (), None, {}
        )
    path = sweep.log(trial.log)
    if outcome.get("state") not in ("valid", "invalid") or not path.exists():
        return _unmeasured(trial, outcome)
    log = _logs.read(path, workload, plan.method.window)
    provenance = outcome.get("provenance")
    found = _logs.judged(log, trial, plan.method, str(path.relative_to(sweep.folder)))
    if outcome.get("trial") != trial.name or log.sha256 not in sums.get(trial.name, ()):
        changed = Problem("LOG-CHANGED", "its sha256 is not the one that was taken when it ran")
        found = _also(found, changed)
    for problem in _kept(outcome):
        if problem.code in NOT_IN_LOGS:
            found = _also(found, problem)
    attempt = _whole(outcome.get("attempt"))
    if len(trial.tasks) > 1:
        folder = sweep.attempt_folder(trial.name, attempt)
        found = _fabric.proved(found, trial, _fabric.seen(folder, trial.tasks, workload))
    known = provenance.items() if isinstance(provenance, Mapping) else ()
    return replace(found, attempt=attempt, provenance={key: str(value) for key, value in known})


def _also(found: Measurement, problem: Problem) -> Measurement:
    return replace(found, state="invalid", problems=(*found.problems, problem))


def _kept(outcome: Mapping[str, JSON]) -> tuple[Problem, ...]:
    said = outcome.get("problems")
    return tuple(
        Problem(str(each.get("code")), str(each.get("message")))
        for each in (said if isinstance(said, list) else [])
        if isinstance(each, dict)
    )


def _sums(sweep: Sweep) -> dict[str, set[str]]:
    """By trial, the sha256 of every log that an outcome was taken from."""
    sums: dict[str, set[str]] = {}
    for event in sweep.events():
        if event["event"] == "outcome":
            sums.setdefault(str(event.get("trial")), set()).add(str(event.get("sha256")))
    return sums


def _unmeasured(trial: TrialPlan, outcome: Mapping[str, JSON]) -> Measurement:
    problems = _kept(outcome)
    return Measurement(
        trial.name,
        trial.repeat,
        _whole(outcome.get("attempt")),
        "invalid" if outcome.get("state") == "valid" else str(outcome.get("state")),
        None,
        None,
        problems or (Problem("MISSING", "its log is gone"),),
        (),
        None,
        {},
    )


def _whole(value: JSON) -> int:
    return value if isinstance(value, int) else 0


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
            voice.line(f"{lone.path}: {problem.code}: {problem.message}")
