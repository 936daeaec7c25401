"""What the files of a sweep must hold, checked in one place whoever reads them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from orchestrator import __version__
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.event import Adopted, Ended, Event, Intent
from orchestrator.model.facts import JSON
from orchestrator.model.outcome import Outcome
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site
from orchestrator.model.sweep import SweepRecord

Field = TypeVar("Field")
VERSION = 2
PLAN = TypeAdapter(Plan)
SITE = TypeAdapter(Site)
INVENTORY = TypeAdapter(Cluster)
OUTCOME = TypeAdapter(Outcome)
ATTEMPT = TypeAdapter(Attempt)
OF_THE_FILE = ("version", "sha256", "inherited_env")
KINDS = {Intent: "intent", Adopted: "adopted", Ended: "outcome"}
DEEPEST = 64  # our own nest less than ten deep
MOST_ATTEMPTS = 1_000_000
STATES = frozenset({"valid", "invalid", "failed", "infra-lost", "interrupted"})
WORDS = ("id", "created", "experiment", "cluster", "identity")


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


def sweep_document(record: SweepRecord) -> dict[str, JSON]:
    """A record as sweep.json has it, with the sha256 of the rest of it."""
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
            "plan": PLAN.dump_python(record.plan, mode="json"),
            "site": SITE.dump_python(record.site, mode="json"),
        }
    )


def version(record: Mapping[str, JSON]) -> int:
    """The version of what sweep.json holds, whatever else it says.

    Raises:
        ValueError: it says none.
    """
    found = record.get("version")
    if type(found) is not int or found < 1:
        raise ValueError(f"it has version {found!r}")
    return found


def sweep(record: Mapping[str, JSON], sweep_id: str) -> SweepRecord:
    """What sweep.json of this version holds, if it is whole and of this very sweep.

    Raises:
        ValueError: it is not, and why.
    """
    words = {key: value for key in WORDS if isinstance(value := record.get(key), str)}
    missing = [key for key in WORDS if key not in words]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    if words["id"] != sweep_id:
        raise ValueError(f"it is the record of sweep {words['id']}")
    if record.get("sha256") != _sealed(record)["sha256"]:
        raise ValueError("it was changed: its sha256 is not that of its content")
    inputs = record.get("inputs")
    if not isinstance(inputs, Mapping):
        raise ValueError("it lacks inputs")
    return SweepRecord(
        **words,
        inputs=inputs,
        inventory=_read(INVENTORY, record, "inventory"),
        plan=_read(PLAN, record, "plan"),
        site=_read(SITE, record, "site"),
    )


def attempt_document(attempt: Attempt, inherited_env: Mapping[str, str]) -> dict[str, JSON]:
    """An attempt as attempt.json has it, with the sha256 of the rest of it."""
    bound = ATTEMPT.dump_python(attempt, mode="json")
    return _sealed({"version": VERSION, **bound, "inherited_env": dict(inherited_env)})


def attempt(content: bytes) -> Attempt:
    """What attempt.json of this version holds, if it is whole.

    Raises:
        ValueError: it is not, and why.
    """
    found = document(content)
    if version(found) != VERSION:
        raise ValueError(f"it has version {version(found)}")
    if found.get("sha256") != _sealed(found)["sha256"]:
        raise ValueError("it was changed: its sha256 is not that of its content")
    bound = {key: value for key, value in found.items() if key not in OF_THE_FILE}
    return _read(ATTEMPT, {"attempt": bound}, "attempt")


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


def _sealed(record: Mapping[str, JSON]) -> dict[str, JSON]:
    """With the sha256 of the rest of it, by which damage is seen that parses well."""
    bare = {key: value for key, value in record.items() if key != "sha256"}
    content = json.dumps(bare, sort_keys=True, allow_nan=False).encode()
    return {**bare, "sha256": hashlib.sha256(content).hexdigest()}


def _read(shape: TypeAdapter[Field], record: Mapping[str, JSON], key: str) -> Field:
    try:
        return shape.validate_python(record.get(key), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in (key, *first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from error
