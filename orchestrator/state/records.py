"""Read the records of a sweep; every reader gets the same checks."""

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
NOUNS: Mapping[str, type[Event]] = {"intent": Intent, "adopted": Adopted, "outcome": Ended}
MOST_ATTEMPTS = 1_000_000
WORDS = ("id", "created", "experiment", "cluster", "identity", "written_by")
STATES = frozenset({"valid", "invalid", "failed", "infra-lost", "interrupted"})


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
    words = {key: _read(str, record.get(key), key) for key in WORDS}
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
        inventory=_read(Cluster, record.get("inventory"), "inventory"),
        plan=_read(Plan, record.get("plan"), "plan"),
        site=_read(Site, record.get("site"), "site"),
        commands=_read(tuple[str, ...], record.get("commands"), "commands"),
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
    return _read(Attempt, bound, "attempt")


def event(line: bytes) -> Event | None:
    """Parse a line of events.jsonl; return None for a kind of event that a later version writes.

    Raises:
        ValueError: it is not an event, or lacks what its kind must have.
    """
    fields = document(line)
    kind = fields.pop("event", None)
    if not isinstance(kind, str):
        raise ValueError(f"{line[:60]!r} is not an event")
    if kind not in NOUNS:
        return None
    found = _read(NOUNS[kind], fields, kind, is_strict=True)
    datetime.fromisoformat(found.at)  # raises ValueError, also at an offset of 70 hours
    if not found.trial or not 0 < found.attempt <= MOST_ATTEMPTS:
        raise ValueError(f"an event is of trial {found.trial!r} and attempt {found.attempt}")
    if isinstance(found, Intent) and not 0 <= found.port < 1 << 16:
        raise ValueError(f"an event of trial {found.trial} has port {found.port}")
    if isinstance(found, Ended) and found.state not in STATES:
        raise ValueError(f"an outcome has state {found.state!r}")
    return found


def event_line(event: Event) -> dict[str, JSON]:
    (kind,) = (kind for kind, noun in NOUNS.items() if isinstance(event, noun))
    return {"at": event.at, "event": kind, **asdict(event)}


def _sealed(record: Mapping[str, JSON]) -> dict[str, JSON]:
    """Add the sha256 of the rest of a record, which detects damage that is still valid JSON."""
    bare = {key: value for key, value in record.items() if key != "sha256"}
    content = json.dumps(bare, sort_keys=True, allow_nan=False).encode()
    return {**bare, "sha256": hashlib.sha256(content).hexdigest()}


def _read(noun: type[Field], value: JSON, name: str, *, is_strict: bool = False) -> Field:
    """Parse a noun; if strict, text and booleans are not converted to numbers."""
    try:
        return shape(noun).validate_json(json.dumps(value), strict=is_strict)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, (name, *first['loc'])))}: {first['msg']}") from error
