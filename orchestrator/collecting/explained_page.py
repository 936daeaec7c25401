"""An explanation as lines of one terminal page, and as a document."""

import itertools
import shlex
from collections.abc import Iterator
from dataclasses import asdict

from orchestrator import nodeset, words
from orchestrator.collecting.explanation import Derivation, Explanation
from orchestrator.model.facts import JSON
from orchestrator.model.result import Measurement
from orchestrator.report import counted, interval_words

MOST_TRIALS = 20


def page(found: Explanation) -> list[str]:
    """Return the lines of the page, of any length; a terminal wraps them."""
    marks = [f"mark {mark.code}: {mark.message}" for mark in found.result.marks]
    parts = (_number(found), marks, _trials(found), _derivations(found))
    lines = itertools.chain(*parts, _circumstances(found), _command(found))
    return [words.printable(line) for line in lines]


def document(found: Explanation) -> dict[str, JSON]:
    """Return the explanation as JSON, with every digit."""
    result, attempt = found.result, found.attempt
    task = attempt.tasks[attempt.log_rank] if attempt else None
    return {
        "sweep": found.report.source,
        "case": found.name,
        "unit": found.report.unit,
        "median": result.median,
        "speedup": result.speedup,
        "efficiency": result.efficiency,
        "baseline_median": found.baseline.median if found.baseline else None,
        "median_of": [trial.trial for trial in found.middle],
        "marks": [asdict(mark) for mark in result.marks],
        "trials": [_trial_document(trial) for trial in result.trials],
        "derivations": [_derivation_document(it) for it in found.derivations],
        "image": found.report.image,
        "image_digest": found.report.image_digest,
        "nodes": list(attempt.nodes) if attempt else [],
        "command": list(task.argv) if task else [],
    }


def _number(found: Explanation) -> Iterator[str]:
    result, report = found.result, found.report
    source = f"sweep {report.source}" if report.method else f"logs in {report.source}"
    yield (f"{found.name} of {source}: {report.title}")
    statistics = result.statistics
    if statistics is None:
        yield f"no number: {counted(report, result)} trials, none of which counts"
        return
    sure = f"; interval {interval_words(statistics.interval)}" if statistics.interval else ""
    yield f"{statistics.median:.2f} {report.unit}, {counted(report, result)} trials{sure}"
    if found.baseline is not None:
        yield (
            f"speedup {statistics.median:.2f} / {found.baseline.median:.2f} of 1x1 ="
            f" {result.speedup:.2f}; efficiency {result.speedup:.2f} / {result.case.world_size} ="
            f" {result.efficiency:.1%}"
        )


def _trials(found: Explanation) -> Iterator[str]:
    unit, trials = found.report.unit, found.result.trials
    middle = {1: "; > is the median", 2: "; the median is the mean of the two >"}
    yield f"  trial  {unit:>12}  state{middle.get(len(found.middle), '')}"
    # More than fit: those of the median, then the first ones.
    chosen = [*found.middle, *(trial for trial in trials if trial not in found.middle)]
    for trial in (trial for trial in trials if trial in chosen[:MOST_TRIALS]):
        sign = ">" if trial in found.middle else " "
        number = "-" if trial.throughput is None else f"{trial.throughput:.2f}"
        reasons = "; ".join(f"{it.code}: {it.message}" for it in (*trial.problems, *trial.marks))
        yield f"{sign} {trial.repeat:>5}  {number:>12}  {trial.state} {reasons}".rstrip()
    if (more := len(trials) - MOST_TRIALS) > 0:
        yield f"  and {more} more, which --json has"


def _derivations(found: Explanation) -> Iterator[str]:
    for rule in dict.fromkeys(map(_rule, found.derivations)):
        yield f"{rule}{_batch(found)}"
    for it in found.derivations:
        evidence = it.trial.evidence
        where = f": {evidence.log}, sha256 {evidence.sha256}" if evidence else ""
        yield f"trial {it.trial.repeat}{where}"
        yield from (f"  {line.number}: {line.text}" for line in it.lines)
        yield f"  {it.formula}"


def _rule(derivation: Derivation) -> str:
    window = derivation.window
    between = f", iterations {window[0]} to {window[1]}" if window else ""
    return f"rule {derivation.rule}{between}"


def _batch(found: Explanation) -> str:
    """Samples of an iteration, where the rule needs them."""
    if found.derivations[0].rule not in ("clock", "latency"):
        return ""
    case = found.result.case
    replicas = f"{case.micro_batch_size} x {case.data_parallel} replicas"
    return f", {replicas} x {case.accumulation_steps} = {case.global_batch_size} samples"


def _circumstances(found: Explanation) -> Iterator[str]:
    report, attempt = found.report, found.attempt
    if attempt is None:
        return
    nodes = nodeset.fold(attempt.nodes)
    yield f"attempt a{attempt.number} on {nodes}, transport {found.result.transport}"
    yield f"image {report.image}, {report.image_digest or 'without a digest'}"
    shown = next(iter(found.middle), found.result.trials[0])
    facts = {key: it for key, it in shown.provenance.items() if key not in ("image", "tasks")}
    if known := ", ".join(f"{key} {it}" for key, it in facts.items() if it):
        yield known


def _command(found: Explanation) -> Iterator[str]:
    if attempt := found.attempt:
        command = shlex.join(attempt.tasks[attempt.log_rank].argv)
        yield f"command on {attempt.nodes[attempt.log_rank]}: {command}"


def _derivation_document(derivation: Derivation) -> dict[str, JSON]:
    evidence, window = derivation.trial.evidence, derivation.window
    return {
        "trial": derivation.trial.trial,
        "log": evidence.log if evidence else None,
        "sha256": evidence.sha256 if evidence else None,
        "rule": derivation.rule,
        "window": list(window) if window else None,
        "lines": [asdict(line) for line in derivation.lines],
        "formula": derivation.formula,
    }


def _trial_document(trial: Measurement) -> dict[str, JSON]:
    return {
        "trial": trial.trial,
        "state": trial.state,
        "throughput": trial.throughput,
        "nodes": list(trial.nodes),
        "problems": [asdict(problem) for problem in trial.problems],
        "marks": [asdict(mark) for mark in trial.marks],
    }
