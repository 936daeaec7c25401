"""Explain the number of one case, or of one log that belongs to no case."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from orchestrator import errors, nodeset, words, workloads
from orchestrator.collecting.folder import locate
from orchestrator.disk import on_disk
from orchestrator.model.case import Case
from orchestrator.model.facts import JSON
from orchestrator.model.log import TrainingLog, global_batch_size
from orchestrator.model.report import LoneLog, Report
from orchestrator.model.result import Evidence, Measurement, Result
from orchestrator.planning import matrix
from orchestrator.report import case_document, interval_words, labels, of_trials
from orchestrator.state.sweep import Sweep
from orchestrator.workloads import Workload

LONGEST_LINE = 4096
MOST_ROWS = 10


class Explanation(NamedTuple):
    """Everything about one number.

    Args:
        number: None if there is none.
        page: lines of any length; a terminal wraps them.
        document: the same for programs, with every line and digit.
    """

    number: float | None
    page: Sequence[str]
    document: Mapping[str, JSON]


def explain(report: Report, folder: Path, name: str, sweep: Sweep | None = None) -> Explanation:
    """Derive the number of the one case that fits a name, or of one log that belongs to no case.

    Args:
        folder: from which the report's paths of logs start.
        sweep: None for a folder of logs.

    Raises:
        UsageError: NO-CASE, CASE-AMBIGUOUS.
        StoreError: a record is damaged.
    """
    lone = [it for it in report.lone if it.path == name] or [
        it for it in report.lone if PurePath(it.path).name == name
    ]
    if len(lone) == 1:
        number, page, document = _explain_log(report, lone[0], folder)
    else:
        result = _find_result(report, name)
        number, (page, document) = result.median, _explain_case(report, result, folder, sweep)
    lines = [words.printable(line) for line in page]
    return Explanation(number, lines, to_jsonable_python(document))


def _path(case: Case) -> str:
    return f"{case.token}/{case.precision}/{case.micro_batch_size}"


def _find_result(report: Report, name: str) -> Result:
    """Find the one case with a name, a path such as ``4n8g/amp/256``, or a trial's name."""
    called = {it.case: labels.of_case(report, it) for it in report.results}
    times = Counter(called.values())
    found, known = [], []
    for it in report.results:
        label = called[it.case]
        known.append(label if times[label] == 1 else it.trials[0].trial)
        names = (it.case.placement, label, *(trial.trial for trial in it.trials))
        if matrix.matches(names, name) or f"{_path(it.case)}/".startswith(f"{name}/"):
            found.append((it, known[-1]))
    if len(found) == 1:
        return found[0][0]
    if found:
        fitting = ", ".join(shlex.quote(label) for _, label in found)
        raise errors.UsageError(
            f"{words.shown(name)} fits {words.count(len(found), 'case')}: {fitting}",
            code="CASE-AMBIGUOUS",
            fix="give one of these names, or the name of a trial",
        )
    lone = [it.path for it in report.lone]
    logs = f"; logs of no case: {', '.join(lone)}" if lone else ""
    fix = "give the name of one of these logs"
    if known:
        fix = "one of these names, a placement such as 4x8, or the name of a trial"
    raise errors.UsageError(
        f"no case {words.shown(name)}; there are {', '.join(map(shlex.quote, known)) or 'none'}"
        f"{logs}",
        code="NO-CASE",
        fix=words.did_you_mean(name, [*known, *map(_path, called), *lone]) or fix,
    )


def _explain_case(
    report: Report, result: Result, folder: Path, sweep: Sweep | None
) -> tuple[list[str], dict[str, object]]:
    case, ordered = result.case, sorted(result.valid, key=lambda trial: trial.throughput or 0)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    alike = [it for it in report.results if it.case.comparable == case.comparable]
    singles = (it for it in reversed(alike) if it.case.world_size == 1 and it.statistics)
    baseline = next(singles).median if result.speedup is not None else None
    shown = next(iter([*middle, *(it for it in result.trials if it.attempt)]), None)
    attempt = sweep.attempt(shown.trial, shown.attempt) if sweep and shown else None
    command = attempt.tasks[attempt.log_rank].argv if attempt else ()
    derivations = [
        _derive(report, folder, it.trial, it.evidence, it, it.throughput, case.global_batch_size)
        for it in middle
        if it.evidence
    ]
    page = [*_describe_number(report, result, baseline)]
    page += (f"mark {mark.code}: {mark.message}" for mark in result.marks)
    page += _list_trials(report, result, middle)
    batch = f"{case.micro_batch_size} x {case.data_parallel} replicas x {case.accumulation_steps}"
    for heading, rule in dict.fromkeys((_heading(it), it["rule"]) for it in derivations):
        samples = f", {batch} = {case.global_batch_size} samples"
        page.append(heading + (samples if rule in ("clock", "latency") else ""))
    for trial, it in zip(middle, derivations, strict=True):
        page += f"trial {trial.repeat}: {it['log']}, sha256 {it['sha256']}", *_list_lines(it)
    if attempt and shown:
        nodes = nodeset.fold(attempt.nodes)
        page.append(f"attempt a{attempt.number} on {nodes}, transport {result.transport}")
        page.append(f"image {report.image}, {report.image_digest or 'without a digest'}")
        facts = {key: it for key, it in shown.provenance.items() if key not in ("image", "tasks")}
        page += filter(None, [", ".join(f"{key} {it}" for key, it in facts.items() if it)])
        page.append(f"command on {attempt.nodes[attempt.log_rank]}: {shlex.join(command)}")
    return page, {
        **case_document(report, result),
        "sweep": report.source,
        "case": labels.of_case(report, result),
        "unit": report.unit,
        "baseline_median": baseline,
        "median_of": [trial.trial for trial in middle],
        "derivations": derivations,
        "image": report.image,
        "image_digest": report.image_digest,
        "nodes": attempt.nodes if attempt else [],
        "command": command,
    }


def _explain_log(
    report: Report, lone: LoneLog, folder: Path
) -> tuple[float | None, list[str], dict[str, object]]:
    log = lone.log
    evidence = Evidence(lone.path, log.evidence(log.rule), log.sha256, log.digest)
    batch = global_batch_size(log.config)
    derivation = _derive(report, folder, lone.path, evidence, log, lone.throughput, batch)
    why = "neither its name nor its header tells the whole of one"
    number = "no number"
    if lone.throughput is not None:
        number = f"{lone.throughput:.2f} {report.unit}, of this log alone"
    found = [f"{_heading(derivation)}; sha256 {log.sha256}", *_list_lines(derivation)]
    if not log.sha256:
        why, found = "its name does not tell the whole of one, and it could not be read", []
        derivation.update(sha256=None, rule=None, window=None)
    page = [
        f"{lone.path} of logs in {report.source}: {report.title}",
        f"of no case: {why}",
        number,
        *(f"{problem.code}: {problem.message}" for problem in lone.problems),
        *found,
    ]
    document = {
        "logs": report.source,
        "case": None,
        "unit": report.unit,
        "throughput": lone.throughput,
        **derivation,
        "problems": lone.problems,
    }
    return lone.throughput, page, document


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


def _heading(derivation: Mapping[str, Any]) -> str:
    window = derivation["window"]
    between = f", iterations {window[0]} to {window[1]}" if window else ""
    return f"rule {derivation['rule']}{between}"


def _list_lines(derivation: Mapping[str, Any]) -> Iterable[str]:
    lines = [f"{line['number']}: {line['text']}" for line in derivation["lines"]]
    return (f"  {line}" for line in (*lines, derivation["formula"]) if line)


def _derive(
    report: Report,
    folder: Path,
    trial: str,
    log: Evidence,
    values: Measurement | TrainingLog,
    throughput: float | None,
    batch: int | None,
) -> dict[str, Any]:
    """Put a log's values into the formula of its rule, seconds to their last digit.

    Args:
        batch: global batch size; None if the rule does not need it.

    Returns:
        A part of the document; lines and formula are empty without a throughput.

    Raises:
        LocalError: LOG-RIGHTS, the log cannot be read any more; LOG-CHANGED, it is not that log.
    """
    rule, formula, lines = values.rule, "", dict[int, str]()
    first, last = values.window or (0, 0)
    if throughput is not None:
        terms = "what the program reports itself"
        if rule == "clock":
            exact = f"{values.measured_s:.9f}".rstrip("0").rstrip(".")
            terms = f"{batch} samples x ({last} - {first}) iterations / {exact} s"
        elif rule == "latency":
            seconds = f"{values.latency_s:.9g} s"
            terms = f"{batch} samples / {seconds}, the mean of these rows and between"
        elif rule in ("rates", "arithmetic"):
            mean = "harmonic" if rule == "rates" else "arithmetic"
            terms = f"the {mean} mean of the rates printed from iteration {first} to {last}"
        formula = f"{terms} = {throughput:.2f} {report.unit}"
        workload = workloads.require(report.workload)
        with_rows = rule in ("latency", "rates")
        lines = _read_lines(locate(folder, log.log), log, workload if with_rows else None)
    return {
        "trial": trial,
        "log": log.log,
        "sha256": log.sha256,
        "rule": rule,
        "window": values.window,
        "lines": [{"number": number, "text": text} for number, text in lines.items()],
        "formula": formula,
    }


def _read_lines(path: Path, log: Evidence, rows_of: Workload | None) -> dict[int, str]:
    """Read the first and the last line that a number comes from, and rows between if few."""
    first, last = log.lines or (0, 0)
    digest, found = hashlib.sha256(), dict[int, str]()
    with on_disk(path, "LOG-RIGHTS", "make it readable for this user"), open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            digest.update(line)
            is_row = rows_of and first < number < last and rows_of.progress(line) is not None
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
