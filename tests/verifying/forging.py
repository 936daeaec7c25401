"""How sweeps are forged with care: what hashes something is made to fit again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.state import contents
from orchestrator.state.files import dumps
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep

ONE = "1n8g/r50_b256_amp_2"
RESULTS = "results.json"
Forgery = Callable[[Sweep], None]


class Forgeries(dict[str, tuple[Forgery, str]]):
    """By what was forged: how, and the file in which it is found."""

    def found_in(self, file: str) -> Callable[[Forgery], Forgery]:
        """Register one."""

        def register(forge: Forgery) -> Forgery:
            self[forge.__name__] = (forge, file)
            return forge

        return register


def found(sweep: Sweep, forge: Forgery) -> set[str]:
    """Files in which a difference is found after it; all checksums fit the forged ones."""
    forge(sweep)
    contents.keep_sums(sweep)
    return {difference.file for difference in check_sweep(sweep).differences}


def edit(path: Path, change: Callable[[Any], None]) -> None:
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
    """Change an outcome, and its event with it; hashes of its logs are made anew."""
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
    outcome = json.loads(path.read_text())
    events = sweep.folder / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    for event in lines:
        if event["event"] == "outcome" and event["trial"] == outcome["trial"]:
            problem = (outcome["problems"] or [{"code": "", "message": ""}])[0]
            event.update(problem, state=outcome["state"], sha256=outcome["sha256"])
            event["outcome"] = sha256(path)
    events.write_text("".join(f"{dumps(event, indent=None)}\n" for event in lines))


def both_logs(sweep: Sweep, name: str) -> tuple[Path, Path]:
    """The log that counts, and the raw log that it is a copy of."""
    place, _, stem = name.partition("/")
    return sweep.folder / f"logs/{name}.log", sweep.attempt_folder(f"{place}-{stem}", 1) / "r0.log"


def of_case(document: Any, number: int) -> Any:
    return document["cases"][number]


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, old
    path.write_text(text.replace(old, new))
