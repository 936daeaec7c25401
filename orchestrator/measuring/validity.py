"""Decides which trials are invalid or marked: logs against cases, trials against others."""

import contextlib
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from orchestrator import errors
from orchestrator.measuring import throughputs
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import RATE_TOLERANCE, Rule, TrainingLog
from orchestrator.model.log import global_batch_size as batch_by_header
from orchestrator.model.problem import Problem
from orchestrator.model.result import Evidence, Measurement

# A log with one of these counts, and is shown with the mark.
MARKS = frozenset(
    {
        *("CLOCK-JUMP", "COARSE-CLOCK", "CRASHED", "GAP", "HEADERLESS", "LOSS-NOT-FINITE"),
        "SHORT-RUN",
    }
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
    rule = (method.rule if method else None) or log.rule
    throughput, rate_problems = value(log, case.global_batch_size, rule)
    if batch_by_header(log.config) not in (None, case.global_batch_size):
        throughput, rate_problems = None, []  # a problem already, and no batch can be trusted
    found = (*log.problems, *mismatches(log, case, method), *rate_problems)
    problems = tuple(problem for problem in found if keeps_out(problem, rule))
    return Measurement(
        trial=trial,
        repeat=repeat,
        attempt=0,
        state="invalid" if problems else "valid",
        throughput=throughput,
        rate=log.rate.mean if log.rate else None,
        problems=problems,
        marks=tuple(problem for problem in found if not keeps_out(problem, rule)),
        evidence=Evidence(path, log.evidence(rule), log.sha256, log.digest, log.words),
        provenance={},
        latency_s=log.latency_s,
        memory_mib=log.memory_mib,
        trace=log.trace,
        window=log.window,
        rule=rule,
        measured_s=log.measured_s,
    )


def value(
    log: TrainingLog, batch: int | None, rule: Rule | None
) -> tuple[float | None, list[Problem]]:
    """Return the throughput in samples/s by a rule, and problems that are not among the log's.

    Args:
        batch: global batch size; None if neither header nor case has it.
        rule: None for the log's own.
    """
    if log.runs > 1 or (log.steps == 0 and log.rule != "reported"):
        return None, []
    rule_used = rule or log.rule
    try:
        value = throughputs.of_log(log, batch, rule_used)
    except errors.LogError as error:
        reported = {problem.code for problem in log.problems}
        cause = {"NO-CLOCK", "NOT-FINITE"} & reported
        again = error.code in reported or (error.code == "WINDOW" and cause)
        return None, [] if again else [Problem(error.code, error.cause)]
    mismatch = rate_problem(log, batch, rule_used)
    return value, [mismatch] if mismatch else []


def keeps_out(problem: Problem, rule: Rule) -> bool:
    """Return True if a trial with this problem stays out of every median; else it is a mark."""
    return problem.code not in MARKS and (problem.code != "NO-CLOCK" or rule == "clock")


def rate_problem(log: TrainingLog, global_batch_size: int | None, rule: Rule) -> Problem | None:
    """Return RATE-MISMATCH if a log contradicts itself: it is not of this gang, or of several runs.

    Printed rates are compared with the clock or latency. With ``reported``, the program's own
    result is compared with its rates, and these, by the clock, with the batch. A smaller difference
    is a CLOCK-JUMP, which the log's reader notes if the header has the batch.
    """
    checks: list[tuple[str, float | None, float, str]]
    if rule == "reported":
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
        rate, value = log.window_rate, None
        by: Rule = "latency" if rule == "latency" else "clock"
        with contextlib.suppress(errors.LogError):
            value = throughputs.of_log(log, global_batch_size, by)
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
    """Return CASE-MISMATCH with all values of the log's header that differ from its case.

    Args:
        method: None if the case was read from a file's name.
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


def same_evidence(trials: Sequence[Measurement]) -> list[Measurement]:
    """Return the trials; one whose log has most steps, or the bytes, of another's is invalid."""
    users: dict[object, list[str]] = defaultdict(list)
    prints = [_fingerprints(trial.evidence) for trial in trials]
    for trial, keys in zip(trials, prints, strict=True):
        for key in itertools.chain(*keys):
            users[key].append(trial.trial)
    judged = []
    for trial, (whole, words) in zip(trials, prints, strict=True):
        others = {other for key in whole for other in users[key]}
        shared = Counter(other for key in words for other in users[key])
        others |= {other for other, steps in shared.items() if 2 * steps > len(words)}
        others.discard(trial.trial)
        text = f"the same steps also serve {', '.join(sorted(others))}"
        same = [Problem("SAME-EVIDENCE", text)] if others else []
        judged.append(trial.with_problems(same))
    return judged


def _fingerprints(evidence: Evidence | None) -> tuple[set[str], frozenset[bytes]]:
    """Return the hashes of a whole log, and those of its steps' losses and rates."""
    if evidence is None:
        return set(), frozenset()
    whole = {evidence.digest, evidence.sha256} - {""}
    return set() if evidence.sha256 == NOTHING else whole, evidence.words


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
