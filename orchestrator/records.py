"""What the files of a sweep must hold, checked in one place whoever reads them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from orchestrator.model.event import Adopted, Ended, Event, Intent
from orchestrator.model.facts import JSON
from orchestrator.model.outcome import Outcome
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site

PLAN = TypeAdapter(Plan)
SITE = TypeAdapter(Site)
OUTCOME = TypeAdapter(Outcome)
KINDS = {Intent: "intent", Adopted: "adopted", Ended: "outcome"}
DEEPEST = 64  # our own nest less than ten deep
MOST_ATTEMPTS = 1_000_000
STATES = frozenset({"valid", "invalid", "failed", "infra-lost", "interrupted"})
_WORDS = ("id", "created", "experiment", "cluster", "identity")


def document(content: bytes) -> dict[str, JSON]:
    """A JSON object that could be written again as it is.

    Raises:
        ValueError: it is none, holds NaN or half a character, or nests too deep.
    """
    try:
        found = json.loads(content)
        _refuse_deep(found, DEEPEST)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it nests too deep") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def sealed(record: Mapping[str, JSON]) -> dict[str, JSON]:
    """A record with the sha256 of the rest of it, by which damage is seen that parses well."""
    bare = {key: value for key, value in record.items() if key != "sha256"}
    return {**bare, "sha256": hashlib.sha256(_canonical(bare)).hexdigest()}


def check(record: Mapping[str, JSON], sweep_id: str) -> None:
    """Nothing, if a record is whole and that of this very sweep.

    One that was written before records had a sha256 is taken by its fields alone.

    Raises:
        ValueError: it is not, and why.
    """
    missing = [word for word in _WORDS if not isinstance(record.get(word), str)]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    if record["id"] != sweep_id:
        raise ValueError(f"it is the record of sweep {record['id']}")
    if "sha256" in record and record["sha256"] != sealed(record)["sha256"]:
        raise ValueError("it was changed: its sha256 is not that of its content")
    if not isinstance(record.get("inputs"), Mapping):
        raise ValueError("it lacks inputs")
    _read(PLAN, record, "plan")
    _read(SITE, record, "site")


def event(line: bytes) -> Event | None:
    """A line of events.jsonl; None of a kind that is not known, which a later version may write.

    Raises:
        ValueError: it is no event, or does not say what one of its kind must.
    """
    found = document(line)
    kind = found.get("event")
    if not isinstance(kind, str):
        raise ValueError(f"{line[:60]!r} is no event")
    if kind not in KINDS.values():
        return None
    at = _text(found, "at")
    trial, number = _attempt(found)
    if kind == "intent":
        log = _text(found, "log")
        return Intent(at=at, trial=trial, attempt=number, port=_port(found), log=log)
    if kind == "adopted":
        return Adopted(at=at, trial=trial, attempt=number)
    sha256 = found.get("sha256")
    return Ended(
        at=at,
        trial=trial,
        attempt=number,
        state=_state(found),
        code=_text(found, "code"),
        message=_text(found, "message"),
        sha256=sha256 if isinstance(sha256, str) else None,
        outcome=_text(found, "outcome"),
    )


def event_line(event: Event) -> dict[str, JSON]:
    """An event as events.jsonl has it."""
    return {"at": event.at, "event": KINDS[type(event)], **asdict(event)}


def _text(found: Mapping[str, JSON], key: str) -> str:
    """Of a line; empty where it says none."""
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _port(found: Mapping[str, JSON]) -> int:
    port = found.get("port", 0)
    if type(port) is not int or not 0 <= port < 1 << 16:
        raise ValueError(f"an event of trial {found['trial']} has port {port!r}")
    return port


def _state(found: Mapping[str, JSON]) -> str:
    state = found.get("state", "failed")
    if not isinstance(state, str) or state not in STATES:
        raise ValueError(f"an outcome has state {state!r}")
    return state


def _attempt(found: Mapping[str, JSON]) -> tuple[str, int]:
    trial, number = found.get("trial"), found.get("attempt")
    if not isinstance(trial, str) or not trial:
        raise ValueError(f"an event of kind {found['event']} names no trial")
    if type(number) is not int or not 0 < number <= MOST_ATTEMPTS:
        raise ValueError(f"an event of trial {trial} has attempt {number!r}")
    return trial, number


def _refuse_deep(value: JSON, left: int) -> None:
    if left == 0:
        raise ValueError("it nests too deep")
    if isinstance(value, dict):
        value = list(value.values())
    for child in value if isinstance(value, list) else ():
        _refuse_deep(child, left - 1)


def _canonical(record: Mapping[str, JSON]) -> bytes:
    return json.dumps(record, sort_keys=True, allow_nan=False).encode()


def _read(
    shape: TypeAdapter[Plan] | TypeAdapter[Site], record: Mapping[str, JSON], key: str
) -> None:
    try:
        shape.validate_python(record.get(key), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in (key, *first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from error
