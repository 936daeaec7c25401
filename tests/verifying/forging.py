"""Forge sweeps with care: make every hash fit that a forger could make fit."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from orchestrator.state import contents
from orchestrator.state.files import dumps
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep

RESULTS = "results.json"


def found(sweep: Sweep) -> set[str]:
    """Renew SHA256SUMS and return the files in which verification finds a difference."""
    contents.keep_sums(sweep)
    return {difference.file for difference in check_sweep(sweep).differences}


def leaves(document: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the place of each value that is no object or list, its holder, and its key there."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in [*items]:
        inner = f"{place}[{key}]" if isinstance(document, list) else f"{place}.{key}".lstrip(".")
        if isinstance(value, dict | list):
            yield from leaves(value, inner)
        else:
            yield inner, document, key


def change_leaf(holder: Any, key: Any) -> None:
    """Put another value of the same type into a document."""
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int | float):
        holder[key] = value * 3 + 1
    else:
        holder[key] = "1" if value is None else f"{value}1"


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change a document and write it as our program does, sealed where it was."""
    document = json.loads(path.read_text())
    change(document)
    if "sha256" in document and path.name in ("sweep.json", "attempt.json"):
        rest = {key: value for key, value in document.items() if key != "sha256"}
        content = json.dumps(rest, sort_keys=True).encode()
        document["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(dumps(document))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reseal(sweep: Sweep, name: str, **fields: Any) -> None:
    """Change an outcome; renew the hashes of its logs, and its event."""
    path = sweep.folder / f"logs/{name}.json"

    def change(outcome: dict[str, Any]) -> None:
        folder = sweep.attempt_folder(outcome["trial"], outcome["attempt"])
        outcome.update(fields, sha256=sha256(path.with_suffix(".log")))
        for end in outcome["tasks"]:
            raw = folder / f"r{end['node_rank']}.log"
            end.update(sha256=sha256(raw), size_bytes=raw.stat().st_size)
        outcome["attempt_sha256"] = sha256(folder / "attempt.json")
        for name in outcome["observed"]:
            outcome["observed"][name] = sha256(folder / name)

    edit(path, change)
    reseal_event(sweep, path)


def reseal_event(sweep: Sweep, path: Path, trial: str = "") -> None:
    """Make the event of an outcome agree with it."""
    outcome = json.loads(path.read_text())
    events = sweep.folder / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    for event in lines:
        if event["event"] == "outcome" and event["trial"] == (trial or outcome["trial"]):
            problem = (outcome["problems"] or [{"code": "", "message": ""}])[0]
            event.update(problem, state=outcome["state"], sha256=outcome["sha256"])
            event["outcome"] = sha256(path)
    events.write_text("".join(f"{dumps(event, indent=None)}\n" for event in lines))


def both_logs(sweep: Sweep, name: str) -> tuple[Path, Path]:
    """Return the log that counts, and the raw log that it is a copy of."""
    place, _, stem = name.partition("/")
    return sweep.folder / f"logs/{name}.log", sweep.attempt_folder(f"{place}-{stem}", 1) / "r0.log"


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, old
    path.write_text(text.replace(old, new))
