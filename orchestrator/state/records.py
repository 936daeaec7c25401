"""Read and write the records of a sweep; every reader gets the same checks."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import TypeVar

from pydantic import ValidationError

from orchestrator import __version__, errors
from orchestrator.model.attempt import Attempt
from orchestrator.model.facts import JSON
from orchestrator.model.sweep import Adopted, Ended, Event, Intent, SweepRecord
from orchestrator.model.text import shape

Field = TypeVar("Field")
VERSION = 2
OF_THE_FILE = ("version", "sha256", "inherited_env")
NOUNS: Mapping[str, type[Event]] = {"intent": Intent, "adopted": Adopted, "outcome": Ended}


def document(content: bytes) -> dict[str, JSON]:
    """Parse a JSON object that can be written again unchanged.

    Raises:
        ValueError: the content is not one, holds NaN or a lone surrogate, or is nested too deeply.
    """
    try:
        value = json.loads(content)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def sweep_document(record: SweepRecord) -> dict[str, JSON]:
    """Return a record in the form of sweep.json, with the sha256 of the rest of it."""
    fields = shape(SweepRecord).dump_python(record, mode="json")
    inventory = record.inventory.model_dump(mode="json", exclude_none=True)
    return _seal({**fields, "written_by": __version__, "inventory": inventory})


@cache  # a command lists all sweeps several times
def sweep(content: bytes, sweep_id: str) -> SweepRecord:
    """Parse the record in a sweep.json.

    Raises:
        ValueError: why it is damaged, or of another sweep.
        StoreError: STORE-VERSION.
    """
    record = document(content)
    if (version := record.get("version")) != VERSION:
        writer = f"dlperf-orch {record.get('written_by', 'of another version')}"
        raise errors.StoreError(
            f"sweep {sweep_id} was written by {writer} and has version {version};"
            f" dlperf-orch {__version__} reads version {VERSION} only",
            code="STORE-VERSION",
            fix="read it with the dlperf-orch that wrote it; `dlperf-orch sweep` starts a new one",
        )
    if record.get("id") != sweep_id:
        raise ValueError(f"it has the id {record.get('id')}; needed {sweep_id}")
    return _unseal(SweepRecord, record)


def attempt_document(attempt: Attempt, inherited_env: Mapping[str, str]) -> dict[str, JSON]:
    """Return an attempt in the form of attempt.json, with the sha256 of the rest of it."""
    bound = shape(Attempt).dump_python(attempt, mode="json")
    return _seal({**bound, "inherited_env": dict(inherited_env)})


def attempt(content: bytes) -> Attempt:
    """Parse the attempt in an attempt.json of this version; ValueError says why it is damaged."""
    record = document(content)
    if (version := record.get("version")) != VERSION:
        raise ValueError(f"it has version {version}")
    return _unseal(Attempt, record)


def event(line: bytes) -> Event:
    """Parse a line of events.jsonl."""
    fields = document(line)
    kind = str(fields.pop("event", None))
    if kind not in NOUNS:
        raise ValueError(f"{line[:60]!r} is not an event")
    return _read(NOUNS[kind], fields, kind, is_strict=True)


def event_line(event: Event) -> dict[str, JSON]:
    (kind,) = (kind for kind, noun in NOUNS.items() if isinstance(event, noun))
    return {"at": event.at, "event": kind, **asdict(event)}


def _seal(record: Mapping[str, JSON]) -> dict[str, JSON]:
    """Add the version, and the sha256 of the rest: it detects damage that is still valid JSON."""
    bare = {"version": VERSION, **{key: it for key, it in record.items() if key != "sha256"}}
    content = json.dumps(bare, sort_keys=True, allow_nan=False).encode()
    return {**bare, "sha256": hashlib.sha256(content).hexdigest()}


def _unseal(noun: type[Field], record: Mapping[str, JSON]) -> Field:
    if record.get("sha256") != _seal(record)["sha256"]:
        raise ValueError("it was changed: its sha256 does not match its content")
    return _read(noun, {key: it for key, it in record.items() if key not in OF_THE_FILE})


def _read(noun: type[Field], value: JSON, *name: str, is_strict: bool = False) -> Field:
    """Parse a noun; if strict, text and booleans are not converted to numbers."""
    try:
        return shape(noun).validate_json(json.dumps(value), strict=is_strict)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, (*name, *first['loc'])))}: {first['msg']}") from error
