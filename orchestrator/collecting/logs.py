"""One log to one measurement: read, measured, and judged against its case."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from orchestrator import errors
from orchestrator.inputs import yaml_files
from orchestrator.measuring import measure
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.result import Evidence, Measurement
from orchestrator.workloads import Workload

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """How logs are read that belong to no sweep.

    Args:
        workload: by its name.
        window: None for what each log's reader chooses.
        rule: None for what is usual for each log.
    """

    workload: str
    window: tuple[int, int] | None
    rule: Rule | None

    def found(self) -> Workload:
        """The workload, its logs measured by the rule asked for.

        Raises:
            UsageError: there is none of that name, or its logs cannot be measured so.
        """
        how, rule = yaml_files.workload(self.workload), self.rule
        if rule is None:
            return how
        if rule not in how.rules:
            raise errors.UsageError(
                f"logs of {how.name} cannot be measured by {rule}",
                code="NO-RULE",
                fix=f"needed {' or '.join(sorted(how.rules))}",
            )

        def read_so(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
            return replace(how.read(chunks, window), rule=rule)

        return replace(how, read=read_so)


@dataclass(frozen=True, slots=True)
class Named:
    """Which trial a log is of, and how the log is called in reports."""

    trial: str
    repeat: int
    path: str


def read(path: Path, workload: Workload, window: tuple[int, int] | None) -> TrainingLog:
    """What a log says.

    Raises:
        LogError: the file cannot be read at all.
    """
    try:
        with open(path, "rb") as file:
            return workload.read(chunks(file), window)
    except OSError as error:
        raise errors.LogError(f"{path}: {error.strerror}", code="READ") from error


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """A file in pieces, so that its size does not matter."""
    return iter(lambda: file.read(CHUNK_BYTES), b"")


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
