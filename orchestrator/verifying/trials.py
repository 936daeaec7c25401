"""States and throughputs of trials, from their raw logs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from statistics import median

from orchestrator.verifying import damages, plain_log
from orchestrator.verifying.damages import NS, Reason
from orchestrator.verifying.differences import at, number, text
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.plain_log import PlainLog
from orchestrator.verifying.plain_steps import LAST_ROWS, PlainStep, Steps, Stretch

WINDOWS = {
    "ngc_pytorch_rn50": (25, 125),
    "reference_rn50": (25, 125),
    "ngc_tensorflow_rn50": (21, 120),
    "oneflow_rn50": (20, 120),
    "oneflow_bert": (19, 119),
    "all_reduce": (6, 25),
}
"""Between which iterations a log is measured where a method says nothing."""
RATE_TOLERANCE = 0.03
RESULT_TOLERANCE, SAMPLED_TOLERANCE = 0.001, 0.01
"""Of a program's own result, whether it prints every step or some."""


@dataclass(slots=True)
class DerivedTrial:
    """What follows from the raw logs of a trial.

    Args:
        reasons: why it does not count; none if it does.
        marks: what is odd in it all the same.
        rule: how its throughput was taken.
        span: the two steps, or the first and the last row, of what is measured.
        result_line: where the program reports what the rule ``reported`` takes.
        doubts: why it may not count; what would tell is beyond this reader.
        begun_ns: when its first step was printed.
        steps, words: hashes of what must not be the same in two trials: times, and what stands
            beside them.
        trace: the mean of the rates from one iteration to another.
    """

    throughput: float | None = None
    reasons: list[Reason] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    rule: str = ""
    span: tuple[PlainStep, PlainStep] | None = None
    result_line: int | None = None
    begun_ns: int | None = None
    latency_s: float | None = None
    memory_mib: int | None = None
    rate_mean: float | None = None
    steps: str = ""
    words: str = ""
    trace: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def lines(self) -> list[int] | None:
        """The first and the last line of the raw log that the throughput stands on."""
        if self.rule == "reported":
            return [self.result_line] * 2 if self.result_line else None
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
    workload, method, batch = text(plan.get("workload")), at(plan, "method"), global_batch(case)
    log, found = plain_log.read(path, _window(workload, method)), DerivedTrial()
    steps = log.steps
    found.rule = _rule(log, workload, method)
    found.doubts += damages.doubts(log)
    found.memory_mib = log.memory_mib if steps.series == "gpt" else None
    found.reasons += [*damages.damages(log, method), *damages.foreign(log, case, batch)]
    if steps.first:
        found.begun_ns = steps.first.clock_ns
    if steps.first and steps.is_positive:
        found.rate_mean = steps.rates.mean
        found.trace = steps.rates.trace(steps.first.iteration, steps.stride, steps.count)
    is_unwindowed = found.rule in ("latency", "reported") and at(method, "window") is None
    _measure(found, log, None if is_unwindowed else steps.window, batch)
    return found


def _rule(log: PlainLog, workload: str, method: object) -> str:
    if rule := text(at(method, "rule")):
        return rule
    if workload == "oneflow_gpt" or (log.steps.last and log.steps.last.latency is not None):
        return "latency"
    if log.steps.series == "all_reduce":
        return "rates"
    benchmark = log.facts.get("mode") == "training_benchmark" or log.steps.series == "total_ips"
    return "reported" if benchmark and at(method, "window") is None else "clock"


def _window(workload: str, method: object) -> tuple[int, int] | None:
    window = at(method, "window")
    if isinstance(window, list) and len(window) == 2:
        return int(window[0]), int(window[1])
    return WINDOWS.get(workload)


def _measure(
    found: DerivedTrial, log: PlainLog, window: tuple[int, int] | None, batch: int
) -> None:
    inside = _inside(found, log.steps, window)
    if lacking := _lacking(found.rule, inside, window):
        found.reasons.append(("WINDOW", lacking))
        return
    counted = inside if window else log.steps
    found.steps, found.words = counted.digest, counted.words
    if inside.first and inside.last:
        found.span = (inside.first, inside.last)
        found.marks += damages.odd(inside)
        if inside.latency:
            found.latency_s = float(inside.latency / inside.count)
    _apply(found, log, inside, batch)


def _inside(found: DerivedTrial, steps: Steps, window: tuple[int, int] | None) -> Stretch:
    """The steps that are measured; none where steps are missing, or all count."""
    if window:
        return Stretch() if "SKIPPED-STEPS" in dict(found.reasons) else steps.inside
    return Stretch.of(steps.rows) if found.rule == "latency" else Stretch()


def _lacking(rule: str, inside: Stretch, window: tuple[int, int] | None) -> str:
    """What is not there of the window; empty where it is whole."""
    if window is None:
        few = rule == "latency" and inside.count < LAST_ROWS
        return f"{inside.count} rows; its latency is the mean of {LAST_ROWS}" if few else ""
    ends = {step.iteration for step in (inside.first, inside.last) if step}
    lacking = [str(end) for end in window if end not in ends and rule != "latency"]
    return f"no step {' and '.join(lacking)}, where its window ends" if lacking else ""


def _apply(found: DerivedTrial, log: PlainLog, inside: Stretch, batch: int) -> None:
    """Take the throughput by the rule, and compare it with the rates that the log prints."""
    reported = {value for _, value in log.reported if isfinite(value)}
    by_clock = _by_clock(found, batch)
    values = {
        "clock": by_clock,
        "rates": inside.weighed,
        "arithmetic": inside.rates.mean,
        "latency": batch / found.latency_s if found.latency_s else None,
        "reported": reported.pop() if len(reported) == 1 else None,
    }
    found.throughput = values.get(found.rule)
    if found.throughput is None:
        seen = f"nothing in it that the rule {found.rule} can be applied to"
        found.reasons.append(("NO-RESULT", seen))
    elif found.rule == "reported":
        found.result_line = next(line for line, value in log.reported if isfinite(value))
        steps = log.steps
        is_whole = steps.jumps.keys() <= {1} and not steps.later
        share = RESULT_TOLERANCE if is_whole else SAMPLED_TOLERANCE
        _against(found, found.throughput, found.rate_mean, share)
        if steps.made:
            _against(found, batch * NS, median(steps.made))
    elif found.rule == "latency":
        _against(found, found.throughput, inside.rate)
    else:
        _against(found, by_clock, inside.rate_after_first)


def _by_clock(found: DerivedTrial, batch: int) -> float | None:
    """Samples per second from the first to the last step; None where no clock tells it."""
    first, last = found.span or (None, None)
    if not (first and last) or first.clock_ns is None or last.clock_ns is None:
        return None
    nanoseconds, count = last.clock_ns - first.clock_ns, last.iteration - first.iteration
    return batch * count * NS / nanoseconds if nanoseconds > 0 else None


def _against(
    found: DerivedTrial, value: float | None, rate: float | None, share: float = RATE_TOLERANCE
) -> None:
    """Compare a number with the log's own rates: of another gang they differ by half."""
    if value and rate is not None and abs(rate / value - 1) > share:
        seen = f"it gives {value:.2f}, its printed rates {rate:.2f}"
        found.reasons.append(("RATE-MISMATCH", seen))


def _whole(case: Mapping[str, object], key: str, otherwise: int = 0) -> int:
    value = number(case.get(key))
    return otherwise if value is None else int(value)
