"""A sweep: its record, the events of its attempts, and the history of each trial."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field

from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site

# ``fromisoformat`` raises ValueError, also at an offset of 70 hours.
Moment = Annotated[str, AfterValidator(lambda text: datetime.fromisoformat(text) and text)]
Name = Annotated[str, Field(min_length=1)]
Number = Annotated[int, Field(gt=0, le=1_000_000)]
State = Annotated[str, Field(pattern="^(valid|invalid|failed|infra-lost|interrupted)$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """A sweep as its sweep.json has it.

    Args:
        identity: sha256 of ``inputs``.
        inputs: what must stay the same for two runs to be one sweep, as plain data.
        inventory: what the sweep was last run on.
        plan: every trial requested so far.
        site: as it was when the sweep was new.
        id, created, written_by: given by the store.
        commands: the command lines of the sweep so far, in order.
    """

    experiment: str
    cluster: str
    identity: str
    inputs: Mapping[str, Any]
    inventory: Cluster
    plan: Plan
    site: Site
    id: str = ""
    created: str = ""
    commands: tuple[str, ...] = ()
    written_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """An attempt is about to start; ``at`` is in UTC, as in all events."""

    at: Moment
    trial: Name
    attempt: Number
    port: Annotated[int, Field(ge=0, lt=1 << 16)]
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """An attempt that an earlier controller started is watched by another one."""

    at: Moment
    trial: Name
    attempt: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt has its outcome.

    Args:
        code, message: of its first problem.
        sha256: of the log that was measured.
        outcome: sha256 of the outcome beside the log.
    """

    at: Moment
    trial: Name
    attempt: Number
    state: State
    code: str = ""
    message: str = ""
    sha256: str | None = None
    outcome: str = ""


Event: TypeAlias = Intent | Adopted | Ended


@dataclass(slots=True)
class History:
    """One trial's attempts so far; it grows with every event.

    Args:
        begun: by number, when its intent was written.
        closed: by number, how it ended.
        found: numbers of attempts that have a folder but no event; True if the attempt was bound to
            nodes, else nothing of it was ever started.
    """

    begun: dict[int, str] = field(default_factory=dict)
    closed: dict[int, Ended] = field(default_factory=dict)
    found: dict[int, bool] = field(default_factory=dict)

    @property
    def attempts(self) -> int:
        return max((*self.begun, *self.closed, *self.found), default=0)

    @property
    def state(self) -> str:
        """Return the state of the highest attempt that ended; ``planned`` before that."""
        return self.closed[max(self.closed)].state if self.closed else "planned"

    @property
    def open(self) -> tuple[int, ...]:
        """Return the numbers of the attempts without an outcome, ascending."""
        bound = (number for number, is_bound in self.found.items() if is_bound)
        return tuple(it for it in sorted({*self.begun, *bound}) if it not in self.closed)

    def add(self, event: Event) -> None:
        if isinstance(event, Intent):
            self.begun[event.attempt] = event.at
        elif isinstance(event, Ended):
            self.closed[event.attempt] = event

    def spans(self) -> tuple[tuple[str, str], ...]:
        """Return when each attempt began and ended, as written in files; empty for not yet."""
        ends = {number: ended.at for number, ended in [*self.closed.items()]}
        return tuple((at, ends.get(number, "")) for number, at in [*self.begun.items()])


def by_trial(events: Iterable[Event]) -> dict[str, History]:
    histories: dict[str, History] = {}
    for event in events:
        histories.setdefault(event.trial, History()).add(event)
    return histories
