"""What the files of a sweep must hold, checked in one place whoever reads them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from orchestrator import __version__
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import JSON
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site
from orchestrator.model.sweep import Adopted, Ended, Event, Intent, SweepRecord
from orchestrator.model.text import shape

Field = TypeVar("Field")
VERSION = 2
OF_THE_FILE = ("version", "sha256", "inherited_env")
KINDS = {Intent: "intent", Adopted: "adopted", Ended: "outcome"}
DEEPEST = 64  # our own nest less than ten deep
MOST_ATTEMPTS = 1_000_000
STATES = frozenset({"valid", "invalid", "failed", "infra-lost", "interrupted"})
WORDS = ("id", "created", "experiment", "cluster", "identity")


def document(content: bytes) -> dict[str, JSON]:
    """Parse a JSON object that can be written again unchanged.

    Raises:
        ValueError: the content is not one, holds NaN or a lone surrogate, or is nested too deeply.
    """
    try:
        value = json.loads(content)
        _refuse_deep(value, DEEPEST)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def sweep_document(record: SweepRecord) -> dict[str, JSON]:
    """Return a record in the form of sweep.json, with the sha256 of the rest of it."""
    return _sealed(
        {
            "version": VERSION,
            "written_by": __version__,
            "id": record.id,
            "created": record.created,
            "experiment": record.experiment,
            "cluster": record.cluster,
            "identity": record.identity,
            "inputs": record.inputs,
            "inventory": record.inventory.model_dump(mode="json", exclude_none=True),
            "plan": shape(Plan).dump_python(record.plan, mode="json"),
            "site": shape(Site).dump_python(record.site, mode="json"),
            "commands": list(record.commands),
        }
    )


def version(record: Mapping[str, JSON]) -> int:
    """Return the version of a sweep.json, whatever else it contains.

    Raises:
        ValueError: it has none.
    """
    number = record.get("version")
    if type(number) is not int or number < 1:
        raise ValueError(f"it has version {number!r}")
    return number


def sweep(record: Mapping[str, JSON], sweep_id: str) -> SweepRecord:
    """Parse the record in a sweep.json of this version.

    Raises:
        ValueError: why it is damaged, or of another sweep.
    """
    words = {key: value for key in WORDS if isinstance(value := record.get(key), str)}
    missing = [key for key in WORDS if key not in words]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    if words["id"] != sweep_id:
        raise ValueError(f"it is the record of sweep {words['id']}")
    if record.get("sha256") != _sealed(record)["sha256"]:
        raise ValueError("it was changed: its sha256 does not match its content")
    inputs = record.get("inputs")
    if not isinstance(inputs, Mapping):
        raise ValueError("it has no inputs")
    return SweepRecord(
        **words,
        inputs=inputs,
        inventory=_read(Cluster, record, "inventory"),
        plan=_read(Plan, record, "plan"),
        site=_read(Site, record, "site"),
        commands=_read(tuple[str, ...], {"commands": record.get("commands", [])}, "commands"),
        written_by=_text(record, "written_by"),
    )


def attempt_document(attempt: Attempt, inherited_env: Mapping[str, str]) -> dict[str, JSON]:
    """Return an attempt in the form of attempt.json, with the sha256 of the rest of it."""
    bound = shape(Attempt).dump_python(attempt, mode="json")
    return _sealed({"version": VERSION, **bound, "inherited_env": dict(inherited_env)})


def attempt(content: bytes) -> Attempt:
    """Parse the attempt in an attempt.json of this version.

    Raises:
        ValueError: why it is damaged.
    """
    fields = document(content)
    if version(fields) != VERSION:
        raise ValueError(f"it has version {version(fields)}")
    if fields.get("sha256") != _sealed(fields)["sha256"]:
        raise ValueError("it was changed: its sha256 does not match its content")
    bound = {key: value for key, value in fields.items() if key not in OF_THE_FILE}
    return _read(Attempt, {"attempt": bound}, "attempt")


def event(line: bytes) -> Event | None:
    """Parse a line of events.jsonl; return None for a kind of event that a later version writes.

    Raises:
        ValueError: it is not an event, or lacks what its kind must have.
    """
    fields = document(line)
    kind = fields.get("event")
    if not isinstance(kind, str):
        raise ValueError(f"{line[:60]!r} is not an event")
    if kind not in KINDS.values():
        return None
    at = _text(fields, "at")
    datetime.fromisoformat(at)  # raises ValueError, also at an offset of 70 hours
    trial, number = _attempt(fields)
    if kind == "intent":
        log = _text(fields, "log")
        return Intent(at=at, trial=trial, attempt=number, port=_port(fields), log=log)
    if kind == "adopted":
        return Adopted(at=at, trial=trial, attempt=number)
    sha256 = fields.get("sha256")
    return Ended(
        at=at,
        trial=trial,
        attempt=number,
        state=_state(fields),
        code=_text(fields, "code"),
        message=_text(fields, "message"),
        sha256=sha256 if isinstance(sha256, str) else None,
        outcome=_text(fields, "outcome"),
    )


def event_line(event: Event) -> dict[str, JSON]:
    """Return an event in the form of events.jsonl."""
    return {"at": event.at, "event": KINDS[type(event)], **asdict(event)}


def _text(fields: Mapping[str, JSON], key: str) -> str:
    """Return a field of an event; empty if it is missing or no text."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _port(fields: Mapping[str, JSON]) -> int:
    port = fields.get("port", 0)
    if type(port) is not int or not 0 <= port < 1 << 16:
        raise ValueError(f"an event of trial {fields['trial']} has port {port!r}")
    return port


def _state(fields: Mapping[str, JSON]) -> str:
    state = fields.get("state", "failed")
    if not isinstance(state, str) or state not in STATES:
        raise ValueError(f"an outcome has state {state!r}")
    return state


def _attempt(fields: Mapping[str, JSON]) -> tuple[str, int]:
    trial, number = fields.get("trial"), fields.get("attempt")
    if not isinstance(trial, str) or not trial:
        raise ValueError(f"an event of kind {fields['event']} names no trial")
    if type(number) is not int or not 0 < number <= MOST_ATTEMPTS:
        raise ValueError(f"an event of trial {trial} has attempt {number!r}")
    return trial, number


def _refuse_deep(value: JSON, left: int) -> None:
    if left == 0:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict):
        value = list(value.values())
    for child in value if isinstance(value, list) else ():
        _refuse_deep(child, left - 1)


def _sealed(record: Mapping[str, JSON]) -> dict[str, JSON]:
    """Add the sha256 of the rest of a record, which detects damage that is still valid JSON."""
    bare = {key: value for key, value in record.items() if key != "sha256"}
    content = json.dumps(bare, sort_keys=True, allow_nan=False).encode()
    return {**bare, "sha256": hashlib.sha256(content).hexdigest()}


def _read(noun: type[Field], record: Mapping[str, JSON], key: str) -> Field:
    try:
        return shape(noun).validate_python(record.get(key), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in (key, *first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from error
