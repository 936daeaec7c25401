"""What happened to attempts: the lines of a sweep's events.jsonl."""

from dataclasses import dataclass
from typing import TypeAlias


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
