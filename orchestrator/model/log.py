"""What a training log says: its steps, its header, its own rates, and what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Moment:
    """When an iteration was printed.

    Args:
        clock_s: seconds since 1970 with the log's own clock face read as UTC; only differences
            have a meaning, and they are good to a quarter of a microsecond.
        line: counts from 1, by line feeds.
    """

    iteration: int
    clock_s: float
    line: int


@dataclass(frozen=True, slots=True)
class Rate:
    """The per-step rates that a log itself prints, summed up.

    Args:
        median: None where the log has more steps than a reader holds in memory.
    """

    count: int
    mean: float
    median: float | None


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """One log, read for one window.

    With several runs in a file, steps, iterations, config and rate are the last run's, and what
    belongs to the window is None or empty.

    Args:
        steps: step lines of all epochs, repeated ones not counted.
        config: what the header says; a key that it lacks, or says twice differently, is absent.
        start: first iteration of the window, in the first epoch; None where the log lacks it.
        end: last iteration of the window, likewise.
        rate: over all steps; None without steps or with a rate that is not a positive number.
        window_rate: samples / sum of times, from the rates printed after the window's first
            iteration up to its last; None unless the log has both ends.
        reported: the numbers of the log's own summary, ``train_throughput`` among them.
        digest: hash over the iterations and timestamps of the window, equal for copies of the
            same evidence; empty where there are none.
        sha256: of the raw bytes.
    """

    runs: int
    steps: int
    first_iteration: int | None
    last_iteration: int | None
    config: Mapping[str, str | int | float | bool]
    start: Moment | None
    end: Moment | None
    rate: Rate | None
    window_rate: float | None
    unit: str
    reported: Mapping[str, float]
    digest: str
    size_bytes: int
    sha256: str
    problems: tuple[Problem, ...]
