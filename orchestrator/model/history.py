"""What the events of a sweep say of each trial."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.model.event import Ended, Event, Intent


@dataclass(slots=True)
class History:
    """What is known of one trial's attempts so far.

    Args:
        attempts: the highest number that one of them has.
        open: the numbers of those without an outcome, in order.
        unlogged: the last of these has its folder here, and events.jsonl does not tell of it.
        closed: by number, how the others ended.
    """

    attempts: int = 0
    state: str = "planned"
    open: tuple[int, ...] = ()
    unlogged: bool = False
    closed: dict[int, Ended] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Take note of what happened to an attempt."""
        if isinstance(event, Intent):
            self.attempts = max(self.attempts, event.attempt)
            self.open = (*self._others(event.attempt), event.attempt)
        elif isinstance(event, Ended):
            self.attempts = max(self.attempts, event.attempt)
            self.open = self._others(event.attempt)
            self.closed[event.attempt] = event
            self.state = self.closed[max(self.closed)].state

    def find(self, number: int, *, bound: bool) -> None:
        """Take note of an attempt whose folder is here, and that no event tells of.

        Args:
            bound: whether it was bound to nodes; else nothing of it was ever started.
        """
        self.attempts = number
        if bound:
            self.open, self.unlogged = (*self.open, number), True

    def _others(self, number: int) -> tuple[int, ...]:
        return tuple(other for other in self.open if other != number)


def told(events: Iterable[Event]) -> dict[str, History]:
    """By trial name, what events say of it."""
    found: dict[str, History] = {}
    for event in events:
        found.setdefault(event.trial, History()).add(event)
    return found
