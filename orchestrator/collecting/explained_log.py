"""How the number of one log that belongs to no case came to be, or why it has none."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from orchestrator import words
from orchestrator.collecting.explanation import RawLine, Source, formula, raw_lines
from orchestrator.collecting.folder import located
from orchestrator.measuring import throughputs
from orchestrator.model.facts import JSON
from orchestrator.model.report import LoneLog, Report


@dataclass(frozen=True, slots=True)
class LogExplanation:
    """Everything about the number of one log.

    Args:
        lines: that the number stands on, in their order; none without a number.
        formula: with the numbers put in; empty without a number.
    """

    report: Report
    lone: LoneLog
    lines: tuple[RawLine, ...] = ()
    formula: str = ""


def find_log(report: Report, name: str) -> LoneLog | None:
    """The one log of no case that has this path, or else this file name."""
    fitting = [lone for lone in report.lone if lone.path == name] or [
        lone for lone in report.lone if PurePath(lone.path).name == name
    ]
    return fitting[0] if len(fitting) == 1 else None


def explained(report: Report, lone: LoneLog, source: Source) -> LogExplanation:
    """Derive the throughput of a log without a case from its lines."""
    if lone.throughput is None:
        return LogExplanation(report, lone)
    log = lone.log
    path = located(source.folder, lone.path)
    found = raw_lines(path, source.workload, log, log.rule)
    batch = throughputs.global_batch_size(log)
    terms = formula(log.rule, log, batch, lone.throughput)
    return LogExplanation(report, lone, found, f"{terms} {report.unit}")


def page(found: LogExplanation) -> list[str]:
    """Return the lines of the page, of any length; a terminal wraps them."""
    return [words.printable(line) for line in _page(found)]


def document(found: LogExplanation) -> dict[str, JSON]:
    """Return the explanation as JSON, with every line and digit."""
    lone, log = found.lone, found.lone.log
    return {
        "logs": found.report.source,
        "case": None,
        "log": lone.path,
        "sha256": log.sha256 or None,  # of what could not be read
        "unit": found.report.unit,
        "throughput": lone.throughput,
        "rule": log.rule if log.sha256 else None,
        "window": list(log.window) if log.sha256 and log.window else None,
        "lines": [{"number": line.number, "text": line.text} for line in found.lines],
        "formula": found.formula,
        "problems": [{"code": it.code, "message": it.message} for it in lone.problems],
    }


def _page(found: LogExplanation) -> Iterator[str]:
    report, lone, log = found.report, found.lone, found.lone.log
    yield (f"{lone.path} of logs in {report.source}: {report.title}")
    if log.sha256:
        yield "of no case: neither its name nor its header tells the whole of one"
    else:
        yield "of no case: its name does not tell the whole of one, and it could not be read"
    if lone.throughput is None:
        yield "no number"
    else:
        yield f"{lone.throughput:.2f} {report.unit}, of this log alone"
    for problem in lone.problems:
        yield f"{problem.code}: {problem.message}"
    if not log.sha256:
        return
    between = f", iterations {log.window[0]} to {log.window[1]}" if log.window else ""
    yield f"rule {log.rule}{between}; sha256 {log.sha256}"
    for line in found.lines:
        yield f"  {line.number}: {line.text}"
    yield f"  {found.formula}"
