"""What a log says, measured and judged against its case: the rules that make a trial invalid."""

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
class Named:
    """Which trial a log is of, and how the log is called in reports."""

    trial: str
    repeat: int
    path: str


def judged(log: TrainingLog, trial: Trial, method: Method, path: str) -> Measurement:
    """A trial's log, measured and judged against its case."""
    return of_case(log, trial.case, method, Named(trial.name, trial.repeat, path))


def of_case(log: TrainingLog, case: Case, method: Method | None, who: Named) -> Measurement:
    marks = tuple(problem for problem in log.problems if not measure.keeps_out(problem))
    problems = [problem for problem in log.problems if measure.keeps_out(problem)]
    problems += measure.mismatches(log, case, method)
    throughput, more = value(log, case.global_batch_size, method.rule if method else None)
    if measure.global_batch_size(log) not in (None, case.global_batch_size):
        throughput, more = None, []  # a problem already, and no batch can be trusted
    problems += more
    return Measurement(
        trial=who.trial,
        repeat=who.repeat,
        attempt=0,
        state="invalid" if problems else "valid",
        throughput=throughput,
        rate=log.rate.mean if log.rate else None,
        problems=tuple(problems),
        marks=marks,
        evidence=Evidence(who.path, log.evidence, log.sha256, log.digest),
        provenance={},
        latency_s=log.latency_s,
        memory_mib=log.memory_mib,
    )


def value(
    log: TrainingLog, batch: int | None, rule: Rule | None
) -> tuple[float | None, list[Problem]]:
    """Throughput by a rule, or why there is none; no second word where one was said."""
    if log.runs > 1 or (log.steps == 0 and log.rule != "reported"):
        return None, []
    asked = rule or log.rule
    try:
        value = measure.throughput(log, batch, asked)
    except errors.LogError as error:
        said = {problem.code for problem in log.problems}
        cause = {"NO-CLOCK", "NOT-FINITE"} & said
        again = error.code in said or (error.code == "WINDOW" and cause)
        return None, [] if again else [Problem(error.code, error.cause)]
    mismatch = measure.rate_problem(log, batch, asked)
    return value, [mismatch] if mismatch else []
