"""Computes the throughput of one trial from its log, by all rules."""

from orchestrator import errors
from orchestrator.model.log import SECOND_NS, Rule, TrainingLog


def of_log(log: TrainingLog, global_batch_size: int | None, rule: Rule) -> float:
    """Return samples per second of the whole gang by a rule.

    Args:
        global_batch_size: None if unknown; ``rates``, ``arithmetic`` and ``reported`` do not need
            it.

    Raises:
        LogError: the log lacks what the rule needs.

    Source:
        DLPerf: extract_pytorch_logs_time.py and extract_util.py for ``clock``, but by the log's
        own iteration numbers; extract_tensorflow_logs.py for ``arithmetic``; training_perf.sh for
        ``reported``; the report of OneFlow GPT for ``latency``.
    """
    if rule == "reported":
        value = log.reported.get("train_throughput")
        if value is None or value <= 0:
            raise errors.LogError(
                "the log does not end with the program's own result; needed a line of"
                " train_throughput",
                code="NO-RESULT",
            )
        return value
    if rule in ("rates", "arithmetic"):
        rate = log.window_weighed if rule == "rates" else log.window_mean
        if rate is None:
            raise _lacking(log, end=1 if log.start else 0)
        return rate
    if global_batch_size is None:
        raise errors.LogError("neither header nor name says the global batch size", code="NO-BATCH")
    if rule == "clock":
        return _by_clock(log, global_batch_size)
    if log.latency_s is None:
        raise _lacking(log, end=1)
    if log.latency_s <= 0:
        raise errors.LogError(
            f"the mean latency is {log.latency_s:g} s; needed more than 0", code="CLOCK-STEP"
        )
    return global_batch_size / log.latency_s


def _by_clock(log: TrainingLog, global_batch_size: int) -> float:
    """Divide whole numbers, so that only the quotient is rounded."""
    if log.window is None or log.start is None or log.end is None:
        raise _lacking(log, end=0 if log.start is None else 1)
    first, last = log.window
    lasted_ns = log.end.clock_ns - log.start.clock_ns
    if lasted_ns <= 0:
        raise errors.LogError(
            f"iterations {first} and {last} are {lasted_ns / SECOND_NS:g} s apart;"
            " needed a clock that goes on",
            code="CLOCK-STEP",
        )
    return global_batch_size * (last - first) * SECOND_NS / lasted_ns


def _lacking(log: TrainingLog, *, end: int) -> errors.LogError:
    """Return the error of a log without the step at the first (0) or last (1) end of its window."""
    if log.window is None:
        text = f"no window of its {log.steps} steps to measure; needed more steps, or a window"
        return errors.LogError(text, code="WINDOW")
    first, last = log.window
    return errors.LogError(
        f"the window {first}-{last} needs iteration {log.window[end]}; the log has {log.steps}"
        f" steps, from {log.first_iteration} to {log.last_iteration}",
        code="WINDOW",
    )
