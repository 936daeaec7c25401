"""States and throughputs of trials, from their raw logs."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import fsum, isfinite
from pathlib import Path

from orchestrator.verifying import damages, plain_log, plain_nccl
from orchestrator.verifying.damages import NS, Reason
from orchestrator.verifying.differences import at, items, number, text
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.plain_log import PlainLog, PlainStep, Steps

WINDOWS = {
    "ngc_pytorch_rn50": (25, 125),
    "reference_rn50": (25, 125),
    "ngc_tensorflow_rn50": (21, 120),
    "oneflow_rn50": (20, 120),
    "oneflow_bert": (19, 119),
    "all_reduce": (6, 25),
}
"""Between which iterations a log is measured where a method says nothing."""
LAST_ROWS = 5
TRACE_POINTS = 120
RATE_TOLERANCE = 0.03


@dataclass(slots=True)
class DerivedTrial:
    """What follows from the raw logs of a trial.

    Args:
        reasons: why it does not count; none if it does.
        marks: what is odd in it all the same.
        rule: how its throughput was taken.
        span: the two steps, or the first and the last row, that it stands on.
        doubts: why it may not count; what would tell is beyond this reader.
        begun_ns: when its first step was printed.
        steps: a hash of what must not be the same in two trials.
        trace: the mean of the rates from one iteration to another.
    """

    throughput: float | None = None
    reasons: list[Reason] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    rule: str = ""
    span: tuple[PlainStep, PlainStep] | None = None
    begun_ns: int | None = None
    latency_s: float | None = None
    memory_mib: int | None = None
    rate_mean: float | None = None
    steps: str = ""
    trace: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def lines(self) -> list[int] | None:
        """Where its two ends stand in the raw log."""
        first, last = self.span or (None, None)
        return [first.line, last.line] if first and last else None


def global_batch(case: Mapping[str, object]) -> int:
    """Samples of an optimizer step: micro batch x replicas x accumulation."""
    ranks = _whole(case, "nodes") * _whole(case, "gpus_per_node")
    split = _whole(case, "tensor_parallel", 1) * _whole(case, "pipeline_parallel", 1)
    steps = _whole(case, "accumulation_steps", 1)
    return _whole(case, "micro_batch_size") * (ranks // max(split, 1)) * steps


def derived(path: Path, plan: Mapping[str, object], case: Mapping[str, object]) -> DerivedTrial:
    """What a log gives, by the rule and the window of the plan.

    Raises:
        OSError: it cannot be read.
    """
    log, found = plain_log.read(path), DerivedTrial()
    workload, method, batch = text(plan.get("workload")), at(plan, "method"), global_batch(case)
    found.rule = _rule(log, workload, method)
    found.doubts += damages.doubts(log)
    found.memory_mib = log.memory_mib
    found.reasons += [*damages.damages(log, method), *damages.foreign(log, case, batch)]
    steps = log.steps
    if steps and "NOT-FINITE" not in dict(found.reasons):
        found.rate_mean = fsum(chain(steps.rates, steps.later)) / (len(steps) + len(steps.later))
        found.trace = _trace(steps)
    if steps:
        found.begun_ns = steps[0].clock_ns
    _measure(found, log, _window(workload, method, found.rule), batch)
    return found


def _trace(steps: Steps) -> dict[tuple[int, ...], float]:
    """The mean rate of each piece, by its first and last iteration."""
    width = -(-len(steps) // TRACE_POINTS)
    pieces = (range(len(steps))[at : at + width] for at in range(0, len(steps), width))
    return {
        (steps.iterations[piece[0]], steps.iterations[piece[-1]]): fsum(
            steps.rates[piece[0] : piece[-1] + 1]
        )
        / len(piece)
        for piece in pieces
    }


def transport(folder: Path, attempt: Mapping[str, object]) -> tuple[str, list[Reason]]:
    """What a gang used between its nodes, and which nodes do not prove what was requested."""
    tasks = items(attempt.get("tasks"))
    if len(tasks) < 2:
        return "-", []
    labels, reasons = {}, []
    serving = any(task.get("service") for task in tasks)
    for task in tasks:
        node, rank = text(task.get("node")), task.get("node_rank")
        path = folder / f"r{0 if serving else rank}.log"
        said = plain_nccl.said(_lines_of(path, task if serving else None))
        if path.is_file():
            labels[node] = said.label
        wanted = text(at(task, "env", "NCCL_IB_HCA")).lstrip("=")
        if wanted and not said.proves(set(wanted.split(","))):
            seen = f"{path.name}: NCCL's lines do not prove {wanted}: {said.label}"
            reasons.append(("TRANSPORT", seen))
    if len(set(labels.values())) == 1:
        return next(iter(labels.values())), reasons
    return "; ".join(f"{node}: {label}" for node, label in labels.items()) or "-", reasons


def _lines_of(path: Path, task: Mapping[str, object] | None) -> Iterator[str]:
    """The lines of a node's ranks: all of its own log, or those that mpirun tagged so."""
    gpus = at(task, "gpus")
    count = len(gpus) if isinstance(gpus, list) else 0
    first = int(number(at(task, "node_rank")) or 0) * count
    ours = {f"[1,{rank}]" for rank in range(first, first + count)}
    if not path.is_file():
        return
    for _, line in plain_log.lines(path):
        if task is None or line.partition("<std")[0] in ours:
            yield line


def _rule(log: PlainLog, workload: str, method: object) -> str:
    if rule := text(at(method, "rule")):
        return rule
    if workload == "oneflow_gpt" or log.steps.latencies:
        return "latency"
    if log.steps.series == "all_reduce":
        return "rates"
    benchmark = log.facts.get("mode") == "training_benchmark" or log.steps.series == "total_ips"
    return "reported" if benchmark and at(method, "window") is None else "clock"


def _window(workload: str, method: object, rule: str) -> tuple[int, int] | None:
    window = at(method, "window")
    if isinstance(window, list) and len(window) == 2:
        return int(window[0]), int(window[1])
    return None if rule in ("latency", "reported") else WINDOWS.get(workload)


def _measure(
    found: DerivedTrial, log: PlainLog, window: tuple[int, int] | None, batch: int
) -> None:
    steps, inside = log.steps, range(0)
    if window and "SKIPPED-STEPS" not in dict(found.reasons):  # so they are in order
        first, last = window
        inside = range(bisect_left(steps.iterations, first), bisect_right(steps.iterations, last))
    elif window is None and found.rule == "latency":
        inside = range(len(steps))[-LAST_ROWS:]
        if len(inside) < LAST_ROWS:
            seen = f"{len(inside)} rows; its latency is the mean of {LAST_ROWS}"
            found.reasons.append(("WINDOW", seen))
            return
    if window and found.rule != "latency":
        ends = {steps.iterations[place] for place in (*inside[:1], *inside[-1:])}
        if lacking := [str(end) for end in window if end not in ends]:
            seen = f"no step {' and '.join(lacking)}, where its window ends"
            found.reasons.append(("WINDOW", seen))
            return
    if inside:
        _take(found, steps, inside)
    _apply(found, log, inside, batch)
    if found.rule in ("reported", "rates") and (not found.span or found.span[0].clock_ns is None):
        found.span = None


def _take(found: DerivedTrial, steps: Steps, inside: range) -> None:
    """What the window holds, whatever the rule."""
    first, last = steps[inside[0]], steps[inside[-1]]
    found.span = (first, last)
    found.marks += damages.odd(steps, first, last, inside)
    hashed = hashlib.sha256()
    for column in (steps.iterations, steps.clocks_ns, steps.rates):
        hashed.update(column[inside.start : inside.stop])
    found.steps = hashed.hexdigest()
    if steps.latencies:
        latencies = steps.latencies[inside.start : inside.stop]
        found.latency_s = float(sum(latencies) / len(latencies))


def _apply(found: DerivedTrial, log: PlainLog, inside: range, batch: int) -> None:
    rates = log.steps.rates[inside.start : inside.stop]
    reported = {value for value in log.reported if isfinite(value)}
    if found.rule == "clock" and found.span:
        _by_clock(found, *found.span, batch)
        _against_rates(found, rates[1:])
    elif found.rule == "rates" and inside:
        found.throughput = fsum(rates) / len(rates)
    elif found.rule == "latency" and found.latency_s:
        found.throughput = batch / found.latency_s
    elif found.rule == "reported" and len(reported) == 1:
        (found.throughput,) = reported
    else:
        seen = f"nothing in it that the rule {found.rule} can be applied to"
        found.reasons.append(("NO-RESULT", seen))


def _by_clock(found: DerivedTrial, first: PlainStep, last: PlainStep, batch: int) -> None:
    if first.clock_ns is None or last.clock_ns is None:
        found.span = None
        found.reasons.append(("NO-CLOCK", "no time in its lines"))
        return
    nanoseconds, count = last.clock_ns - first.clock_ns, last.iteration - first.iteration
    if nanoseconds <= 0:
        words = f"{nanoseconds / NS} s from line {first.line} to {last.line}"
        found.reasons.append(("CLOCK-STEP", f"its clock says {words}"))
        return
    found.throughput = batch * count * NS / nanoseconds


def _against_rates(found: DerivedTrial, rates: Sequence[float]) -> None:
    """Compare a clock with the rates that the log prints: of another gang they differ by half."""
    if not found.throughput or not rates or not all(isfinite(it) and it > 0 for it in rates):
        return
    harmonic = len(rates) / fsum(1 / rate for rate in rates)
    if abs(harmonic / found.throughput - 1) > RATE_TOLERANCE:
        seen = f"its clock gives {found.throughput:.2f}, its printed rates {harmonic:.2f}"
        found.reasons.append(("RATE-MISMATCH", seen))


def _whole(case: Mapping[str, object], key: str, otherwise: int = 0) -> int:
    value = number(case.get(key))
    return otherwise if value is None else int(value)
