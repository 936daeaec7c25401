"""How the number of one case came to be, gathered from a sweep's records and raw logs."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from orchestrator import errors, words
from orchestrator.collecting import logs
from orchestrator.collecting.folder import located
from orchestrator.collecting.sweep import measured
from orchestrator.disk import on_disk
from orchestrator.model.attempt import Attempt
from orchestrator.model.case import Case
from orchestrator.model.log import SECOND_NS, Rule, TrainingLog
from orchestrator.model.plan import Trial
from orchestrator.model.report import Report
from orchestrator.model.result import Measurement, Result
from orchestrator.planning import plan
from orchestrator.report import labels
from orchestrator.state.sweep import Sweep
from orchestrator.workloads import Workload, find

LONGEST_LINE = 4096
MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line as it stands in a raw log; numbers count from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """The derivation of a trial's throughput from its log.

    Args:
        lines: that it stands on, in their order.
        formula: with the numbers put in.
    """

    trial: Measurement
    rule: Rule
    window: tuple[int, int] | None
    lines: tuple[RawLine, ...]
    formula: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about the number of one case.

    Args:
        name: as reports call it, such as ``4x8``.
        middle: the valid trials that the median is, or is the mean of.
        derivations: of these.
        baseline: the 1x1 case that the speedup is taken over.
        attempt: of the first of them, whose command line is shown; None where it has none.
    """

    report: Report
    result: Result
    name: str
    middle: tuple[Measurement, ...]
    derivations: tuple[Derivation, ...]
    baseline: Result | None
    attempt: Attempt | None


@dataclass(frozen=True, slots=True)
class Source:
    """The folder of a report's logs and the settings they were read with."""

    folder: Path
    workload: Workload
    window: tuple[int, int] | None
    rule: Rule | None


def explained(sweep: Sweep, name: str) -> Explanation:
    """Derive the number of the one case that fits a name.

    Raises:
        UsageError: NO-CASE, CASE-AMBIGUOUS.
        StoreError: a record is damaged.
    """
    record = sweep.record()
    case = _case([trial for trial in record.plan.trials if not trial.canary], name)
    report = measured(sweep)
    workload, method = find(record.plan.workload), record.plan.method
    assert workload is not None  # or nothing could be measured
    found = _explained(report, case, Source(sweep.folder, workload, method.window, method.rule))
    shown = next(iter(found.middle), next((it for it in found.result.trials if it.attempt), None))
    return replace(found, attempt=sweep.attempt(shown.trial, shown.attempt) if shown else None)


def of_logs(report: Report, source: Source, name: str) -> Explanation:
    """Derive the number of a case in a folder of logs that belong to no sweep.

    Raises:
        UsageError: as of ``explained``.
    """
    trials = [
        Trial(it.trial, it.repeat, result.case, it.trial, 0, 0, report.names.get(result.case, ""))
        for result in report.results
        for it in result.trials
    ]
    return _explained(report, _case(trials, name, [lone.path for lone in report.lone]), source)


def _explained(report: Report, case: Case, source: Source) -> Explanation:
    (result,) = (it for it in report.results if it.case == case)
    middle = _middle(result)
    return Explanation(
        report=report,
        result=result,
        name=labels.of_case(report, result),
        middle=middle,
        derivations=tuple(_derivation(source, trial, case) for trial in middle),
        baseline=_baseline(report, result),
        attempt=None,
    )


def _path(case: Case) -> str:
    """Return placement, precision and batch, such as ``4n8g/amp/256``."""
    return f"{case.token}/{case.precision}/{case.micro_batch_size}"


def _case(trials: Sequence[Trial], name: str, lone: Sequence[str] = ()) -> Case:
    parts, called = name.split("/"), _names(trials)
    cases = dict.fromkeys(
        trial.case
        for trial in trials
        if plan.selected([trial], [name])
        or name == called[trial.case]
        or parts == _path(trial.case).split("/")[: len(parts)]
    )
    if len(cases) == 1:
        return next(iter(cases))
    if cases:
        fitting = ", ".join(shlex.quote(called[case]) for case in cases)
        raise errors.UsageError(
            f"{words.shown(name)} fits {words.count(len(cases), 'case')}: {fitting}",
            code="CASE-AMBIGUOUS",
            fix="give one of these names, or the name of a trial",
        )
    every = list(called.values())
    listed = ", ".join(map(shlex.quote, every)) or "none"
    known = [listed, *([f"logs of no case: {', '.join(lone)}"] if lone else [])]
    raise errors.UsageError(
        f"no case {words.shown(name)}; there are {'; '.join(known)}",
        code="NO-CASE",
        fix=words.did_you_mean(name, [*every, *map(_path, called), *lone])
        or (
            "one of these names, a placement such as 4x8, or the name of a trial"
            if every
            else "give the name of one of these logs"
        ),
    )


def _names(trials: Iterable[Trial]) -> dict[Case, str]:
    """Name each case as reports do; of several with one name, by the name of the first trial."""
    first = {trial.case: trial for trial in reversed([*trials])}
    cases = [*reversed(first)]
    own = {case: first[case].name_of_case or labels.among(cases, case) for case in cases}
    times = Counter(own.values())
    return {case: name if times[name] == 1 else first[case].name for case, name in own.items()}


def _middle(result: Result) -> tuple[Measurement, ...]:
    """The valid trial that the median is, or the two that it is the mean of, lowest first."""
    ordered = sorted(result.valid, key=lambda trial: trial.throughput or 0)
    return tuple(ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1])


def _baseline(report: Report, result: Result) -> Result | None:
    if result.speedup is None:
        return None
    alike = [it for it in report.results if it.case.comparable == result.case.comparable]
    return next(it for it in reversed(alike) if it.case.world_size == 1 and it.statistics)


def _derivation(source: Source, trial: Measurement, case: Case) -> Derivation:
    assert trial.evidence is not None  # of a valid trial
    path, workload = located(source.folder, trial.evidence.log), source.workload
    log = logs.read(path, workload, source.window)
    rule = source.rule or log.rule
    found = raw_lines(path, workload, replace(log, sha256=trial.evidence.sha256), rule)
    terms = formula(rule, log, case.global_batch_size, trial.throughput or 0)
    return Derivation(trial, rule, log.window, found, f"{terms} {workload.unit}")


def formula(rule: Rule, log: TrainingLog, batch: int | None, throughput: float) -> str:
    """The rule's formula with its numbers; the seconds to their last digit.

    Args:
        batch: global batch size; None where the rule does not need it.
    """
    first, last = log.window or (0, 0)
    if rule == "clock" and log.start and log.end:
        seconds = _exact(log.end.clock_ns - log.start.clock_ns)
        terms = f"{batch} samples x ({last} - {first}) iterations / {seconds} s"
    elif rule == "latency":
        terms = f"{batch} samples / {log.latency_s:.9g} s, the mean of these rows and between"
    elif rule in ("rates", "arithmetic"):
        mean = "harmonic" if rule == "rates" else "arithmetic"
        terms = f"the {mean} mean of the rates printed from iteration {first} to {last}"
    else:
        terms = "what the program reports itself"
    return f"{terms} = {throughput:.2f}"


def _exact(nanoseconds: int) -> str:
    whole = Fraction(nanoseconds, SECOND_NS)
    seconds, rest = divmod(nanoseconds, SECOND_NS)
    return str(seconds) if whole.denominator == 1 else f"{seconds}.{rest:09}".rstrip("0")


def raw_lines(path: Path, workload: Workload, log: TrainingLog, rule: Rule) -> tuple[RawLine, ...]:
    """Return the lines of a raw log that its number comes from.

    Of a mean over printed rows that are all rows, if they are few; else the first and the last.

    Args:
        log: with the sha256 of what the number was taken from.

    Raises:
        LocalError: LOG-RIGHTS, it cannot be read any more; LOG-CHANGED, it is not that log.
    """
    first, last = log.evidence(rule) or (0, 0)
    is_mean, digest, found = rule in ("latency", "rates"), hashlib.sha256(), []
    with on_disk(path, "LOG-RIGHTS", "make it readable for this user"), open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            digest.update(line)
            is_row = is_mean and first < number < last and workload.progress(line) is not None
            if number in (first, last) or is_row:
                text = line.rstrip(b"\r\n")[:LONGEST_LINE].decode("utf-8", "backslashreplace")
                found.append(RawLine(number, text))
    if digest.hexdigest() != log.sha256:
        raise errors.LocalError(
            f"{path} changed while its number was explained",
            code="LOG-CHANGED",
            fix="run the command again",
        )
    return tuple(found if len(found) <= MOST_ROWS else (found[0], found[-1]))
