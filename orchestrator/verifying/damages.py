"""What is wrong with a log, or odd in it: steps, clock, and what its header says of its case."""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from math import isfinite
from operator import sub
from statistics import median

from orchestrator.verifying.differences import at, number
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.plain_log import NO_CLOCK, PlainLog, PlainStep, Steps

FROM_ZERO = frozenset({"total_ips", "imgs_per_sec", "bert"})
"""Series of steps whose first one has number 0."""
MICRO = ("batch_size_per_device", "Per-GPU Batch Size", "batch_size")
"""By programs whose word is their own, and last what others print, too."""
PROMISES = {"prof", "num_iter", "iter_num", "train_iters", "ranks"}
"""Arguments of programs that say how many steps come; without one nothing is promised."""
GAP_TIMES, RECENT = 5, 100_000
"""How many times the median of so many last iterations one may take."""
NS = 10**9
Reason = tuple[str, str]
"""A code, and what was seen."""


def damages(log: PlainLog, method: object) -> Iterator[Reason]:
    """Steps: none, missing, cut before the promised end; a clock or a rate that cannot be."""
    steps = log.steps
    if not steps:
        yield "NO-STEPS", "no line of a step"
        return
    stride = _stride(steps)
    for place, (before, here) in enumerate(pairwise(steps.iterations), 1):
        if here - before != stride:
            yield "SKIPPED-STEPS", f"line {steps.lines[place]}: step {here} after {before}"
            break
    for place, (before, here) in enumerate(pairwise(steps.clocks_ns), 1):
        if NO_CLOCK < here < before:
            yield "CLOCK-STEP", f"line {steps.lines[place]}: its clock goes back"
            break
    if PROMISES & log.facts.keys():
        yield from _cut(steps, number(at(method, "iterations")), stride)
    if not all(
        isfinite(rate) and rate > 0 for rates in (steps.rates, steps.later) for rate in rates
    ):
        yield "NOT-FINITE", "a rate in it is no positive number"


def doubts(log: PlainLog) -> Iterator[str]:
    """What a closer look at a log may find: garbled lines, several runs, a late beginning."""
    steps = log.steps
    if log.garbled:
        yield f"line {log.garbled} has words of a step and is none"
    if 0 < steps.clocks_ns.count(NO_CLOCK) < len(steps):
        yield "a step has no time, or one that cannot be"
    if steps.later:
        yield f"{len(steps.later)} steps of other epochs"
    if steps and steps.iterations[0] > _stride(steps):
        yield f"it begins at step {steps.iterations[0]}"


def _cut(steps: Steps, promised: float | None, stride: int) -> Iterator[Reason]:
    last = steps[len(steps) - 1]
    done = last.iteration + (steps.series in FROM_ZERO)
    needed = (promised or 0) - (steps.series == "dllogger")  # --prof N runs N - 1 iterations
    if done + stride <= needed:
        yield "TRUNCATED", f"it ends at step {last.iteration} of {needed:g} (line {last.line})"


def _stride(steps: Steps) -> int:
    jumps = Counter(map(sub, islice(steps.iterations, 1, None), steps.iterations))
    return max(jumps, key=lambda jump: jumps[jump], default=1) or 1


def foreign(log: PlainLog, case: Mapping[str, object], batch: int) -> Iterator[Reason]:
    """What its header says otherwise than its case.

    Args:
        batch: samples of an optimizer step.
    """
    ranks = int(number(case.get("nodes")) or 0) * int(number(case.get("gpus_per_node")) or 0)
    facts = {name: int(value) for name, value in log.facts.items() if value.isdecimal()}
    worlds = [facts[name] for name in ("world_size", "Num GPUs", "ranks") if name in facts]
    gpus = facts.get("gpu_num_per_node", facts.get("num_gpus_per_node"))
    if gpus is not None and "num_nodes" in facts:
        worlds.append(gpus * facts["num_nodes"])
    for world in worlds:
        if world != ranks:
            yield "CASE-MISMATCH", f"its header says {world} ranks, its case {ranks}"
    micro = case.get("micro_batch_size")
    name = next((name for name in MICRO if name in facts), "")
    if name and facts[name] != micro:
        yield "CASE-MISMATCH", f"its header says {name} {facts[name]}, its case {micro}"
    whole = facts.get("global_batch_size")
    if whole is not None and whole != batch:
        yield "CASE-MISMATCH", f"its header says global_batch_size {whole}, its case {batch}"


def odd(steps: Steps, first: PlainStep, last: PlainStep, inside: range) -> Iterator[Mark]:
    """A clock that shows whole seconds, and an iteration that took far longer than the others.

    Args:
        inside: places of the steps in the window, of which these are the ends.
    """
    if first.clock_ns is None or last.clock_ns is None or last.clock_ns <= first.clock_ns:
        return
    if not first.clock_ns % NS and not last.clock_ns % NS:
        seconds = (last.clock_ns - first.clock_ns) // NS
        lines = f"lines {first.line} and {last.line}"
        yield Mark("COARSE-CLOCK", (lines, f"the {seconds} s", "to 1 s"))
    recent = array("d", (took for took, _ in _took(steps, inside[-RECENT - 1 :])))
    usual = median(recent) if recent else 0
    widest, place = max(_took(steps, inside), default=(0, 0))
    if 0 < GAP_TIMES * usual < widest:
        iteration, line = steps.iterations[place], steps.lines[place]
        shown = (f"{widest / NS:.3f} s", f"{usual / NS:.3f} s")
        yield Mark("GAP", (f"line {line}:", f"iteration {iteration},", *shown))


def _took(steps: Steps, inside: range) -> Iterator[tuple[float, int]]:
    """Nanoseconds of an iteration, from step to step, and the place of the later one."""
    for place in inside[1:]:
        ahead = steps.iterations[place] - steps.iterations[place - 1]
        if ahead > 0:
            yield (steps.clocks_ns[place] - steps.clocks_ns[place - 1]) / ahead, place
