"""What a sweep is of: its record, which is written before anything of it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import JSON
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """A sweep as its sweep.json has it.

    Args:
        cluster: its name.
        identity: sha256 of ``inputs``.
        inputs: what must stay the same for two runs to be one sweep, as plain data.
        inventory: what the sweep was last run on.
        plan: every trial requested so far.
        site: as it was when the sweep was new.
        id, created: the store gives them to a new sweep.
        commands: the command lines of the sweep so far, in order; empty in those of old versions.
        written_by: the version of this tool that wrote it; the store gives it.
    """

    experiment: str
    cluster: str
    identity: str
    inputs: Mapping[str, JSON]
    inventory: Cluster
    plan: Plan
    site: Site
    id: str = ""
    created: str = ""
    commands: tuple[str, ...] = ()
    written_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """An attempt is about to start.

    Args:
        at: UTC, ISO 8601, as in all events.
        port: where its ranks meet.
        log: of its trial, by its name in the plan.
    """

    at: str
    trial: str
    attempt: int
    port: int
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """An attempt that an earlier controller started is watched by another one."""

    at: str
    trial: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt has its outcome.

    Args:
        state: valid, invalid, failed, infra-lost or interrupted.
        code, message: of its first problem; empty without one.
        sha256: of the log that was measured; None if none was.
        outcome: sha256 of the outcome beside the log; empty where none was written.
    """

    at: str
    trial: str
    attempt: int
    state: str
    code: str = ""
    message: str = ""
    sha256: str | None = None
    outcome: str = ""


Event: TypeAlias = Intent | Adopted | Ended
