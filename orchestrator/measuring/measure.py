"""From logs to numbers: throughput of a trial, median of a case, speedup and efficiency."""

import hashlib
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orchestrator import errors, nodeset, words
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import SECOND_NS, Rule, TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.result import Interval, Measurement, Result, Statistics

# A log with one of these is measured where that is possible, and shown with the mark.
MARKS = frozenset({"COARSE-CLOCK", "GAP", "HEADERLESS", "LOSS-NOT-FINITE", "MALFORMED-OUTSIDE"})
# Between the clock over the window and the rates that the program prints: the nine recorded logs in
# tests/samples agree within 0.5 %, a log of another world size is off by a factor of 2 or more.
RATE_TOLERANCE = 0.03
PLAUSIBLE_EFFICIENCY = 1.05
WIDE_SPREAD = 0.10
COVERAGE = 0.95
# What must not differ between a case and the 1x1 case that its speedup is taken over.
ALIKE = (
    *("image", "kernel", "driver", "torch", "cpus"),
    *("arch", "num_classes", "image_size", "memory_format", "data_backend"),
)
NOTHING = hashlib.sha256().hexdigest()  # two empty logs are no copies of each other


def keeps_out(problem: Problem) -> bool:
    """Whether a trial with this problem stays out of every median; else it is a mark."""
    return problem.code not in MARKS


def throughput(log: TrainingLog, global_batch_size: int | None, rule: Rule) -> float:
    """Samples per second of the whole gang, taken from its log as ``rule`` says.

    Args:
        global_batch_size: None where it is unknown; the rules ``rates`` and ``reported`` do not
            need it.

    Raises:
        LogError: the log lacks what the rule needs.

    Source:
        DLPerf: extract_pytorch_logs_time.py and extract_util.py for ``clock``, but by the log's
        own iteration numbers; extract_tensorflow_logs.py for ``rates``; training_perf.sh for
        ``reported``; the report of OneFlow GPT for ``latency``.
    """
    if rule == "reported":
        return _reported(log)
    if rule == "rates":
        return _mean_rate(log)
    if global_batch_size is None:
        raise errors.LogError("neither header nor name says the global batch size", code="NO-BATCH")
    if rule == "latency":
        return global_batch_size / _latency_s(log)
    return _by_clock(log, global_batch_size)


def _by_clock(log: TrainingLog, global_batch_size: int) -> float:
    """From whole numbers, so that the quotient is the only thing that is rounded."""
    first, last = _window(log)
    if log.start is None or log.end is None:
        raise _lacking(log, first if log.start is None else last)
    lasted_ns = log.end.clock_ns - log.start.clock_ns
    if lasted_ns <= 0:
        raise errors.LogError(
            f"iterations {first} and {last} are {lasted_ns / SECOND_NS:g} s apart;"
            " needed a clock that goes on",
            code="CLOCK-STEP",
        )
    return global_batch_size * (last - first) * SECOND_NS / lasted_ns


def _reported(log: TrainingLog) -> float:
    value = log.reported.get("train_throughput")
    if value is None or value <= 0:
        raise errors.LogError(
            "the log does not end with the program's own result; needed a line of train_throughput",
            code="NO-RESULT",
        )
    return value


def _mean_rate(log: TrainingLog) -> float:
    if log.window_mean is None:
        raise _lacking(log, _window(log)[1 if log.start else 0])
    return log.window_mean


def _latency_s(log: TrainingLog) -> float:
    if log.latency_s is None:
        raise _lacking(log, _window(log)[1])
    if log.latency_s <= 0:
        raise errors.LogError(
            f"the mean latency is {log.latency_s:g} s; needed more than 0", code="CLOCK-STEP"
        )
    return log.latency_s


def _window(log: TrainingLog) -> tuple[int, int]:
    if log.window is None:
        raise errors.LogError(
            f"no window of its {log.steps} steps to measure; needed more steps, or a window",
            code="WINDOW",
        )
    return log.window


def _lacking(log: TrainingLog, iteration: int) -> errors.LogError:
    first, last = log.window or (iteration, iteration)
    return errors.LogError(
        f"the window {first}-{last} needs iteration {iteration}; the log has {log.steps} steps,"
        f" from {log.first_iteration} to {log.last_iteration}",
        code="WINDOW",
    )


def global_batch_size(log: TrainingLog) -> int | None:
    """Samples of one optimizer step by the log's header; None if the header lacks them."""
    whole = log.config.get("global_batch_size")
    if isinstance(whole, int):
        return whole
    micro, world = log.config.get("micro_batch_size"), log.config.get("world_size")
    steps = log.config.get("accumulation_steps", 1)
    if isinstance(micro, int) and isinstance(world, int) and isinstance(steps, int):
        return micro * world * steps
    return None


def rate_problem(log: TrainingLog, global_batch_size: int | None, rule: Rule) -> Problem | None:
    """RATE-MISMATCH where a log contradicts itself; then it is not of this gang, or of one run.

    Printed rates are compared with the clock or latency, or with the result that is reported.
    """
    if rule == "reported":
        source, value = "the program's own result", log.reported.get("train_throughput")
        rate = log.rate.mean if log.rate else None
    else:
        by: Rule = "latency" if rule == "latency" else "clock"
        source, value = f"the {by}", _by(by, log, global_batch_size)
        rate = log.window_rate
    if not value or rate is None or abs(rate / value - 1) <= RATE_TOLERANCE:
        return None
    return Problem(
        "RATE-MISMATCH",
        f"{source} gives {value:.2f}, the log's own rates {rate:.2f} samples/s;"
        f" needed agreement within {RATE_TOLERANCE:.0%}",
    )


def _by(rule: Rule, log: TrainingLog, global_batch_size: int | None) -> float | None:
    try:
        return throughput(log, global_batch_size, rule)
    except errors.LogError:
        return None


def mismatches(log: TrainingLog, case: Case, method: Method | None) -> tuple[Problem, ...]:
    """CASE-MISMATCH with every value of the log's header that differs from its case.

    Args:
        method: None where the case was read from a file's name.
    """
    expected: dict[str, object] = {**case.document(), **case.given}
    if method is not None:
        expected["iterations"] = method.iterations
    if case.precision != "amp" or case.device == "cpu":
        expected.pop("loss_scale", None)
    differences = []
    for key, value in log.config.items():
        if key in expected and value != expected[key]:
            differences.append(f"{key} is {value} in the log and {expected[key]} in the case")
    needed = log.tells if log.config else log.tells & {"world_size"}
    if case.world_size == 1:
        needed -= {"world_size"}
    for key in sorted(needed):
        if key not in log.config:
            differences.append(f"the log says nothing of {key}, the case {expected[key]}")
    return (Problem("CASE-MISMATCH", "; ".join(differences)),) if differences else ()


def same_evidence(trials: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The trials, those invalid whose log has the steps or bytes of another trial's."""
    users: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        for key in _fingerprints(trial):
            users[key].append(trial.trial)
    return tuple(_with_doubles(trial, users) for trial in trials)


def result(case: Case, trials: Sequence[Measurement]) -> Result:
    """A case's result over its trials, without speedup and efficiency."""
    agreed = tuple(_agreeing(trials))
    values = [
        trial.throughput
        for trial in agreed
        if trial.state == "valid" and trial.throughput is not None
    ]
    totals = summary(values) if values else None
    seen = {mark.code: 0 for trial in agreed if trial.state == "valid" for mark in trial.marks}
    for code in seen:
        seen[code] = sum(code in {mark.code for mark in trial.marks} for trial in agreed)
    marks = [Problem(code, f"in {words.count(count, 'trial')}") for code, count in seen.items()]
    if totals is not None and totals.spread is not None and totals.spread > WIDE_SPREAD:
        marks.append(Problem("WIDE-SPREAD", f"{totals.spread:.1%} between the lowest and highest"))
    return Result(case, agreed, totals, None, None, (*marks, *_node_sets(agreed)))


def _node_sets(trials: Sequence[Measurement]) -> Iterable[Problem]:
    """The mark of a median over trials that ran on more than one set of nodes."""
    valid = [trial for trial in trials if trial.state == "valid" and trial.nodes]
    sets = dict.fromkeys(nodeset.fold(sorted(trial.nodes)) for trial in valid)
    if len(sets) > 1:
        yield Problem("NODE-SETS", f"its trials ran on {' and on '.join(sets)}")


def compared(results: Sequence[Result]) -> tuple[Result, ...]:
    """The results with speedup and efficiency wherever their 1x1 case has a result."""
    baselines = {
        result.case.comparable: result
        for result in results
        if result.case.world_size == 1 and result.statistics is not None
    }
    return tuple(_compared(result, baselines.get(result.case.comparable)) for result in results)


def summary(values: Sequence[float]) -> Statistics:
    """Statistics of at least one value."""
    ordered = sorted(values)
    median = statistics.median(ordered)
    return Statistics(
        n=len(ordered),
        median=median,
        mean=statistics.fmean(ordered),
        low=ordered[0],
        high=ordered[-1],
        spread=(ordered[-1] - ordered[0]) / median if len(ordered) > 1 else None,
        interval=_interval(ordered) if len(ordered) > 1 else None,
    )


def _interval(ordered: Sequence[float]) -> Interval:
    """The narrowest symmetric order-statistic interval that covers the median with 95 %.

    With fewer than 6 values none does, and [min, max] is given with what it covers: 93.75 % of
    5 values, 75 % of 3. Source: the sign test; the k-th smallest of n values exceeds the median
    with probability sum(C(n, i), i < k) / 2^n.
    """
    n = len(ordered)
    best, coverage = 0, 1 - 2 / 2**n
    ways = below = 1  # C(n, k), and their sum up to k
    for k in range(1, n // 2):
        ways = ways * (n - k + 1) // k
        below += ways
        covered = 1 - 2 * below / 2**n
        if covered < COVERAGE:
            break
        best, coverage = k, covered
    return Interval(ordered[best], ordered[n - 1 - best], coverage)


def _compared(result: Result, baseline: Result | None) -> Result:
    if result.statistics is None or baseline is None or baseline.statistics is None:
        return result
    here, there = _provenance(result), _provenance(baseline)
    differs = [key for key in ALIKE if key in here and key in there and here[key] != there[key]]
    if differs:
        seen = "; ".join(f"{key} is {here[key]}, in the 1x1 case {there[key]}" for key in differs)
        return replace(result, marks=(*result.marks, Problem("BASELINE-DIFFERS", seen)))
    speedup = result.statistics.median / baseline.statistics.median
    efficiency = speedup / result.case.world_size
    marks = result.marks
    if efficiency > PLAUSIBLE_EFFICIENCY:
        marks += (
            Problem(
                "IMPLAUSIBLE",
                f"efficiency {efficiency:.3f}: more than {result.case.world_size} ranks can give;"
                " look at the 1x1 case",
            ),
        )
    return replace(result, speedup=speedup, efficiency=efficiency, marks=marks)


def _provenance(result: Result) -> Mapping[str, str]:
    """The provenance of the first valid trial, which all valid ones share."""
    return next((trial.provenance for trial in result.trials if trial.state == "valid"), {})


def _agreeing(trials: Sequence[Measurement]) -> Iterable[Measurement]:
    """The trials; where provenance differs, all that differ from the first valid one are out."""
    valid = next((trial for trial in trials if trial.state == "valid" and trial.throughput), None)
    for trial in trials:
        here, there = _circumstances(trial), _circumstances(valid or trial)
        if valid is None or trial.state != "valid" or here == there:
            yield trial
            continue
        differs = [
            f"{key} is {here.get(key)}, in {valid.trial} {there.get(key)}"
            for key in dict.fromkeys((*there, *here))
            if here.get(key) != there.get(key)
        ]
        yield _invalid(trial, Problem("PROVENANCE", "; ".join(differs)))


def _circumstances(trial: Measurement) -> Mapping[str, str]:
    """Provenance and transport, which trials must share to be in one median."""
    labels = (
        words.removeprefix(f"{node}: ")
        for words in trial.transport.split("; ")
        for node in trial.nodes
        if words.startswith(f"{node}: ")
    )
    transport = "; ".join(sorted(labels)) or trial.transport
    return {**trial.provenance, "transport": transport}


def _fingerprints(trial: Measurement) -> tuple[str, ...]:
    if trial.evidence is None or trial.evidence.sha256 == NOTHING:
        return ()
    return tuple(
        dict.fromkeys(key for key in (trial.evidence.digest, trial.evidence.sha256) if key)
    )


def _with_doubles(trial: Measurement, users: Mapping[str, list[str]]) -> Measurement:
    others = {other for key in _fingerprints(trial) for other in users[key] if other != trial.trial}
    if not others:
        return trial
    names = ", ".join(sorted(others))
    return _invalid(trial, Problem("SAME-EVIDENCE", f"the same steps also serve {names}"))


def _invalid(trial: Measurement, problem: Problem) -> Measurement:
    state = "invalid" if trial.state == "valid" else trial.state
    return replace(trial, state=state, problems=(*trial.problems, problem))
