"""Show how far a running trial is, and the medians of its sweep so far."""

from dataclasses import asdict, dataclass

from orchestrator import errors, workloads
from orchestrator.collecting.sweep import measured
from orchestrator.model.attempt import Attempt
from orchestrator.model.facts import JSON
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED, Result
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.sweeping.observed_sweep import Running
from orchestrator.words import duration

TAIL_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Progress:
    """Describe the last step in the log of a running trial.

    Args:
        iterations: the last one that its log will show.
        rate: in samples per second, as its program prints it.
        left_s: until its last iteration at that rate; None where the rate says nothing.
    """

    trial: str
    attempt: int
    iteration: int
    iterations: int
    rate: float
    left_s: float | None

    def words(self) -> str:
        """Return it as one line, such as ``1n1g-rn50_b256_amp_1 a1: iteration 40 of 120, ...``."""
        left = "" if self.left_s is None else f", about {duration(self.left_s)} left"
        at = f"iteration {self.iteration} of {self.iterations}, {self.rate:.2f} samples/s"
        return f"{self.trial} a{self.attempt}: {at}{left}"

    def document(self) -> JSON:
        return asdict(self)


def of(running: Running, scheduler: Scheduler, attempt: Attempt, log_bytes: int) -> Progress | None:
    """Return the progress of an attempt; None before its first iteration.

    Args:
        log_bytes: the present size of the log that is measured; only its end is read.

    Raises:
        NodeError: its node does not answer.
    """
    workload = workloads.find(running.plan.workload)
    if workload is None:
        return None
    task, begin = attempt.tasks[attempt.log_rank], max(0, log_bytes - TAIL_BYTES)
    tail = scheduler.read(attempt, task, f"r{task.node_rank}.log", begin) or b""
    step = workload.progress(tail[: tail.rfind(b"\n") + 1])
    if step is None:
        return None
    (case,) = (trial.case for trial in running.plan.trials if trial.name == attempt.trial)
    (iteration, rate), last = step, workload.last_iteration(running.plan.method.iterations)
    left = (last - iteration) * case.global_batch_size / rate if rate > 0 else None
    return Progress(attempt.trial, attempt.number, iteration, last, rate, left)


def results(running: Running) -> Report | None:
    """Return what was measured so far; None if nothing can be measured."""
    try:
        return measured(running.sweep)
    except errors.StoreError:  # `collect` reports it; `status` still shows what runs
        return None


def document(result: Result) -> dict[str, JSON]:
    """Return a case with its median, as ``status --json`` has it."""
    return {
        "case": dict(result.case.document()),
        "median": result.median,
        "trials_valid": len(result.valid),
        "trials_planned": sum(trial.state != NOT_NEEDED for trial in result.trials),
        "settled": result.settled,
    }
