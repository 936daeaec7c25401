"""States and throughputs of trials, from their raw logs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import fsum, isfinite
from pathlib import Path

from orchestrator.verifying import plain_log, plain_nccl
from orchestrator.verifying.differences import at, items, number, text
from orchestrator.verifying.plain_log import PlainLog, PlainStep

WINDOWS = {
    "ngc_pytorch_rn50": (25, 125),
    "reference_rn50": (25, 125),
    "ngc_tensorflow_rn50": (21, 120),
    "oneflow_rn50": (20, 120),
    "oneflow_bert": (19, 119),
}
"""Between which iterations a log is measured where a method says nothing."""
LAST_ROWS = 5
FROM_ZERO = frozenset({"total_ips", "imgs_per_sec", "bert"})
"""Series of steps whose first one has number 0."""
MICRO = ("batch_size", "batch_size_per_device", "Per-GPU Batch Size")
RATE_TOLERANCE = 0.03


@dataclass(slots=True)
class DerivedTrial:
    """What follows from the raw logs of a trial.

    Args:
        reasons: why it does not count; none if it does.
        rule: how its throughput was taken.
        span: the two steps, or the first and the last row, that it stands on.
        steps: what must not be the same in two trials.
    """

    throughput: float | None = None
    reasons: list[str] = field(default_factory=list)
    rule: str = ""
    span: tuple[PlainStep, PlainStep] | None = None
    latency_s: float | None = None
    memory_mib: int | None = None
    rate_mean: float | None = None
    steps: tuple[object, ...] = ()

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
    workload, method = text(plan.get("workload")), at(plan, "method")
    found.rule = _rule(log, workload, method)
    found.memory_mib = log.memory_mib
    rates = [step.rate for step in log.steps]
    if rates and all(isfinite(rate) and rate > 0 for rate in rates):
        found.rate_mean = fsum(rates) / len(rates)
    found.reasons += _damages(log, method)
    found.reasons += _foreign(log, case)
    _measure(found, log, _window(workload, method, log), global_batch(case))
    return found


def transport(folder: Path, attempt: Mapping[str, object]) -> tuple[str, list[str]]:
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
            reasons.append(f"{path.name}: NCCL's lines do not prove {wanted}: {said.label}")
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
    if workload == "oneflow_gpt" or any(step.latency is not None for step in log.steps):
        return "latency"
    benchmark = log.facts.get("mode") == "training_benchmark"
    benchmark |= any(step.series == "total_ips" for step in log.steps)
    if benchmark and at(method, "window") is None:
        return "reported"
    return "clock"


def _window(workload: str, method: object, log: PlainLog) -> tuple[int, int] | None:
    window = at(method, "window")
    if isinstance(window, list) and len(window) == 2:
        return int(window[0]), int(window[1])
    if _rule(log, workload, method) in ("latency", "reported"):
        return None
    return WINDOWS.get(workload)


def _measure(
    found: DerivedTrial, log: PlainLog, window: tuple[int, int] | None, batch: int
) -> None:
    steps = _first_epoch(log)
    inside = [step for step in steps if window and window[0] <= step.iteration <= window[1]]
    if window is None and found.rule == "latency":
        inside = steps[-LAST_ROWS:]
        if len(inside) < LAST_ROWS:
            found.reasons.append(f"{len(inside)} rows; its latency is the mean of {LAST_ROWS}")
            return
    ends = {step.iteration: step for step in inside}
    if window and found.rule != "latency" and not {*window} <= ends.keys():
        lacking = [str(end) for end in window if end not in ends]
        found.reasons.append(f"no step {' and '.join(lacking)}, where its window ends")
        return
    found.steps = tuple((step.iteration, step.clock_ns, step.rate) for step in inside)
    if inside:
        found.span = (inside[0], inside[-1])
    _apply(found, log, inside, batch)
    if found.rule in ("reported", "rates") and (not found.span or found.span[0].clock_ns is None):
        found.span = None


def _apply(found: DerivedTrial, log: PlainLog, inside: list[PlainStep], batch: int) -> None:
    latencies = [step.latency for step in inside if step.latency is not None]
    if latencies:
        found.latency_s = float(sum(latencies) / len(latencies))
    if found.rule == "clock" and inside:
        _by_clock(found, inside[0], inside[-1], batch)
        _against_rates(found, inside[1:])
    elif found.rule == "rates" and inside:
        found.throughput = fsum(step.rate for step in inside) / len(inside)
    elif found.rule == "latency" and found.latency_s:
        found.throughput = batch / found.latency_s
    elif found.rule == "reported" and len(set(log.reported)) == 1:
        found.throughput = log.reported[0]
    else:
        found.reasons.append(f"nothing in it that the rule {found.rule} can be applied to")


def _by_clock(found: DerivedTrial, first: PlainStep, last: PlainStep, batch: int) -> None:
    if first.clock_ns is None or last.clock_ns is None:
        found.span = None
        found.reasons.append("no time in its lines")
        return
    nanoseconds, count = last.clock_ns - first.clock_ns, last.iteration - first.iteration
    if nanoseconds <= 0:
        words = f"{nanoseconds / 10**9} s from line {first.line} to {last.line}"
        found.reasons.append(f"its clock says {words}")
        return
    found.throughput = batch * count * 10**9 / nanoseconds


def _against_rates(found: DerivedTrial, steps: list[PlainStep]) -> None:
    """Compare a clock with the rates that the log prints: of another gang they differ by half."""
    rates = [step.rate for step in steps]
    if not found.throughput or not rates or not all(isfinite(it) and it > 0 for it in rates):
        return
    harmonic = len(rates) / sum(1 / rate for rate in rates)
    if abs(harmonic / found.throughput - 1) > RATE_TOLERANCE:
        found.reasons.append(
            f"its clock gives {found.throughput:.2f}, its printed rates {harmonic:.2f}"
        )


def _first_epoch(log: PlainLog) -> list[PlainStep]:
    return [step for step in log.steps if step.epoch == log.steps[0].epoch]


def _damages(log: PlainLog, method: object) -> Iterator[str]:
    """What is wrong with the steps: none, cut before the promised end, missing, or twice."""
    if not log.steps:
        yield "no line of a step"
        return
    steps = _first_epoch(log)
    stride = _stride(steps)
    for before, step in pairwise(steps):
        jump = step.iteration - before.iteration
        if jump != stride:
            yield f"line {step.line}: step {step.iteration} after {before.iteration}"
            break
        if (
            before.clock_ns is not None
            and step.clock_ns is not None
            and step.clock_ns < before.clock_ns
        ):
            yield f"line {step.line}: its clock goes back"
            break
    promised = number(at(method, "iterations"))
    if promised is not None:
        series = steps[-1].series
        done = steps[-1].iteration + (series in FROM_ZERO)
        needed = promised - (series == "dllogger")  # --prof N runs N - 1 iterations
        if done + stride <= needed:
            yield f"it ends at step {steps[-1].iteration} of {needed:g} (line {steps[-1].line})"
    if any(not isfinite(step.rate) or step.rate <= 0 for step in log.steps):
        yield "a rate in it is no positive number"


def _stride(steps: list[PlainStep]) -> int:
    jumps = [step.iteration - before.iteration for before, step in pairwise(steps)]
    return max(set(jumps), key=jumps.count, default=1) or 1


def _foreign(log: PlainLog, case: Mapping[str, object]) -> Iterator[str]:
    """What its header says otherwise than its case."""
    ranks = _whole(case, "nodes") * _whole(case, "gpus_per_node")
    facts = {name: int(value) for name, value in log.facts.items() if value.isdigit()}
    worlds = [facts[name] for name in ("world_size", "Num GPUs") if name in facts]
    gpus = facts.get("gpu_num_per_node", facts.get("num_gpus_per_node"))
    if gpus is not None and "num_nodes" in facts:
        worlds.append(gpus * facts["num_nodes"])
    for world in worlds:
        if world != ranks:
            yield f"its header says {world} ranks, its case {ranks}"
    for name in MICRO:
        micro = case.get("micro_batch_size")
        if name in facts and facts[name] != micro:
            yield f"its header says {name} {facts[name]}, its case {micro}"
    whole = facts.get("global_batch_size")
    if whole is not None and whole != global_batch(case):
        yield f"its header says global_batch_size {whole}, its case {global_batch(case)}"


def _whole(case: Mapping[str, object], key: str, otherwise: int = 0) -> int:
    value = number(case.get(key))
    return otherwise if value is None else int(value)
