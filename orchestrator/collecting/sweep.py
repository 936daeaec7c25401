"""A sweep's report, measured from the raw logs in its folder."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from orchestrator import __version__, errors, workloads
from orchestrator.collecting import evidence, logs, nodes_seen, package
from orchestrator.collecting.evidence import KeptOutcome
from orchestrator.measuring import medians, published, settling, validity
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import TrainingLog
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report, Writer
from orchestrator.model.result import NOT_NEEDED, Measurement, Result
from orchestrator.model.sweep import History, SweepRecord
from orchestrator.model.text import env_texts
from orchestrator.report import node_facts
from orchestrator.state.sweep import Sweep
from orchestrator.workloads import Workload

NOT_IN_LOGS = frozenset({"CODE-CHANGED"})  # seen when it ran, and in no log
_LOGS: dict[tuple[object, ...], TrainingLog] = {}  # of this command, by what they are read from


def measured(sweep: Sweep, *, strict: bool = False) -> Report:
    """Measure a sweep from the raw logs in its folder, and return the report on it.

    Args:
        strict: trials that the state of their nodes marks do not count.

    Raises:
        StoreError: STORE-DAMAGED; or NO-WORKLOAD, its workload is not installed.
    """
    record = sweep.record()
    plan, workload = record.plan, workloads.find(record.plan.workload)
    if workload is None:
        raise errors.StoreError(
            f"sweep {sweep.id} is of workload {plan.workload}, which is not installed",
            code="NO-WORKLOAD",
        )
    histories = sweep.histories()
    rests = evidence.not_needed(sweep, plan, histories)
    measurements = [
        Measurement(trial.name, trial.repeat, 0, NOT_NEEDED, None, ())
        if trial.name in rests
        else measure_trial(
            *(sweep, plan.method, trial, workload),
            evidence.check_outcome(sweep, trial, histories.get(trial.name, History())),
        )
        for trial in plan.trials
    ]
    if strict:
        measurements = [nodes_seen.strict(measurement) for measurement in measurements]
    by_case: dict[Case, list[Measurement]] = {}
    canaries: list[tuple[Trial, Measurement]] = []
    for trial, measurement in zip(plan.trials, validity.same_evidence(measurements), strict=True):
        if trial.canary:
            canaries.append((trial, measurement))
        else:
            by_case.setdefault(trial.case, []).append(measurement)
    results = medians.compared(
        [settling.mark_unsettled(medians.result(*item), plan.method) for item in by_case.items()]
    )
    watched = None
    if canaries:
        case, places = canaries[0][0].case, [trial.canary for trial, _ in canaries]
        result = next((result for result in results if result.case == case), None)
        watched = medians.judge_canary(case, places, [trial for _, trial in canaries], result)
    return replace(
        _build_report(record, workload, results),
        canary=watched,
        writer=Writer(__version__, package.digest(plan.workload), strict),
        ran_s=_count_seconds(histories.values()),
    )


def _count_seconds(histories: Iterable[History]) -> float | None:
    """Return for how many seconds at least one attempt ran."""
    spans = sorted(span for history in histories for span in history.spans() if all(span))
    total, until = timedelta(), datetime.min.replace(tzinfo=UTC)
    for begin, end in (map(datetime.fromisoformat, span) for span in spans):
        total += max(end - max(begin, until), timedelta())
        until = max(until, end)
    return total.total_seconds() if spans else None


def _build_report(record: SweepRecord, workload: Workload, results: tuple[Result, ...]) -> Report:
    plan, site, method = record.plan, record.site, record.plan.method
    most_repeats = max((trial.repeat for trial in plan.trials if not trial.canary), default=0)
    are_equal = {len(result.trials) for result in results} == {most_repeats}
    experiment = record.inputs.get("experiment")
    own_env = experiment.get("env", {}) if isinstance(experiment, dict) else {}
    # By its method, else by what its logs chose, else by what the workload chooses without a log.
    rules = {method.rule} if method.rule else set()
    rules = rules or {it.log.rule for result in results for it in result.trials if it.log}
    rule, *others = rules or {workload.read((), method.window).rule}
    draft = Report(
        source=record.id,
        title=workload.title,
        experiment=plan.experiment,
        workload=plan.workload,
        unit=workload.unit,
        window=method.window,
        rule=None if others else rule,
        method=method.with_most(most_repeats),
        trials_planned=most_repeats if isinstance(method.repeats, int) and are_equal else None,
        cluster=plan.cluster,
        image=plan.image,
        image_digest=plan.image_digest,
        shared_machine=site.shared_machine,
        environment={name: node_facts.rows(facts) for name, facts in site.nodes.items()},
        topologies=node_facts.topologies(site),
        added_env={**env_texts(record.inventory.env), **env_texts(own_env)},
        gpus=node_facts.gpu_models(site),
        results=results,
        findings=site.findings,
        created=record.created,
        commands=record.commands,
        written_by=record.written_by,
        names={trial.case: trial.name_of_case for trial in plan.trials if trial.name_of_case},
    )
    return published.complete_report(draft, workload, package.published_results())


def _read_once(sweep: Sweep, trial: Trial, workload: Workload, method: Method) -> TrainingLog:
    """Read the log of a trial, in a sweep for its outcome and its report together."""
    path = sweep.log(trial.log)
    key = evidence.sha256(path), workload.name, method.window
    if key[0] is None or key not in _LOGS:
        _LOGS[key] = logs.read(path, workload, method.window)
    return _LOGS[key]


def measure_trial(
    sweep: Sweep, method: Method, trial: Trial, workload: Workload, kept: KeptOutcome
) -> Measurement:
    """Measure a trial by the logs of its attempt that counts."""
    outcome = kept.outcome
    if outcome is None:
        state = "invalid" if kept.problems else "planned"
        problems = kept.problems or (Problem("MISSING", "it has not been run"),)
        return Measurement(trial.name, trial.repeat, 0, state, None, problems)
    path = sweep.log(trial.log)
    if outcome.state not in ("valid", "invalid") or not path.is_file():
        state = "invalid" if outcome.state == "valid" else outcome.state
        problems = (*kept.problems, *outcome.problems)
        return Measurement(trial.name, trial.repeat, outcome.attempt, state, None, problems)
    measurement = validity.measure_log(
        _read_once(sweep, trial, workload, method),
        trial.case,
        method,
        trial=trial.name,
        repeat=trial.repeat,
        path=str(path.relative_to(sweep.folder)),
    )
    folder = sweep.attempt_folder(outcome.trial, outcome.attempt)
    if trial.case.nodes > 1 and not kept.problems:  # only logs that are what they were prove it
        try:
            attempt = sweep.attempt(outcome.trial, outcome.attempt)
        except errors.StoreError as error:
            changed = evidence.outcome_changed(error.cause)
            measurement = measurement.with_problems([changed])
        else:
            measurement = nodes_seen.add_transport(measurement, attempt, folder, workload)
    measurement = nodes_seen.add_state(measurement, folder, outcome)
    as_it_ran = [problem for problem in outcome.problems if problem.code in NOT_IN_LOGS]
    return replace(
        measurement.with_problems((*kept.problems, *as_it_ran)),
        attempt=outcome.attempt,
        provenance=outcome.provenance,
        nodes=tuple(end.node for end in outcome.tasks),
        beside=outcome.beside,
    )
