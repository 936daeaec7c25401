"""Explain the number of one case, of a sweep or of a folder of logs."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from orchestrator import errors, nodeset, words, workloads
from orchestrator.disk import on_disk
from orchestrator.model.facts import JSON
from orchestrator.model.log import TrainingLog
from orchestrator.model.report import Report
from orchestrator.model.result import Measurement, Result
from orchestrator.report import case_document, labels
from orchestrator.state.sweep import Sweep
from orchestrator.workloads import Workload

LONGEST_LINE = 4096
MOST_ROWS = 10


def explain(
    report: Report, folder: Path, name: str, sweep: Sweep | None = None
) -> tuple[list[str], dict[str, JSON]]:
    """Derive the number of the one case that fits a name: lines of a page, and the document.

    Args:
        folder: from which the report's paths of logs start.
        sweep: None for a folder of logs.

    Raises:
        UsageError: NO-CASE, CASE-AMBIGUOUS.
        StoreError: a record is damaged.
    """
    result = _find_result(report, name)
    case, counted = result.case, [it for it in result.valid if it.throughput is not None]
    ordered = sorted(counted, key=lambda trial: trial.throughput or 0)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    alike = [it for it in report.results if it.case.comparable == case.comparable]
    singles = (it for it in reversed(alike) if it.case.world_size == 1 and it.statistics)
    baseline = next(singles).median if result.speedup is not None else None
    shown = next(iter([*middle, *(it for it in result.trials if it.attempt)]), None)
    attempt = sweep.attempt(shown.trial, shown.attempt) if sweep and shown else None
    command = attempt.tasks[attempt.log_rank].argv if attempt else ()
    derivations = [_derive(report, folder, trial, case.global_batch_size) for trial in middle]
    page = [*_describe_number(report, result, baseline)]
    page += (f"mark {mark.code}: {mark.message}" for mark in result.marks)
    signs = {1: "; > is the median", 2: "; the median is the mean of the two >"}
    page.append(f"  trial  {report.unit:>12}  state{signs.get(len(middle), '')}")
    for trial in result.trials:
        sign, value = ">" if trial in middle else " ", trial.throughput
        number = "-" if value is None else f"{value:.2f}"
        reasons = "; ".join(f"{it.code}: {it.message}" for it in (*trial.problems, *trial.marks))
        page.append(f"{sign} {trial.repeat:>5}  {number:>12}  {trial.state} {reasons}".rstrip())
    batch = f"{case.micro_batch_size} x {case.data_parallel} replicas x {case.accumulation_steps}"
    for rule, window in dict.fromkeys((found["rule"], found["window"]) for found in derivations):
        between = f", iterations {window[0]} to {window[1]}" if window else ""
        samples = f", {batch} = {case.global_batch_size} samples"
        page.append(f"rule {rule}{between}{samples if rule in ('clock', 'latency') else ''}")
    for trial, found in zip(middle, derivations, strict=True):
        page.append(f"trial {trial.repeat}: {found['log']}, sha256 {found['sha256']}")
        page += (f"  {line['number']}: {line['text']}" for line in found["lines"])
        page.append(f"  {found['formula']}")
    if attempt and shown:
        nodes = nodeset.fold(attempt.nodes)
        page.append(f"attempt a{attempt.number} on {nodes}, transport {result.transport}")
        page.append(f"image {report.image}, {report.image_digest or 'without a digest'}")
        facts = {key: it for key, it in shown.provenance.items() if key not in ("image", "tasks")}
        page += filter(None, [", ".join(f"{key} {it}" for key, it in facts.items() if it)])
        page.append(f"command on {attempt.nodes[attempt.log_rank]}: {shlex.join(command)}")
    lines = [words.printable(line) for line in page]
    document = {
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
    return lines, to_jsonable_python(document)


def _find_result(report: Report, name: str) -> Result:
    """Find the one case with a name, a path such as ``4n8g/amp/256``, or a trial's name."""
    times = Counter(labels.of_case(report, it) for it in report.results)
    found, known, paths = [], [], []
    for it in report.results:
        case, label = it.case, labels.of_case(report, it)
        known.append(label if times[label] == 1 else it.trials[0].trial)
        paths.append(f"{case.token}/{case.precision}/{case.micro_batch_size}")
        names = (case.placement, label, *(trial.trial for trial in it.trials))
        is_below = f"{paths[-1]}/".startswith(f"{name}/")
        if is_below or any(nodeset.fits(own, name) for own in names):
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
    fix = "one of these names, a placement such as 4x8, or the name of a trial"
    if not known:
        fix = "`collect --logs DIR --workload NAME --out DIR` shows the lines of each log"
    raise errors.UsageError(
        f"no case {words.shown(name)}; there are {', '.join(map(shlex.quote, known)) or 'none'}",
        code="NO-CASE",
        fix=words.did_you_mean(name, [*known, *paths]) or fix,
    )


def _describe_number(report: Report, result: Result, baseline: float | None) -> Iterator[str]:
    found, trials = result.statistics, f"median of {labels.of_trials(report, result)}"
    source = f"sweep {report.source}" if report.method else f"logs in {report.source}"
    yield f"{labels.of_case(report, result)} of {source}: {report.title}"
    if found is None:
        yield f"no number: {trials} trials, none of which counts"
        return
    interval = f"; interval {labels.interval_words(found.interval)}" if found.interval else ""
    yield f"{found.median:.2f} {report.unit}, {trials} trials{interval}"
    if baseline is not None:
        yield (
            f"speedup {found.median:.2f} / {baseline:.2f} of 1x1 = {result.speedup:.2f};"
            f" efficiency {result.speedup:.2f} / {result.case.world_size} ="
            f" {result.efficiency:.1%}"
        )


def _derive(report: Report, folder: Path, trial: Measurement, batch: int) -> dict[str, Any]:
    """Put a log's values into the formula of its rule, seconds to their last digit.

    Raises:
        LocalError: LOG-RIGHTS, the log cannot be read any more; LOG-CHANGED, it is not that log.
    """
    log = trial.log
    assert log is not None  # a valid trial was measured
    rule, (first, last) = log.rule, log.window or (0, 0)
    terms = "what the program reports itself"
    if rule == "clock":
        exact = f"{log.measured_s:.9f}".rstrip("0").rstrip(".")
        terms = f"{batch} samples x ({last} - {first}) iterations / {exact} s"
    elif rule == "latency":
        terms = f"{batch} samples / {log.latency_s:.9g} s, the mean of these rows and between"
    elif rule in ("rates", "arithmetic"):
        mean = "harmonic" if rule == "rates" else "arithmetic"
        terms = f"the {mean} mean of the rates printed from iteration {first} to {last}"
    workload = workloads.require(report.workload) if rule in ("latency", "rates") else None
    lines = _read_lines(folder / trial.path, log, workload)
    return {
        "trial": trial.trial,
        "log": trial.path,
        "sha256": log.sha256,
        "rule": rule,
        "window": log.window,
        "lines": [{"number": number, "text": text} for number, text in lines.items()],
        "formula": f"{terms} = {trial.throughput:.2f} {report.unit}",
    }


def _read_lines(path: Path, log: TrainingLog, rows_of: Workload | None) -> dict[int, str]:
    """Read the first and the last line that a number comes from, and rows between if few."""
    first, last = log.evidence or (0, 0)
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
