"""Measures a log and compares it with its case: the rules that make a trial invalid."""

from dataclasses import dataclass

from orchestrator import errors
from orchestrator.measuring import measure
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.result import Evidence, Measurement


@dataclass(frozen=True, slots=True)
class LogName:
    """The trial that a log is of, and the log's path as reports show it."""

    trial: str
    repeat: int
    path: str


def judged(log: TrainingLog, trial: Trial, method: Method, path: str) -> Measurement:
    """The measurement of a trial's log; invalid with problems, or valid, maybe with marks."""
    return of_case(log, trial.case, method, LogName(trial.name, trial.repeat, path))


def of_case(log: TrainingLog, case: Case, method: Method | None, name: LogName) -> Measurement:
    """As ``judged``, of a log that belongs to no sweep if ``method`` is None."""
    marks = tuple(problem for problem in log.problems if not measure.keeps_out(problem))
    problems = [problem for problem in log.problems if measure.keeps_out(problem)]
    problems += measure.mismatches(log, case, method)
    throughput, rate_problems = value(log, case.global_batch_size, method.rule if method else None)
    if measure.global_batch_size(log) not in (None, case.global_batch_size):
        throughput, rate_problems = None, []  # a problem already, and no batch can be trusted
    problems += rate_problems
    return Measurement(
        trial=name.trial,
        repeat=name.repeat,
        attempt=0,
        state="invalid" if problems else "valid",
        throughput=throughput,
        rate=log.rate.mean if log.rate else None,
        problems=tuple(problems),
        marks=marks,
        evidence=Evidence(name.path, log.evidence, log.sha256, log.digest),
        provenance={},
        latency_s=log.latency_s,
        memory_mib=log.memory_mib,
    )


def value(
    log: TrainingLog, batch: int | None, rule: Rule | None
) -> tuple[float | None, list[Problem]]:
    """Throughput in samples/s by a rule, and problems that the log itself does not report yet.

    Args:
        batch: global batch size; None where neither header nor case has it.
        rule: None for the log's own.
    """
    if log.runs > 1 or (log.steps == 0 and log.rule != "reported"):
        return None, []
    rule_used = rule or log.rule
    try:
        value = measure.throughput(log, batch, rule_used)
    except errors.LogError as error:
        reported = {problem.code for problem in log.problems}
        cause = {"NO-CLOCK", "NOT-FINITE"} & reported
        again = error.code in reported or (error.code == "WINDOW" and cause)
        return None, [] if again else [Problem(error.code, error.cause)]
    mismatch = measure.rate_problem(log, batch, rule_used)
    return value, [mismatch] if mismatch else []
