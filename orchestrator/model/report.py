"""Everything that a report says, before it is written in one form or another."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.model.experiment import Method
from orchestrator.model.log import TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.result import Result


@dataclass(frozen=True, slots=True)
class LoneLog:
    """A log that belongs to no known case, measured by its own header."""

    path: str
    log: TrainingLog
    throughput: float | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One sweep or one folder of logs, measured.

    Args:
        source: the sweep's id, or the folder.
        method: None for a folder of logs.
        trials_planned: of each case; None for a folder of logs.
        environment: rows of what was found on each node, by node name.
        lone: logs that belong to no case, by world size.
    """

    source: str
    title: str
    experiment: str
    workload: str
    unit: str
    window: tuple[int, int]
    method: Method | None
    trials_planned: int | None
    cluster: str
    image: str
    image_digest: str
    shared_machine: bool
    environment: Mapping[str, Mapping[str, str]]
    results: tuple[Result, ...]
    lone: tuple[LoneLog, ...]

    @property
    def incomplete(self) -> int:
        """How many trials are missing, failed, invalid, or have problems."""
        trials = [trial for result in self.results for trial in result.trials]
        return sum(trial.state != "valid" for trial in trials) + sum(
            bool(lone.problems) for lone in self.lone
        )
