"""Decides which trials are invalid or marked: logs against cases, trials against others."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import RATE_TOLERANCE, SECOND_NS, Rule, TrainingLog
from orchestrator.model.log import global_batch_size as batch_by_header
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement

# A log with one of these counts, and is shown with the mark.
MARKS = frozenset(
    {"CLOCK-JUMP", "COARSE-CLOCK", "CRASHED", "GAP", "HEADERLESS", "LOSS-NOT-FINITE", "SHORT-RUN"}
)
UNKNOWN = "unknown"  # value of a key that a trial's provenance lacks
# Between a program's own result and the mean of the rates that it prints: of all steps they are the
# same number, of every tenth one the recorded logs differ by 0.41 % at most.
RESULT_TOLERANCE, SAMPLED_TOLERANCE = 0.001, 0.01
# Between the rates of such a program and its clock, by the median step: recorded logs differ by
# 0.14 % at most. A difference above the first is a mark, above the second a problem.
REPORTED_AGREEMENT, REPORTED_TOLERANCE = 0.0035, 0.007
NOTHING = hashlib.sha256().hexdigest()  # empty logs are not copies of each other


def measure_log(
    log: TrainingLog, case: Case, method: Method | None, *, trial: str, repeat: int, path: str
) -> Measurement:
    """Return the measurement of a trial's log: invalid with problems, else valid.

    Args:
        method: None if the log belongs to no sweep.
        path: of the log, in reports.
    """
    if method and method.rule:
        log = replace(log, rule=method.rule)
    throughput, rate_problems = value(log, case.global_batch_size)
    if batch_by_header(log.config) not in (None, case.global_batch_size):
        throughput, rate_problems = None, []  # a problem already, and no batch can be trusted
    found = (*log.problems, *mismatches(log, case, method), *rate_problems)
    problems = tuple(problem for problem in found if keeps_out(problem, log.rule))
    return Measurement(
        trial=trial,
        repeat=repeat,
        attempt=0,
        state="invalid" if problems else "valid",
        throughput=throughput,
        problems=problems,
        marks=tuple(problem for problem in found if not keeps_out(problem, log.rule)),
        path=path,
        log=log,
    )


def value(log: TrainingLog, batch: int | None) -> tuple[float | None, list[Problem]]:
    """Return the throughput in samples/s by the log's rule, and problems that the log lacks.

    Args:
        batch: global batch size; None if neither header nor case has it.
    """
    if log.runs > 1 or (log.steps == 0 and log.rule != "reported"):
        return None, []
    value = compute_throughput(log, batch, log.rule)
    if isinstance(value, Problem):
        reported = {problem.code for problem in log.problems}
        cause = {"NO-CLOCK", "NOT-FINITE"} & reported
        again = value.code in reported or (value.code == "WINDOW" and cause)
        return None, [] if again else [value]
    mismatch = rate_problem(log, batch)
    return value, [mismatch] if mismatch else []


def compute_throughput(
    log: TrainingLog, global_batch_size: int | None, rule: Rule
) -> float | Problem:
    """Return samples per second of the whole gang by a rule, or what the log lacks for it.

    Only ``clock`` and ``latency`` need the batch.

    Source:
        DLPerf: extract_pytorch_logs_time.py and extract_util.py for ``clock``, but by the log's
        own iteration numbers; extract_tensorflow_logs.py for ``arithmetic``; training_perf.sh for
        ``reported``; the report of OneFlow GPT for ``latency``.
    """
    if rule == "reported":
        value = log.reported.get("train_throughput")
        seen = "the log does not end with the program's own result"
        lacking = Problem("NO-RESULT", f"{seen}; needed a line of train_throughput")
        return value if value is not None and value > 0 else lacking
    if rule in ("rates", "arithmetic"):
        rate = log.window_weighed if rule == "rates" else log.window_mean
        return _lacking(log, end=1 if log.start else 0) if rate is None else rate
    if global_batch_size is None:
        return Problem("NO-BATCH", "neither header nor name says the global batch size")
    if rule == "latency":
        if log.latency_s is None:
            return _lacking(log, end=1)
        if log.latency_s <= 0:
            seen = f"the mean latency is {log.latency_s:g} s; needed more than 0"
            return Problem("CLOCK-STEP", seen)
        return global_batch_size / log.latency_s
    if log.window is None or log.start is None or log.end is None:
        return _lacking(log, end=0 if log.start is None else 1)
    first, last = log.window
    lasted_ns = log.end.clock_ns - log.start.clock_ns
    if lasted_ns <= 0:
        seen = f"iterations {first} and {last} are {lasted_ns / SECOND_NS:g} s apart"
        return Problem("CLOCK-STEP", f"{seen}; needed a clock that goes on")
    # Of whole numbers, only the quotient is rounded.
    return global_batch_size * (last - first) * SECOND_NS / lasted_ns


def _lacking(log: TrainingLog, *, end: int) -> Problem:
    """Return WINDOW for a log without the first (0) or last (1) step of its window."""
    seen = f"no window of its {log.steps} steps to measure; needed more steps, or a window"
    if log.window:
        first, last = log.window
        seen = f"the window {first}-{last} needs iteration {log.window[end]}; the log has"
        seen = f"{seen} {log.steps} steps, from {log.first_iteration} to {log.last_iteration}"
    return Problem("WINDOW", seen)


def keeps_out(problem: Problem, rule: Rule) -> bool:
    """Return True if a trial with this problem stays out of every median; else it is a mark."""
    return problem.code not in MARKS and (problem.code != "NO-CLOCK" or rule == "clock")


def rate_problem(log: TrainingLog, global_batch_size: int | None) -> Problem | None:
    """Return RATE-MISMATCH if a log contradicts itself: it is not of this gang, or of several runs.

    Printed rates are compared with the clock or latency. With ``reported``, the program's own
    result is compared with its rates, and these, by the clock, with the batch. A smaller difference
    is a CLOCK-JUMP, which the log's reader notes if the header has the batch.
    """
    checks: list[tuple[str, float | None, float, str]]
    if log.rule == "reported":
        rate = log.rate.mean if log.rate else None
        every_step = log.steps == (log.last_iteration or 0) - (log.first_iteration or 0) + 1
        tolerance = RESULT_TOLERANCE if every_step else SAMPLED_TOLERANCE
        own = log.reported.get("train_throughput")
        checks = [("program's own result", own, tolerance, "RATE-MISMATCH")]
        if log.samples and global_batch_size and rate:
            by_clock = rate * global_batch_size / log.samples
            checks += [
                ("clock", by_clock, REPORTED_TOLERANCE, "RATE-MISMATCH"),
                ("clock", by_clock, REPORTED_AGREEMENT, "CLOCK-JUMP"),
            ]
    else:
        rate = log.window_rate
        by: Rule = "latency" if log.rule == "latency" else "clock"
        found = compute_throughput(log, global_batch_size, by)
        value = None if isinstance(found, Problem) else found
        checks = [(by, value, RATE_TOLERANCE, "RATE-MISMATCH")]
        if batch_by_header(log.config) is None:
            checks.append((by, value, log.agreement, "CLOCK-JUMP"))
    for source, value, tolerance, code in checks:
        if value and rate is not None and abs(rate / value - 1) > tolerance:
            return Problem(
                code,
                f"the {source} gives {value:.2f}, the log's own rates {rate:.2f} samples/s;"
                f" needed agreement within {tolerance * 100:g}%",
            )
    return None


def mismatches(log: TrainingLog, case: Case, method: Method | None) -> tuple[Problem, ...]:
    """Return CASE-MISMATCH with all values of the log's header that differ from its case."""
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


def same_evidence(trials: Sequence[Measurement]) -> list[Measurement]:
    """Return the trials; one whose log has the bytes, or the window, of another's is invalid."""
    users: dict[str, list[str]] = defaultdict(list)
    evidence: list[set[str]] = []
    for trial in trials:
        log = trial.log
        is_empty = log is None or log.sha256 == NOTHING
        evidence.append(set() if log is None or is_empty else {log.digest, log.sha256} - {""})
        for key in evidence[-1]:
            users[key].append(trial.trial)
    judged = []
    for trial, keys in zip(trials, evidence, strict=True):
        others = {other for key in keys for other in users[key]} - {trial.trial}
        text = f"the same steps also serve {', '.join(sorted(others))}"
        same = [Problem("SAME-EVIDENCE", text)] if others else []
        judged.append(trial.with_problems(same))
    return judged


def agreeing(trials: Sequence[Measurement]) -> Iterable[Measurement]:
    """Return the trials; valid ones that differ in provenance from most of them are out.

    Without a majority all are out, since nothing says which of them are right.
    """
    valid = [_circumstances(it) for it in trials if it.state == "valid" and it.throughput]
    most = [here for here in valid if 2 * valid.count(here) > len(valid)]
    which, end = ("most", "") if most else ("other", "; no majority agrees")
    for trial in trials:
        here, others = _circumstances(trial), most or valid
        if trial.state != "valid" or not others or here in most:
            yield trial
            continue
        differs = []
        for key in dict.fromkeys(key for it in (*others, here) for key in it):
            own = here.get(key, UNKNOWN)
            values = dict.fromkeys(it.get(key, UNKNOWN) for it in others)
            if seen := " and ".join(value for value in values if value != own):
                differs.append(f"{key} is {own}, in {which} trials {seen}")
        yield trial.with_problems([Problem("PROVENANCE", "; ".join(differs) + end)])


def _circumstances(trial: Measurement) -> Mapping[str, str]:
    """Return provenance and transport, which trials of one median must share."""
    labels = (
        words.removeprefix(f"{node}: ")
        for words in trial.transport.split("; ")
        for node in trial.nodes
        if words.startswith(f"{node}: ")
    )
    transport = "; ".join(sorted(labels)) or trial.transport
    return {**trial.provenance, "transport": transport}
