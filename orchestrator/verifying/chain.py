"""The chain of checksums: events, outcomes, logs, attempts and exit files of every trial."""

import contextlib
import hashlib
import re
from collections.abc import Mapping, Sequence

from orchestrator.verifying import folder
from orchestrator.verifying.findings import at, codes, items, number, text
from orchestrator.verifying.folder import Folder

_ENDED_WELL = re.compile(rb"0 exited\s*")
Object = Mapping[str, object]


def check(place: Folder, record: Object) -> dict[str, Object]:
    """Follow the checksums from SHA256SUMS to the raw logs; return the outcomes by trial."""
    folder.check_sums(place)
    events = folder.events(place)
    _check_end(place)
    for path in sorted((place.path / "attempts").glob("*/a*/attempt.json")):
        name = path.relative_to(place.path).as_posix()
        _, trial, attempt, _ = name.split("/")
        document = place.sealed(name)
        if document is not None:
            number_of = int(attempt[1:]) if attempt[1:].isdecimal() else attempt
            own = {"sweep": record.get("id"), "trial": trial, "number": number_of}
            place.findings.same(name, "", document, own)
    found = {}
    for planned in items(at(record, "plan", "trials")):
        name = text(planned.get("name"))
        outcome = _outcome(place, planned, [it for it in events if it.get("trial") == name])
        if outcome is not None:
            found[name] = outcome
    return found


def _check_end(place: Folder) -> None:
    """Compare ``ended.json`` with the files as they were when a command last ended in good order.

    An interrupted command may have added events since, so any beginning of the events counts.
    """
    if not (place.path / "ended.json").is_file():
        return
    document = place.document("ended.json") or {}
    if "sweep.json" in document:
        place.findings.same("ended.json", "", document, {"sweep.json": place.sha256("sweep.json")})
    noted = document.get("events.jsonl")
    if noted is None:
        return
    hashed = hashlib.sha256()
    with contextlib.suppress(OSError), open(place.path / "events.jsonl", "rb") as file:
        for line in file:
            hashed.update(line)
            if hashed.hexdigest() == noted:
                return
    place.findings.differs("events.jsonl", "sha256", hashed.hexdigest(), f"{noted} by ended.json")


def _outcome(place: Folder, planned: Object, events: Sequence[Object]) -> Object | None:
    """Check one trial's outcome against its events, logs, attempt and exit files."""
    log = f"logs/{text(planned.get('log'))}"
    name = f"{log.removesuffix('.log')}.json"
    ends = [it for it in events if it.get("event") == "outcome"]
    if not any(it.get("outcome") for it in ends) and not (place.path / name).exists():
        return None
    outcome = place.document(name)
    if outcome is None:
        return None
    _check_event(place, name, outcome, ends)
    own = [it for it in events if it.get("attempt") == outcome.get("attempt")]
    intent = own[0] if own and own[0].get("event") == "intent" else {}
    announced = {"port": outcome.get("port"), "log": planned.get("log")}
    place.findings.same("events.jsonl", f"intent of {outcome.get('trial')}", intent, announced)
    attempt = f"attempts/{text(outcome.get('trial'))}/a{outcome.get('attempt')}"
    for end in items(outcome.get("tasks")):
        _check_raw_log(place, f"{attempt}/r{end.get('node_rank')}.log", name, end)
    observed = outcome.get("observed")
    for file, digest in observed.items() if isinstance(observed, Mapping) else ():
        _check_sha256(place, f"{attempt}/{file}", digest, name)
    if outcome.get("state") in ("valid", "invalid"):  # its log was read
        _check_sha256(place, log, outcome.get("sha256"), name)
        _check_attempt(place, planned, attempt, outcome)
    return outcome


def _check_event(place: Folder, name: str, outcome: Object, ends: Sequence[Object]) -> None:
    findings, attempt = place.findings, outcome.get("attempt")
    event = next((it for it in reversed(ends) if it.get("attempt") == attempt), None)
    if event is None:
        findings.differs(name, "attempt", attempt, "an attempt with an outcome in events.jsonl")
        return
    digest = place.sha256(name)
    if event.get("outcome") not in (digest, "", None):
        findings.differs(name, "sha256", digest, f"{event.get('outcome')} by events.jsonl")
    recorded = {key: event.get(key) for key in ("trial", "state", "sha256")}
    findings.same(name, "", {key: outcome.get(key) for key in recorded}, recorded)
    problems = items(outcome.get("problems"))
    first: Object = problems[0] if problems else {}
    for key in ("code", "message"):
        findings.same(name, f"problems[0].{key}", first.get(key, ""), event.get(key, ""))


def _check_raw_log(place: Folder, log: str, name: str, end: Object) -> None:
    digest, where = place.sha256(log), f"tasks[{end.get('node_rank')}]"
    if digest != text(end.get("sha256")) and (digest or end.get("sha256")):
        said = f"{end.get('sha256')} by {where}.sha256 of {name}"
        place.findings.differs(log, "sha256", digest, said)
    if digest:
        size = (place.path / log).stat().st_size
        place.findings.same(name, f"{where}.size_bytes", end.get("size_bytes"), size)


def _check_sha256(place: Folder, file: str, recorded: object, by: str) -> None:
    digest = place.sha256(file)
    if digest != recorded:
        place.findings.differs(file, "sha256", digest, f"{recorded} by {by}")


def _check_attempt(place: Folder, planned: Object, attempt: str, outcome: Object) -> None:
    """Compare an outcome with what was started, and with how its tasks say that they exited."""
    findings, name = place.findings, f"{attempt}/attempt.json"
    record = f"logs/{text(planned.get('log')).removesuffix('.log')}.json"
    _check_sha256(place, name, outcome.get("attempt_sha256"), record)
    document = place.document(name)
    if document is None:
        return
    tasks, ends = items(document.get("tasks")), items(outcome.get("tasks"))
    findings.same(record, "port", outcome.get("port"), document.get("port"))
    nodes = [task.get("node") for task in tasks]
    findings.same(record, "tasks", [end.get("node") for end in ends], nodes)
    raw = f"{attempt}/r{document.get('log_rank') or 0}.log"
    digest = place.sha256(raw)
    if digest != outcome.get("sha256"):
        log = f"logs/{text(planned.get('log'))}"
        findings.differs(log, "sha256", outcome.get("sha256"), f"{digest}, of {raw}")
    went = [value for end in ends if (value := number(end.get("went_at"))) is not None]
    skew_s = max(went) - min(went) if went and len(went) == len(ends) else None
    findings.same(record, "start_skew_s", outcome.get("start_skew_s"), skew_s)
    count = at(planned, "case", "gpus_per_node")
    for index, task in enumerate(tasks):
        gpus = task.get("gpus")
        if isinstance(gpus, list) and gpus and len({*map(str, gpus)}) != count:
            findings.differs(name, f"tasks[{index}].gpus", str(gpus), f"{count} GPUs")
    if outcome.get("state") == "valid":
        services = [task.get("node_rank") for task in tasks if task.get("service")]
        findings.same(record, "problems", codes(outcome.get("problems")), [])
        for end in ends:
            if end.get("node_rank") not in services:
                _check_exit(place, attempt, record, end)


def _check_exit(place: Folder, attempt: str, record: str, end: Object) -> None:
    """Require that a task of a valid trial exited with 0, by its outcome and its exit file."""
    rank = end.get("node_rank")
    place.findings.same(record, f"tasks[{rank}].status", end.get("status"), 0)
    path, gate = (place.path / f"{attempt}/r{rank}.{name}" for name in ("exit", "go"))
    if not path.is_file() and not gate.is_file():
        return  # the files of a remote node that hold no measurement stay there
    try:
        content = path.read_bytes()[:100]
    except OSError:
        content = b"no such file"
    if not _ENDED_WELL.fullmatch(content):
        said = content.decode("utf-8", "replace").strip()
        place.findings.differs(f"{attempt}/r{rank}.exit", "", said, f"0 exited, by {record}")
