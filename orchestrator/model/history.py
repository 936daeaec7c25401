"""What the events of a sweep say of each trial."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.model.event import Ended, Event, Intent


@dataclass(slots=True)
class History:
    """What is known of one trial's attempts so far.

    Args:
        attempts: the highest number that one of them has.
        open_attempt: the number of the one without an outcome; 0 without such.
        open_port: where its ranks meet; 0 where that is not known.
        unlogged: the open attempt has its folder here, and events.jsonl does not tell of it.
        closed: by number, how the others ended.
    """

    attempts: int = 0
    state: str = "planned"
    open_attempt: int = 0
    open_port: int = 0
    unlogged: bool = False
    closed: dict[int, Ended] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Take note of what happened to an attempt."""
        if isinstance(event, Intent):
            self.attempts = max(self.attempts, event.attempt)
            self.open_attempt, self.open_port = event.attempt, event.port
        elif isinstance(event, Ended):
            self.attempts = max(self.attempts, event.attempt)
            self.state, self.open_attempt = event.state, 0
            self.closed[event.attempt] = event

    def find(self, number: int, port: int) -> None:
        """Take note of an attempt whose folder is here, and that no event tells of."""
        self.attempts = self.open_attempt = number
        self.open_port, self.unlogged = port, True


def told(events: Iterable[Event]) -> dict[str, History]:
    """By trial name, what events say of it."""
    found: dict[str, History] = {}
    for event in events:
        found.setdefault(event.trial, History()).add(event)
    return found
