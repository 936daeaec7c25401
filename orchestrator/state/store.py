"""The state folder: plans, events, logs, results, written so that a crash leaves them whole."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, TypeAlias

from orchestrator import __version__, disk, errors, words
from orchestrator.disk import on_disk
from orchestrator.model import history
from orchestrator.model.attempt import Attempt
from orchestrator.model.event import Event
from orchestrator.model.facts import JSON
from orchestrator.model.history import History
from orchestrator.model.outcome import Outcome
from orchestrator.model.process import Holder
from orchestrator.model.shapes import shape
from orchestrator.model.sweep import SweepRecord
from orchestrator.state import records
from orchestrator.state.lock import Lock

PIECE_BYTES = 1 << 20
PARTS = ("sweep.json", "events.jsonl", "attempts", "logs")
Gate: TypeAlias = contextlib.AbstractContextManager[object]
# By folder of a sweep: held by the thread of this process that writes there.
_GATES: dict[Path, threading.Lock] = {}
# Experiment, and when the sweep was made.
SWEEP_ID = re.compile(
    r"([A-Za-z0-9][\w.-]*)-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-[0-9a-f]{6}", re.ASCII
)


def now() -> str:
    """The time as every file of ours writes it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def dumps(document: JSON, *, indent: int | None = 1) -> str:
    """JSON without NaN, in the order in which the document was made."""
    return json.dumps(document, allow_nan=False, ensure_ascii=False, indent=indent)


def _ours(path: Path) -> contextlib.AbstractContextManager[None]:
    """Turn an OSError about a file of the state folder into an error of ours."""
    return on_disk(path, "STORE-RIGHTS", "choose another folder with --state, or --out for reports")


def write(path: Path, content: bytes, gate: Gate | None = None) -> None:
    """Write a whole file: aside, synced, renamed, and the folder synced.

    Args:
        gate: held while the file takes its place.

    Raises:
        StoreError, LocalError: the old file, if any, is untouched.
    """
    with replacing(path, gate) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path, gate: Gate | None = None) -> Iterator[BinaryIO]:
    """A file of ours that takes the place of ``path`` when the block ends well.

    Args:
        gate: held while it does.

    Raises:
        StoreError, LocalError: the old file, if any, is untouched.
    """
    with _ours(path), disk.replacing(path, gate) as file:
        yield file


def _cut_torn_line(file: BinaryIO) -> None:
    """Leave the file at its end, without a last line that a crash cut short."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(size - 1)
    if file.read(1) != b"\n":
        file.seek(0)
        file.seek(file.read().rfind(b"\n") + 1)
        file.truncate()


class Sweep:
    """The folder of one sweep."""

    def __init__(self, folder: Path) -> None:
        self.id = folder.name
        self.folder = folder
        self._gate = _GATES.setdefault(folder.resolve(), threading.Lock())

    @property
    def playbook(self) -> str:
        """The playbook's name, with which the sweep's id begins."""
        return self.id.rsplit("-", 3)[0]

    def lock(self) -> Lock:
        """The lock that a process holds while it runs this sweep."""
        return Lock(self.folder / "lock", f"sweep {self.id}", self.folder.parent.parent)

    def remove_unfinished(self) -> None:
        """Remove files that killed processes left half written; call it with the lock held."""
        disk.remove_unfinished(self.folder.rglob("*.new"))

    def record(self) -> SweepRecord:
        """The sweep's record, sweep.json.

        Raises:
            StoreError: it is damaged or gone, of another sweep, or of another version.
        """
        path = self.folder / "sweep.json"
        try:
            with _ours(path):
                content = path.read_bytes() if path.exists() else None
            if content is None:
                raise ValueError("it is gone")
            return _checked(content, self.id)
        except ValueError as error:
            raise _damaged(path, error) from error

    def keep_record(self, record: SweepRecord) -> None:
        """Write sweep.json."""
        content = dumps(records.sweep_document(record)).encode()
        write(self.folder / "sweep.json", content, self._gate)

    def append(self, event: Event) -> None:
        """Add a line to events.jsonl; when this returns it outlives a power cut."""
        path = self.folder / "events.jsonl"
        line = dumps(records.event_line(event), indent=None)
        with _ours(path), self._gate:
            new = not path.exists()
            with open(path, "w+b" if new else "r+b") as file:
                _cut_torn_line(file)
                file.write(line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if new:
                disk.sync_folder(self.folder)

    def events(self) -> tuple[Event, ...]:
        """Every event so far, without a last line that a crash cut short.

        Raises:
            StoreError: another line is damaged; the file is left as it is.
        """
        path = self.folder / "events.jsonl"
        if not path.exists():
            return ()
        with _ours(path):
            content = path.read_bytes()
        lines = content[: content.rfind(b"\n") + 1].splitlines()
        try:
            events = [records.event(line) for line in lines]
        except ValueError as error:
            raise _damaged(path, error) from error
        return tuple(event for event in events if event is not None)

    def histories(self) -> dict[str, History]:
        """By trial name, the history of its attempts.

        An attempt with a folder here but without an event counts as begun and open: its number is
        not used again, and its tasks are adopted or ended.

        Raises:
            StoreError: the events are damaged.
        """
        histories = history.by_trial(self.events())
        for trial, number in self.attempts():
            trial_history = histories.setdefault(trial, History())
            if number > trial_history.attempts:
                trial_history.find(number, bound=self._description(trial, number).exists())
        return histories

    def freeze(self) -> None:
        """Block every further write of this process to the sweep, for ever.

        For daemon threads that are left behind while another process takes the sweep's lock.
        """
        self._gate.acquire()

    def attempts(self) -> list[tuple[str, int]]:
        """Trial and number of every attempt that has a folder here, whatever the events say."""
        folders = (self.folder / "attempts").glob("*/a[1-9]*")
        return [
            (path.parent.name, int(path.name[1:]))
            for path in folders
            if re.fullmatch("a[0-9]{1,6}", path.name, re.ASCII) and path.is_dir()
        ]

    def attempt(self, trial: str, number: int) -> Attempt:
        """An attempt as it was bound.

        Raises:
            StoreError: attempt.json is damaged, or gone.
        """
        path = self._description(trial, number)
        try:
            with _ours(path):
                content = path.read_bytes() if path.exists() else b""
            attempt = records.attempt(content)
        except ValueError as error:
            raise _damaged(path, error) from error
        if (attempt.sweep, attempt.trial, attempt.number) != (self.id, trial, number):
            raise _damaged(path, ValueError(f"it belongs to {attempt.trial} a{attempt.number}"))
        return attempt

    def keep_attempt(self, attempt: Attempt, inherited_env: Mapping[str, str]) -> None:
        """Write attempt.json, before anything of the attempt starts.

        Args:
            inherited_env: the variables that its tasks inherit from this program's environment.
        """
        content = dumps(records.attempt_document(attempt, inherited_env)).encode()
        write(self._description(attempt.trial, attempt.number), content, self._gate)

    def _description(self, trial: str, number: int) -> Path:
        return self.attempt_folder(trial, number) / "attempt.json"

    def attempt_folder(self, trial: str, number: int) -> Path:
        """Where an attempt's raw logs lie."""
        return self.folder / "attempts" / trial / f"a{number}"

    def log(self, name: str) -> Path:
        """The log of the attempt that counts, by its name in the plan."""
        return self.folder / "logs" / name

    def keep_log(self, name: str, source: Path) -> None:
        """Copy an attempt's log to the place of the one that counts, synced and renamed.

        Raises:
            StoreError, LocalError: the place holds what it held before.
        """
        target = self.log(name)
        with _ours(source), open(source, "rb") as log, replacing(target, self._gate) as file:
            shutil.copyfileobj(log, file, PIECE_BYTES)

    def outcome(self, name: str) -> tuple[Outcome, str] | None:
        """The outcome that lies beside a log, and the sha256 of its bytes; None without one.

        Raises:
            StoreError: it is damaged.
            LocalError: the file cannot be read.
        """
        path = self.log(name).with_suffix(".json")
        with _ours(path):
            if not path.exists():
                return None
            content = path.read_bytes()
        try:
            outcome = shape(Outcome).validate_json(content, strict=True)
        except ValueError as error:
            raise _damaged(path, error) from error
        return outcome, hashlib.sha256(content).hexdigest()

    def keep_outcome(self, name: str, outcome: Outcome) -> str:
        """Write the outcome beside a log; the sha256 of its bytes."""
        content = dumps(shape(Outcome).dump_python(outcome, mode="json")).encode()
        write(self.log(name).with_suffix(".json"), content, self._gate)
        return hashlib.sha256(content).hexdigest()


class Store:
    """A state folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def sweeps(self) -> list[Sweep]:
        """All sweeps whose record can be read, newest first."""
        whole = [sweep for sweep in self._folders() if _damage(sweep) is None]
        return sorted(whole, key=_age, reverse=True)

    def unreadable(self) -> dict[str, errors.DlperfError]:
        """By id, why the record of a sweep cannot be read; such sweeps stop no other."""
        damages = ((sweep.id, _damage(sweep)) for sweep in self._folders())
        return {sweep_id: error for sweep_id, error in damages if error is not None}

    def newest(self) -> Sweep:
        """The newest sweep.

        Raises:
            UsageError: there is none.
            StoreError: its record cannot be read, or that of one that may be newer.
        """
        newest = next(iter(self.sweeps()), None)
        _refuse_newer(newest, self.unreadable())
        if newest is None:
            raise errors.UsageError(
                f"no sweep in {self.root}", code="NO-SWEEP", fix="run `dlperf-orch sweep PLAYBOOK`"
            )
        return newest

    def sweep(self, name: str) -> Sweep:
        """The sweep of that id, path, playbook (its newest) or beginning of an id.

        Raises:
            UsageError: there is none, or several ids begin so.
            StoreError: its record cannot be read, or that of one that may be newer.
        """
        if os.path.isfile(os.path.join(name, "sweep.json")):  # a name that is too long is none
            return Sweep(Path(name).resolve())
        readable, unreadable = self.sweeps(), self.unreadable()
        playbook = Path(name).stem if name.endswith(".yaml") else name
        exact = [sweep for sweep in readable if name == sweep.id or playbook == sweep.playbook]
        of_it = {it: why for it, why in unreadable.items() if self._at(it).playbook == playbook}
        _refuse_newer(next(iter(exact), None), of_it)
        ids = [*(sweep.id for sweep in readable), *unreadable]
        fitting = [sweep.id for sweep in exact[:1]] or [
            it for it in ids if name and it.startswith(name)
        ]
        if len(fitting) == 1:
            self._at(fitting[0]).record()
            return self._at(fitting[0])
        if fitting:
            raise errors.UsageError(
                f"several sweeps begin with {words.shown(name)}: {', '.join(fitting)}",
                code="SWEEP-AMBIGUOUS",
                fix="give more of the id",
            )
        raise errors.UsageError(
            f"no sweep {words.shown(name)} in {self.root}",
            code="NO-SWEEP",
            fix="see `dlperf-orch list sweeps`",
        )

    def new_sweep(self, record: SweepRecord) -> Sweep:
        """A new sweep, its folder named ``EXPERIMENT-YYYYMMDD-HHMMSS-xxxxxx``, its record written.

        Tasks carry the id on their nodes, so it must be unique beyond this state folder.
        """
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        folder = self.root / "sweeps" / f"{record.experiment}-{moment}-{secrets.token_hex(3)}"
        with _ours(folder):
            disk.make_folder(folder)
        sweep = Sweep(folder)
        sweep.keep_record(replace(record, id=sweep.id, created=now()))
        return sweep

    def _at(self, sweep_id: str) -> Sweep:
        return Sweep(self.root / "sweeps" / sweep_id)

    def _folders(self) -> list[Sweep]:
        """Folders of sweeps; one without any file of ours was killed before it began."""
        place = self.root / "sweeps"
        with _ours(place):
            if not place.is_dir():
                return []
            return [
                Sweep(folder)
                for folder in sorted(place.iterdir())
                if any((folder / name).exists() for name in PARTS)
            ]

    def lock(self, cluster: str) -> Lock:
        """The lock that a process holds while it measures on a cluster.

        Raises:
            UsageError: STATE-NAME; the folder's path is not UTF-8, which the lock's file needs.
        """
        root = str(self.root.resolve())
        if root.encode(errors="replace").decode() != root:
            raise errors.UsageError(
                f"{words.shown(root)} is not UTF-8, and files in a state folder name it",
                code="STATE-NAME",
                fix="choose another folder with --state",
            )
        return Lock(self.root / "sites" / f"{cluster}.lock", f"cluster {cluster}", self.root)

    def cluster_holders(self) -> list[Holder]:
        """Who measures on a cluster of this state folder, or prepares it."""
        names = sorted(path.stem for path in (self.root / "sites").glob("*.lock"))
        return [holder for name in names if (holder := self.lock(name).holder()) is not None]

    def site(self, cluster: str) -> bytes | None:
        """The site that provisioning kept of a cluster, as JSON; None without one."""
        path = self.root / "sites" / f"{cluster}.json"
        with _ours(path):
            return path.read_bytes() if path.exists() else None

    def keep_site(self, cluster: str, content: bytes) -> Path:
        """Write a cluster's site; the path of its file."""
        path = self.root / "sites" / f"{cluster}.json"
        write(path, content)
        disk.remove_unfinished(path.parent.glob(f"{path.name}.*.new"))
        return path

    def sites(self) -> list[bytes]:
        """The sites of all clusters as JSON, newest first."""
        return list(self.sites_newest_first())

    def sites_newest_first(self) -> Iterator[bytes]:
        """The sites of all clusters as JSON, the file written last first.

        Raises:
            LocalError: a file cannot be read.
        """
        place = self.root / "sites"
        with _ours(place):
            paths = sorted(place.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in reversed(paths):
            with _ours(path):
                content = path.read_bytes()
            yield content


def _damage(sweep: Sweep) -> errors.DlperfError | None:
    try:
        sweep.record()
    except errors.DlperfError as error:
        return error
    return None


def _refuse_newer(newest: Sweep | None, unreadable: Mapping[str, errors.DlperfError]) -> None:
    made = _age(newest)[0] if newest else ""
    for sweep_id, error in unreadable.items():
        if _made(sweep_id) >= made[:19]:
            raise error


def _age(sweep: Sweep) -> tuple[str, str]:
    """When its record was made, by the record: file times change when a folder is copied."""
    return (sweep.record().created, sweep.id)


def _made(sweep_id: str) -> str:
    """When a sweep was made, to the second, by its id; empty if the id has another form."""
    named = SWEEP_ID.fullmatch(sweep_id)
    return "{}-{}-{}T{}:{}:{}".format(*named.groups()[1:]) if named else ""


@lru_cache(maxsize=64)
def _checked(content: bytes, sweep_id: str) -> SweepRecord:
    document = records.document(content)
    version = records.version(document)
    if version == records.VERSION:
        return records.sweep(document, sweep_id)
    by = document.get("written_by")
    writer = f"dlperf-orch {by}" if isinstance(by, str) else "an earlier dlperf-orch"
    raise errors.StoreError(
        f"sweep {sweep_id} was written by {writer} and has version {version};"
        f" dlperf-orch {__version__} reads version {records.VERSION} only",
        code="STORE-VERSION",
        fix="read it with the dlperf-orch that wrote it; `dlperf-orch sweep` starts a new one",
    )


def _damaged(path: Path, why: ValueError) -> errors.StoreError:
    return errors.StoreError(
        f"{path} is damaged: {why}",
        code="STORE-DAMAGED",
        fix="restore the file, or start a new sweep with --new; the logs are untouched",
    )
