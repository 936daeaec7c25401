"""Explain the number of one case, or of one log that belongs to no case."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

from pydantic_core import to_jsonable_python

from orchestrator import errors, nodeset, words, workloads
from orchestrator.collecting.folder import locate
from orchestrator.collecting.sweep import measured
from orchestrator.disk import on_disk
from orchestrator.model.attempt import Attempt
from orchestrator.model.case import Case
from orchestrator.model.facts import JSON
from orchestrator.model.log import Rule, global_batch_size
from orchestrator.model.plan import Trial
from orchestrator.model.report import LoneLog, Report
from orchestrator.model.result import Evidence, Measurement, Result
from orchestrator.planning import plan
from orchestrator.report import case_document, interval_words, labels, of_trials
from orchestrator.state.sweep import Sweep
from orchestrator.workloads import Workload

LONGEST_LINE = 4096
MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one number.

    Args:
        number: None if there is none.
        page: lines of any length; a terminal wraps them.
        document: the same for programs, with every line and digit.
    """

    number: float | None
    page: Sequence[str]
    document: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class _Derivation:
    """The derivation of a throughput from a log.

    Args:
        lines: of the log that it is computed from, by number from 1; none without a throughput.
        formula: with the numbers put in; empty likewise.
    """

    trial: str
    log: str
    sha256: str
    rule: Rule | None
    window: tuple[int, int] | None
    lines: Mapping[int, str]
    formula: str

    def heading(self) -> str:
        between = f", iterations {self.window[0]} to {self.window[1]}" if self.window else ""
        return f"rule {self.rule}{between}"

    def page(self) -> list[str]:
        lines = [f"  {number}: {text}" for number, text in self.lines.items()]
        return [*lines, f"  {self.formula}"] if self.formula else lines

    def document(self) -> dict[str, object]:
        lines = [{"number": number, "text": text} for number, text in self.lines.items()]
        return {**asdict(self), "lines": lines}


def explain_sweep(sweep: Sweep, name: str) -> Explanation:
    """Derive the number of the one case of a sweep that fits a name.

    Raises:
        UsageError: NO-CASE, CASE-AMBIGUOUS.
        StoreError: a record is damaged.
    """
    trials = [trial for trial in sweep.record().plan.trials if not trial.canary]
    return _explain_case(measured(sweep), _find_case(trials, name, ()), sweep.folder, sweep)


def explain_logs(report: Report, folder: Path, name: str) -> Explanation:
    """Derive the number of a case in a folder of logs, or of one log that belongs to no case.

    Raises:
        UsageError: as of ``explain_sweep``.
    """
    lone = [it for it in report.lone if it.path == name] or [
        it for it in report.lone if PurePath(it.path).name == name
    ]
    if len(lone) == 1:
        return _explain_log(report, lone[0], folder)
    trials = [
        Trial(it.trial, it.repeat, result.case, it.trial, 0, 0, report.names.get(result.case, ""))
        for result in report.results
        for it in result.trials
    ]
    case = _find_case(trials, name, [it.path for it in report.lone])
    return _explain_case(report, case, folder, None)


def _find_case(trials: Sequence[Trial], name: str, lone: Sequence[str]) -> Case:
    """Find the one case with a name, a path such as ``4n8g/amp/256``, or a trial's name."""
    first = {trial.case: trial for trial in reversed(trials)}
    cases = [*reversed(first)]
    called = {case: first[case].name_of_case or labels.among(cases, case) for case in cases}
    times = Counter(called.values())
    called = {case: it if times[it] == 1 else first[case].name for case, it in called.items()}
    paths = {it: f"{it.token}/{it.precision}/{it.micro_batch_size}" for it in cases}
    found = dict.fromkeys(
        trial.case
        for trial in trials
        if plan.selected([trial], [name])
        or name == called[trial.case]
        or f"{paths[trial.case]}/".startswith(f"{name}/")
    )
    if len(found) == 1:
        return next(iter(found))
    if found:
        fitting = ", ".join(shlex.quote(called[case]) for case in found)
        raise errors.UsageError(
            f"{words.shown(name)} fits {words.count(len(found), 'case')}: {fitting}",
            code="CASE-AMBIGUOUS",
            fix="give one of these names, or the name of a trial",
        )
    known = ", ".join(map(shlex.quote, called.values())) or "none"
    logs = f"; logs of no case: {', '.join(lone)}" if lone else ""
    fix = "give the name of one of these logs"
    if called:
        fix = "one of these names, a placement such as 4x8, or the name of a trial"
    raise errors.UsageError(
        f"no case {words.shown(name)}; there are {known}{logs}",
        code="NO-CASE",
        fix=words.did_you_mean(name, [*called.values(), *paths.values(), *lone]) or fix,
    )


def _explain_case(report: Report, case: Case, folder: Path, sweep: Sweep | None) -> Explanation:
    (result,) = (it for it in report.results if it.case == case)
    ordered = sorted(result.valid, key=lambda trial: trial.throughput or 0)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    alike = [it for it in report.results if it.case.comparable == case.comparable]
    singles = (it for it in reversed(alike) if it.case.world_size == 1 and it.statistics)
    baseline = next(singles).median if result.speedup is not None else None
    shown = next(iter([*middle, *(it for it in result.trials if it.attempt)]), None)
    attempt = sweep.attempt(shown.trial, shown.attempt) if sweep and shown else None
    derivations = [_derive(report, folder, trial, case.global_batch_size) for trial in middle]
    page = [*_describe_number(report, result, baseline)]
    page += (f"mark {mark.code}: {mark.message}" for mark in result.marks)
    page += _list_trials(report, result, middle)
    batch = f"{case.micro_batch_size} x {case.data_parallel} replicas x {case.accumulation_steps}"
    for heading, rule in dict.fromkeys((it.heading(), it.rule) for it in derivations):
        samples = f", {batch} = {case.global_batch_size} samples"
        page.append(heading + (samples if rule in ("clock", "latency") else ""))
    for trial, it in zip(middle, derivations, strict=True):
        page += f"trial {trial.repeat}: {it.log}, sha256 {it.sha256}", *it.page()
    if attempt and shown:
        page += _describe_circumstances(report, result, attempt, shown)
    document: dict[str, object] = {
        **case_document(report, result),
        "sweep": report.source,
        "case": labels.of_case(report, result),
        "unit": report.unit,
        "baseline_median": baseline,
        "median_of": [trial.trial for trial in middle],
        "derivations": [derivation.document() for derivation in derivations],
        "image": report.image,
        "image_digest": report.image_digest,
        "nodes": attempt.nodes if attempt else [],
        "command": attempt.tasks[attempt.log_rank].argv if attempt else [],
    }
    return _finish(result.median, page, document)


def _explain_log(report: Report, lone: LoneLog, folder: Path) -> Explanation:
    log = lone.log
    trial = Measurement(
        trial=lone.path,
        repeat=1,
        attempt=0,
        state="",
        throughput=lone.throughput,
        rate=None,
        problems=lone.problems,
        marks=(),
        evidence=Evidence(lone.path, log.evidence(log.rule), log.sha256, log.digest),
        provenance={},
        latency_s=log.latency_s,
        window=log.window,
        rule=log.rule,
        measured_s=log.measured_s,
    )
    derivation = _derive(report, folder, trial, global_batch_size(log.config))
    why = "neither its name nor its header tells the whole of one"
    if not log.sha256:
        why = "its name does not tell the whole of one, and it could not be read"
    number = "no number"
    if lone.throughput is not None:
        number = f"{lone.throughput:.2f} {report.unit}, of this log alone"
    page = [f"{lone.path} of logs in {report.source}: {report.title}", f"of no case: {why}", number]
    page += (f"{problem.code}: {problem.message}" for problem in lone.problems)
    if log.sha256:
        page += f"{derivation.heading()}; sha256 {log.sha256}", *derivation.page()
    document = {
        "logs": report.source,
        "case": None,
        "unit": report.unit,
        "throughput": lone.throughput,
        **derivation.document(),
        "problems": lone.problems,
    }
    if not log.sha256:  # it could not be read
        document.update(sha256=None, rule=None, window=None)
    return _finish(lone.throughput, page, document)


def _finish(number: float | None, page: Sequence[str], document: object) -> Explanation:
    lines = [words.printable(line) for line in page]
    return Explanation(number, lines, to_jsonable_python(document))


def _describe_number(report: Report, result: Result, baseline: float | None) -> Iterator[str]:
    found, trials = result.statistics, f"median of {of_trials(report, result)}"
    source = f"sweep {report.source}" if report.method else f"logs in {report.source}"
    yield f"{labels.of_case(report, result)} of {source}: {report.title}"
    if found is None:
        yield f"no number: {trials} trials, none of which counts"
        return
    interval = f"; interval {interval_words(found.interval)}" if found.interval else ""
    yield f"{found.median:.2f} {report.unit}, {trials} trials{interval}"
    if baseline is not None:
        yield (
            f"speedup {found.median:.2f} / {baseline:.2f} of 1x1 = {result.speedup:.2f};"
            f" efficiency {result.speedup:.2f} / {result.case.world_size} ="
            f" {result.efficiency:.1%}"
        )


def _list_trials(report: Report, result: Result, middle: Sequence[Measurement]) -> Iterator[str]:
    signs = {1: "; > is the median", 2: "; the median is the mean of the two >"}
    yield f"  trial  {report.unit:>12}  state{signs.get(len(middle), '')}"
    for trial in result.trials:
        sign = ">" if trial in middle else " "
        number = "-" if trial.throughput is None else f"{trial.throughput:.2f}"
        reasons = "; ".join(f"{it.code}: {it.message}" for it in (*trial.problems, *trial.marks))
        yield f"{sign} {trial.repeat:>5}  {number:>12}  {trial.state} {reasons}".rstrip()


def _describe_circumstances(
    report: Report, result: Result, attempt: Attempt, trial: Measurement
) -> Iterable[str]:
    nodes, shown = nodeset.fold(attempt.nodes), ("image", "tasks")
    yield f"attempt a{attempt.number} on {nodes}, transport {result.transport}"
    yield f"image {report.image}, {report.image_digest or 'without a digest'}"
    facts = (f"{key} {it}" for key, it in trial.provenance.items() if it and key not in shown)
    yield from filter(None, [", ".join(facts)])
    command = shlex.join(attempt.tasks[attempt.log_rank].argv)
    yield f"command on {attempt.nodes[attempt.log_rank]}: {command}"


def _derive(report: Report, folder: Path, trial: Measurement, batch: int | None) -> _Derivation:
    """Put a log's numbers into the formula of its rule, seconds to their last digit.

    Args:
        batch: global batch size; None if the rule does not need it.

    Raises:
        LocalError: LOG-RIGHTS, the log cannot be read any more; LOG-CHANGED, it is not that log.
    """
    log, rule, formula = trial.evidence, trial.rule, ""
    lines: Mapping[int, str] = {}
    assert log is not None  # the log was measured
    first, last = trial.window or (0, 0)
    if trial.throughput is not None:
        terms = "what the program reports itself"
        if rule == "clock":
            exact = f"{trial.measured_s:.9f}".rstrip("0").rstrip(".")
            terms = f"{batch} samples x ({last} - {first}) iterations / {exact} s"
        elif rule == "latency":
            terms = f"{batch} samples / {trial.latency_s:.9g} s, the mean of these rows and between"
        elif rule in ("rates", "arithmetic"):
            mean = "harmonic" if rule == "rates" else "arithmetic"
            terms = f"the {mean} mean of the rates printed from iteration {first} to {last}"
        formula = f"{terms} = {trial.throughput:.2f} {report.unit}"
        workload = workloads.require(report.workload)
        lines = _read_lines(locate(folder, log.log), rule, log, workload)
    return _Derivation(trial.trial, log.log, log.sha256, rule, trial.window, lines, formula)


def _read_lines(
    path: Path, rule: Rule | None, log: Evidence, workload: Workload
) -> Mapping[int, str]:
    """Read the lines that a number comes from: the first and the last, and rows between if few."""
    first, last = log.lines or (0, 0)
    is_mean, digest, found = rule in ("latency", "rates"), hashlib.sha256(), dict[int, str]()
    with on_disk(path, "LOG-RIGHTS", "make it readable for this user"), open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            digest.update(line)
            is_row = is_mean and first < number < last and workload.progress(line) is not None
            if number in (first, last) or is_row:
                text = line.rstrip(b"\r\n")[:LONGEST_LINE].decode("utf-8", "backslashreplace")
                found[number] = text
    if digest.hexdigest() != log.sha256:
        raise errors.LocalError(
            f"{path} changed while its number was explained",
            code="LOG-CHANGED",
            fix="run the command again",
        )
    return found if len(found) <= MOST_ROWS else {place: found[place] for place in (first, last)}
