"""The stretch of time on a node over which its state is judged. Pure."""

from dataclasses import dataclass

from orchestrator.model.log import SECOND_NS, TrainingLog
from orchestrator.model.telemetry import NodeTelemetry, Span

LATE_S = 2.0  # a log's last lines may be printed after the observer's last look


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time on one node, in seconds since the epoch by its own clock."""

    span: Span
    first_s: float
    last_s: float

    @property
    def seconds(self) -> float:
        return self.last_s - self.first_s

    def holds(self, at_s: float) -> bool:
        """Return True if a moment is in the period."""
        return self.first_s <= at_s <= self.last_s


def window(log: TrainingLog, went_s: float, ended_s: float) -> tuple[float, float] | None:
    """Return first and last second of the log's window after its task's gate opened.

    Tasks run with TZ=UTC0, so that a clock without a zone is in UTC.

    Args:
        went_s: when the gate opened, in seconds since the epoch.
        ended_s: when the task was seen last.

    Returns:
        None where the log has no clock, or a step that its node saw before or after the task.
    """
    if log.origin_ns is None or log.start is None or log.end is None:
        return None
    after_s = log.origin_ns / SECOND_NS - went_s
    length_s = log.end.clock_ns / SECOND_NS
    # A clock of whole seconds prints a step up to one second too early.
    if not -1 < after_s <= ended_s - went_s - length_s + LATE_S:
        return None
    first_s = after_s + log.start.clock_ns / SECOND_NS
    return first_s, after_s + length_s


def period(node: NodeTelemetry, went_s: float, inside: tuple[float, float] | None) -> Period:
    """The window on a node, else all that was seen of it after its gate opened."""
    if inside is not None:
        return Period("window", went_s + inside[0], went_s + inside[1])
    return Period("run", went_s, max(went_s, *(moment.at_s for moment in node.hosts), went_s))
