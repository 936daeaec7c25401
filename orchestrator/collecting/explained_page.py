"""An explanation as lines of one terminal page, and as a document."""

import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import asdict

from orchestrator import nodeset, words
from orchestrator.collecting.explanation import Derivation, Explanation
from orchestrator.model.facts import JSON
from orchestrator.model.result import Measurement
from orchestrator.report import counted, interval_words

WIDTH = 80
LINES = 23
"""Of the 24 of a terminal, in whose last one the prompt stands."""
FEWEST_TRIALS = 5
DIGEST = len("sha256:") + 12
MOST_WORDS = 3 * WIDTH


def page(found: Explanation) -> list[str]:
    """Lines of at most 80 columns, and 23 of them where so few can tell it.

    Trials, and lines of the command, are as many as there is room for. Where not even a line of
    the command and five trials have room, marks take a line each, and the page is longer.
    """
    number, proof, place = [*_number(found)], [*_derivations(found)], [*_circumstances(found)]
    trials, command = len(found.result.trials), [*_command(found)]
    room = LINES - len(number) - len(proof) - len(place) - 1  # the head of the trials
    left = room - min(trials, FEWEST_TRIALS) - min(len(command), 1)
    marks = [f"mark {mark.code}: {mark.message}" for mark in found.result.marks]
    whole = [line for mark in marks for line in wrapped(mark)]
    marks = whole if len(whole) <= left else [*map(cut, marks)]
    room -= len(marks)
    most = max(room - min(len(command), 1), FEWEST_TRIALS)
    number += [*marks, *_trials(found, most)]
    return [*number, *proof, *place, *_shortened(command, max(room - min(trials, most), 1))]


def document(found: Explanation) -> dict[str, JSON]:
    """The same for programs, nothing rounded or cut."""
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
    yield cut(f"{found.name} of {source}: {report.title}")
    statistics = result.statistics
    if statistics is None:
        yield f"no number: {counted(report, result)} trials, none of which counts"
        return
    sure = f"; interval {interval_words(statistics)}" if statistics.interval else ""
    yield f"{statistics.median:.2f} {report.unit}, {counted(report, result)} trials{sure}"
    if found.baseline is not None:
        yield from wrapped(
            f"speedup {statistics.median:.2f} / {found.baseline.median:.2f} of 1x1 ="
            f" {result.speedup:.2f}; efficiency {result.speedup:.2f} / {result.case.world_size} ="
            f" {result.efficiency:.1%}"
        )


def _trials(found: Explanation, most: int) -> Iterator[str]:
    unit, trials = found.report.unit, found.result.trials
    middle = {1: "; > is the median", 2: "; the median is the mean of the two >"}
    yield f"  trial  {unit:>12}  state{middle.get(len(found.middle), '')}"
    # More than fit: those of the median, then the first ones.
    chosen = [*found.middle, *(trial for trial in trials if trial not in found.middle)]
    chosen = chosen if len(chosen) <= most else chosen[: most - 1]
    for trial in (trial for trial in trials if trial in chosen):
        sign = ">" if trial in found.middle else " "
        number = "-" if trial.throughput is None else f"{trial.throughput:.2f}"
        reasons = "; ".join(f"{it.code}: {it.message}" for it in (*trial.problems, *trial.marks))
        yield cut(f"{sign} {trial.repeat:>5}  {number:>12}  {trial.state} {reasons}".rstrip())
    if len(trials) > most:
        yield f"  and {len(trials) - len(chosen)} more, which --json has"


def _derivations(found: Explanation) -> Iterator[str]:
    for rule in dict.fromkeys(map(_rule, found.derivations)):
        yield from wrapped(f"{rule}{_batch(found)}")
    for it in found.derivations:
        evidence = it.trial.evidence
        where = f": {evidence.log}, sha256 {evidence.sha256[:12]}" if evidence else ""
        yield cut(f"trial {it.trial.repeat}{where}")
        yield from _lines(it)
        yield from wrapped(f"  {it.formula}")


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


def _lines(derivation: Derivation) -> Iterator[str]:
    for line in derivation.lines:
        yield cut(f"  {line.number}: {line.text}")


def _circumstances(found: Explanation) -> Iterator[str]:
    report, attempt = found.report, found.attempt
    if attempt is None:
        return
    nodes = nodeset.fold(attempt.nodes)
    yield from wrapped(f"attempt a{attempt.number} on {nodes}, transport {found.result.transport}")
    digest = report.image_digest[:DIGEST] or "without a digest"
    yield from wrapped(f"image {report.image}, {digest}")
    shown = next(iter(found.middle), found.result.trials[0])
    facts = {key: it for key, it in shown.provenance.items() if key not in ("image", "tasks")}
    known = ", ".join(f"{key} {it}" for key, it in facts.items() if it)
    if known:
        yield from wrapped(known)


def _command(found: Explanation) -> Iterator[str]:
    """All lines of it."""
    if attempt := found.attempt:
        command = shlex.join(attempt.tasks[attempt.log_rank].argv)
        text = f"command on {attempt.nodes[attempt.log_rank]}: {command}"
        yield from wrapped(text, most=None)


def _shortened(command: list[str], most: int) -> list[str]:
    """As many lines of it; the last one says how many are left out."""
    if len(command) <= most:
        return command
    more = f" .. ({len(command) - most} more lines, which --json has)"
    return [*command[: most - 1], f"{command[most - 1][: WIDTH - len(more)]}{more}"]


def cut(text: str) -> str:
    """The text in one line of the page."""
    shown = words.printable(text)
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 2]}.."


def wrapped(text: str, most: int | None = MOST_WORDS) -> Iterator[str]:
    """The text in as many lines as it needs; cut after ``most`` characters."""
    shown = words.printable(text)
    shown = shown if most is None or len(shown) <= most else f"{shown[: most - 2]}.."
    yield from textwrap.wrap(
        shown,
        WIDTH,
        initial_indent=" " * (len(shown) - len(shown.lstrip())),
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


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
