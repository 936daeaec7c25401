"""How far a running trial is, and what the finished trials of its sweep give so far."""

from dataclasses import dataclass

from orchestrator import errors, workloads
from orchestrator.collecting.sweep import measured
from orchestrator.console import duration
from orchestrator.model.attempt import Attempt
from orchestrator.model.facts import JSON
from orchestrator.model.result import Result
from orchestrator.schedulers import Scheduler
from orchestrator.sweeping.running import Running

TAIL_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Progress:
    """What the log of a running trial says last.

    Args:
        iterations: up to which its log will go.
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
        """In a line."""
        left = "" if self.left_s is None else f", about {duration(self.left_s)} left"
        at = f"iteration {self.iteration} of {self.iterations}, {self.rate:.2f} samples/s"
        return f"{self.trial} a{self.attempt}: {at}{left}"

    def document(self) -> JSON:
        """For programs."""
        return {
            "trial": self.trial,
            "attempt": self.attempt,
            "iteration": self.iteration,
            "iterations": self.iterations,
            "rate": self.rate,
            "left_s": self.left_s,
        }


def of(running: Running, scheduler: Scheduler, attempt: Attempt, log_bytes: int) -> Progress | None:
    """How far an attempt is; None before its first iteration.

    Raises:
        NodeError: its node does not answer.
    """
    workload = workloads.find(running.plan.workload)
    task = next((task for task in attempt.tasks if task.node_rank == attempt.log_rank), None)
    if workload is None or task is None:
        return None
    log, begin = f"r{task.node_rank}.log", max(0, log_bytes - TAIL_BYTES)
    tail = scheduler.read(attempt, task, log, begin) or b""
    found = workload.progress(tail[: tail.rfind(b"\n") + 1])
    if found is None:
        return None
    (case,) = (trial.case for trial in running.plan.trials if trial.name == attempt.trial)
    (iteration, rate), last = found, workload.last_iteration(running.plan.method.iterations)
    left = (last - iteration) * case.global_batch_size / rate if rate > 0 else None
    return Progress(attempt.trial, attempt.number, iteration, last, rate, left)


def results(running: Running) -> tuple[Result, ...]:
    """Cases of a sweep that have a median already; none where it cannot be measured yet."""
    try:
        found = measured(running.sweep).results
    except errors.StoreError:  # collect says why; a sweep that runs is to be seen all the same
        return ()
    return tuple(result for result in found if result.statistics)


def row(result: Result) -> tuple[str, ...]:
    """A case in the table of medians."""
    case, said = result.case, result.statistics
    return (
        case.placement,
        str(case.micro_batch_size),
        case.precision,
        f"{said.median:.2f}" if said else "n/a",
        f"{said.n if said else 0}/{len(result.trials)}",
    )


def document(result: Result) -> JSON:
    """A case with its median, for programs."""
    said = result.statistics
    return {
        "case": dict(result.case.document()),
        "median": said.median if said else None,
        "trials_valid": said.n if said else 0,
        "trials_planned": len(result.trials),
    }
