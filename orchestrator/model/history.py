"""The history of a trial, from a sweep's events."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.model.sweep import Ended, Event, Intent


@dataclass(slots=True)
class History:
    """One trial's attempts so far; it grows with every event.

    Args:
        attempts: the highest number of an attempt.
        state: of the highest attempt that ended; ``planned`` before that.
        open: numbers of the attempts without an outcome, ascending.
        unlogged: the last open attempt has a folder, but no event in events.jsonl.
        closed: by number, how the others ended.
        begun: by number, when its intent was written.
    """

    attempts: int = 0
    state: str = "planned"
    open: tuple[int, ...] = ()
    unlogged: bool = False
    closed: dict[int, Ended] = field(default_factory=dict)
    begun: dict[int, str] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Add what happened to an attempt."""
        if isinstance(event, Intent):
            self.attempts = max(self.attempts, event.attempt)
            self.open = (*self._others(event.attempt), event.attempt)
            self.begun[event.attempt] = event.at
        elif isinstance(event, Ended):
            self.attempts = max(self.attempts, event.attempt)
            self.open = self._others(event.attempt)
            self.closed[event.attempt] = event
            self.state = self.closed[max(self.closed)].state

    def find(self, number: int, *, bound: bool) -> None:
        """Add an attempt that has a folder but no event.

        Args:
            bound: whether it was bound to nodes; else nothing of it was ever started.
        """
        self.attempts = number
        if bound:
            self.open, self.unlogged = (*self.open, number), True

    def spans(self) -> tuple[tuple[str, str], ...]:
        """Return when each attempt began and ended, as written in files; empty for not yet."""
        ends = {number: ended.at for number, ended in [*self.closed.items()]}
        return tuple((at, ends.get(number, "")) for number, at in [*self.begun.items()])

    def _others(self, number: int) -> tuple[int, ...]:
        return tuple(other for other in self.open if other != number)


def by_trial(events: Iterable[Event]) -> dict[str, History]:
    """Build the histories of trials from events, by trial name."""
    histories: dict[str, History] = {}
    for event in events:
        histories.setdefault(event.trial, History()).add(event)
    return histories
