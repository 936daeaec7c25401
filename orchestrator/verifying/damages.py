"""What is wrong with a log, or odd in it: steps, clock, and what its header says of its case."""

from collections.abc import Iterator, Mapping
from statistics import median

from orchestrator.verifying.differences import at, number
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.plain_log import PlainLog
from orchestrator.verifying.plain_steps import PlainStep, Steps, Stretch

FROM_ZERO = frozenset({"total_ips", "imgs_per_sec", "bert"})
"""Series of steps whose first one has number 0."""
MICRO = ("batch_size_per_device", "Per-GPU Batch Size", "batch_size")
"""By programs whose word is their own, and last what others print, too."""
PROMISES = {"prof", "num_iter", "iter_num", "train_iters", "ranks"}
"""Arguments of programs that say how many steps come; without one nothing is promised."""
FEWER = 3
"""Decimals that a time without a fraction lacks beside another."""
GAP_TIMES = 5
"""How many times the median of the last iterations one may take."""
NS = 10**9
Reason = tuple[str, str]
"""A code, and what was seen."""


def damages(log: PlainLog, method: object) -> Iterator[Reason]:
    """Steps: none, missing, cut before the promised end; a clock or a rate that cannot be."""
    steps = log.steps
    if steps.last is None:
        yield "NO-STEPS", "no line of a step"
        return
    stride = steps.stride
    skips = (first for jump, first in steps.jumped.items() if jump != stride or jump < 1)
    for line, seen in sorted(skips)[:1]:
        yield "SKIPPED-STEPS", f"line {line}: {seen}"
    if steps.back:
        yield "CLOCK-STEP", f"line {steps.back}: its clock goes back"
    is_gapless = steps.jumps.keys() <= {stride}
    has_ended = is_gapless and log.ended_after == steps.count + steps.later
    if PROMISES & log.facts.keys() and not has_ended:
        yield from _cut(steps, steps.last, number(at(method, "iterations")))
    if not steps.is_positive:
        yield "NOT-FINITE", "a rate in it is no positive number"


def doubts(log: PlainLog) -> Iterator[str]:
    """What a closer look at a log may find: garbled lines, several runs, a late beginning."""
    steps = log.steps
    if log.garbled:
        yield f"line {log.garbled} has words of a step and is none"
    if 0 < steps.timeless < steps.count:
        yield "a step has no time, or one that cannot be"
    if steps.later:
        yield f"{steps.later} steps of other epochs"
    if steps.first and steps.first.iteration > steps.stride:
        yield f"it begins at step {steps.first.iteration}"


def _cut(steps: Steps, last: PlainStep, promised: float | None) -> Iterator[Reason]:
    done = last.iteration + (steps.series in FROM_ZERO)
    needed = (promised or 0) - (steps.series == "dllogger")  # --prof N runs N - 1 iterations
    if done + steps.stride <= needed:
        yield "TRUNCATED", f"it ends at step {last.iteration} of {needed:g} (line {last.line})"


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


def odd(inside: Stretch) -> Iterator[Mark]:
    """A clock that shows whole seconds, and an iteration that took far longer than the others.

    Args:
        inside: the steps in the window.
    """
    first, last = inside.first, inside.last
    if not (first and last):
        return
    if first.clock_ns is not None and last.clock_ns is not None:
        if last.clock_ns <= first.clock_ns:
            return
        most = max(first.decimals, last.decimals)
        whole = [it for it in (first, last) if (it.clock_ns or 0) % NS == 0]
        coarse = [str(it.line) for it in whole if len(whole) > 1 or it.decimals + FEWER <= most]
        if coarse:
            lasted = f"the {(last.clock_ns - first.clock_ns) / NS:g} s"
            yield Mark("COARSE-CLOCK", (*coarse, lasted, "to 1 s"))
    usual = median(inside.took) if inside.took else 0
    widest, iteration, line, rate = inside.widest
    if 0 < GAP_TIMES * usual < widest:
        shown = (f"{widest / NS:.3f} s", f"{usual / NS:.3f} s")
        if usual < 1:  # one over a rate
            shown = (f"the rate {rate:g}", f"{1 / usual:g}")
        yield Mark("GAP", (f"line {line}:", f"iteration {iteration},", *shown))
