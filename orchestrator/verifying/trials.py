"""States and throughputs of trials, from their raw logs."""

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import fsum, isfinite
from pathlib import Path

from orchestrator.verifying import damages, plain_log
from orchestrator.verifying.damages import NS, Reason
from orchestrator.verifying.differences import at, number, text
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
HELD = 2_000_000
"""Steps of a log that is drawn; of a longer one the rates are not held at once."""
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
    found.memory_mib = log.memory_mib if log.steps.series == "gpt" else None
    found.reasons += [*damages.damages(log, method), *damages.foreign(log, case, batch)]
    steps = log.steps
    if steps and "NOT-FINITE" not in dict(found.reasons):
        count = len(steps) + len(steps.later)
        found.rate_mean = fsum(_sums(chain(steps.rates, steps.later))) / count
        found.trace = _trace(steps) if count <= HELD else {}
    if steps:
        found.begun_ns = steps[0].clock_ns
    _measure(found, log, _window(workload, method, found.rule), batch)
    return found


def _sums(rates: Iterator[float]) -> Iterator[float]:
    """Of so many at a time, as longer logs are summed up."""
    while held := array("d", islice(rates, HELD)):
        yield fsum(held)


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
    steps, inside = log.steps, _inside(found, log.steps, window)
    if lacking := _lacking(found.rule, steps, inside, window):
        found.reasons.append(("WINDOW", lacking))
        return
    found.steps = _hashed(steps, inside if window else range(len(steps)))
    if inside:
        first, last = steps[inside[0]], steps[inside[-1]]
        found.span = (first, last)
        found.marks += damages.odd(steps, first, last, inside)
    if inside and steps.latencies:
        latencies = steps.latencies[inside.start : inside.stop]
        found.latency_s = float(sum(latencies) / len(latencies))
    _apply(found, log, inside, batch)
    if found.span and found.span[0].clock_ns is None and found.rule != "latency":
        found.span = None  # where nothing tells a time, no line does


def _inside(found: DerivedTrial, steps: Steps, window: tuple[int, int] | None) -> range:
    """Places of the steps that are measured; none where steps are missing, or all count."""
    if window and "SKIPPED-STEPS" not in dict(found.reasons):  # so they are in order
        first, last = window
        return range(bisect_left(steps.iterations, first), bisect_right(steps.iterations, last))
    rests_on_last = window is None and found.rule == "latency"
    return range(len(steps))[-LAST_ROWS:] if rests_on_last else range(0)


def _lacking(rule: str, steps: Steps, inside: range, window: tuple[int, int] | None) -> str:
    """What is not there of the window; empty where it is whole."""
    if window is None:
        few = rule == "latency" and len(inside) < LAST_ROWS
        return f"{len(inside)} rows; its latency is the mean of {LAST_ROWS}" if few else ""
    ends = {steps.iterations[place] for place in (*inside[:1], *inside[-1:])}
    lacking = [str(end) for end in window if end not in ends and rule != "latency"]
    return f"no step {' and '.join(lacking)}, where its window ends" if lacking else ""


def _hashed(steps: Steps, inside: range) -> str:
    """What no other trial may have; empty where there is nothing."""
    hashed = hashlib.sha256()
    for column in (steps.iterations, steps.clocks_ns, steps.rates):
        hashed.update(memoryview(column)[inside.start : inside.stop])
    return hashed.hexdigest() if inside else ""


def _apply(found: DerivedTrial, log: PlainLog, inside: range, batch: int) -> None:
    """Take the throughput by the rule, and compare it with the rates that the log prints."""
    rates = log.steps.rates
    reported = {value for value in log.reported if isfinite(value)}
    by_clock = _by_clock(found, batch)
    values = {
        "clock": by_clock,
        "rates": fsum(rates[place] for place in inside) / len(inside) if inside else None,
        "latency": batch / found.latency_s if found.latency_s else None,
        "reported": reported.pop() if len(reported) == 1 else None,
    }
    found.throughput = values.get(found.rule)
    if found.throughput is None:
        seen = f"nothing in it that the rule {found.rule} can be applied to"
        found.reasons.append(("NO-RESULT", seen))
    elif found.rule == "reported":
        _against(found, found.throughput, found.rate_mean)
    elif found.rule == "latency":
        _against(found, found.throughput, _harmonic(rates, inside))
    else:
        _against(found, by_clock, _harmonic(rates, inside[1:]))


def _by_clock(found: DerivedTrial, batch: int) -> float | None:
    """Samples per second from the first to the last step; None where no clock tells it."""
    first, last = found.span or (None, None)
    if not (first and last) or first.clock_ns is None or last.clock_ns is None:
        return None
    nanoseconds, count = last.clock_ns - first.clock_ns, last.iteration - first.iteration
    return batch * count * NS / nanoseconds if nanoseconds > 0 else None


def _against(found: DerivedTrial, value: float | None, rate: float | None) -> None:
    """Compare a number with the log's own rates: of another gang they differ by half."""
    if value and rate is not None and abs(rate / value - 1) > RATE_TOLERANCE:
        seen = f"it gives {value:.2f}, its printed rates {rate:.2f}"
        found.reasons.append(("RATE-MISMATCH", seen))


def _harmonic(rates: Sequence[float], inside: range) -> float | None:
    if not inside or not all(isfinite(rates[place]) and rates[place] > 0 for place in inside):
        return None
    return len(inside) / fsum(1 / rates[place] for place in inside)


def _whole(case: Mapping[str, object], key: str, otherwise: int = 0) -> int:
    value = number(case.get(key))
    return otherwise if value is None else int(value)
