"""What a reader finds wrong with a log."""

from orchestrator.model.log import TrainingLog


def problems(log: TrainingLog, code: str) -> list[str]:
    """The messages of one code."""
    return [problem.message for problem in log.problems if problem.code == code]


def codes(log: TrainingLog) -> set[str]:
    """Of all problems."""
    return {problem.code for problem in log.problems}
