"""The folder of one sweep: record, events, attempts, logs and outcomes."""

import contextlib
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator import disk, errors
from orchestrator.model.attempt import Attempt, Outcome
from orchestrator.model.sweep import Event, History, SweepRecord, by_trial
from orchestrator.model.text import shape
from orchestrator.state import records
from orchestrator.state.files import dumps, ours, read, replacing, write
from orchestrator.state.lock import Lock

# By folder of a sweep: held by the thread of this process that writes there.
_GATES: dict[Path, threading.Lock] = {}


class Sweep:
    def __init__(self, folder: Path, sweep_id: str | None = None) -> None:
        self.id = sweep_id or folder.name  # a folder may have been renamed
        self.folder = folder
        self._gate = _GATES.setdefault(folder.resolve(), threading.Lock())

    @classmethod
    def at(cls, folder: Path) -> "Sweep":
        """Open a sweep whose folder may have been renamed, by the id in its record."""
        try:
            sweep_id = records.document((folder / "sweep.json").read_bytes()).get("id")
        except (OSError, ValueError):
            return cls(folder)  # whoever reads the record reports the damage
        return cls(folder, sweep_id if isinstance(sweep_id, str) else None)

    @property
    def playbook(self) -> str:
        """The playbook's name, with which the sweep's id begins."""
        return self.id.rsplit("-", 3)[0]

    def lock(self) -> Lock:
        """Return the lock that a process holds while it runs this sweep."""
        return Lock(self.folder / "lock", f"sweep {self.id}", self.folder.parent.parent)

    def remove_unfinished(self) -> None:
        """Remove files that killed processes left half written; call it with the lock held."""
        disk.remove_unfinished(self.folder.rglob("*.new"))

    def record(self) -> SweepRecord:
        """Read sweep.json; a StoreError if it is damaged, gone, or of another sweep or version."""
        path = self.folder / "sweep.json"
        with _refusing_damage(path):
            if (content := read(path)) is None:
                raise ValueError("it is gone")
            return records.sweep(content, self.id)

    def keep_record(self, record: SweepRecord) -> None:
        """Write sweep.json; ended.json, which seals the one before, is removed."""
        with ours(self.folder):
            (self.folder / "ended.json").unlink(missing_ok=True)
        content = dumps(records.sweep_document(record)).encode()
        write(self.folder / "sweep.json", content, self._gate)

    def append(self, event: Event) -> None:
        """Add a line to events.jsonl; when this returns it outlives a power cut."""
        path = self.folder / "events.jsonl"
        line = dumps(records.event_line(event), indent=None)
        with ours(path), self._gate:
            with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
                size = file.seek(0, os.SEEK_END)
                if size:  # without a last line that a crash cut short
                    file.seek(size - 1)
                    if file.read(1) != b"\n":
                        file.seek(0)
                        file.seek(file.read().rfind(b"\n") + 1)
                        file.truncate()
                file.write(line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if not size:
                disk.sync_folder(self.folder)

    def events(self) -> tuple[Event, ...]:
        """Read all events so far, without a last line that a crash cut short."""
        path = self.folder / "events.jsonl"
        content = read(path) or b""
        lines = content[: content.rfind(b"\n") + 1].splitlines()
        with _refusing_damage(path):
            return tuple(records.event(line) for line in lines)

    def histories(self) -> dict[str, History]:
        """Return the history of attempts, by trial name.

        An attempt with a folder here but without an event counts as begun and open: its number is
        not used again, and its tasks are adopted or ended.
        """
        histories = by_trial(self.events())
        place = self.folder / "attempts"
        with ours(place):
            trials = disk.listed(place)
        for trial in trials:
            with ours(trial):
                folders = disk.listed(trial)
            for path in folders:
                if re.fullmatch("a[1-9][0-9]{0,5}", path.name, re.ASCII) and path.is_dir():
                    history = histories.setdefault(trial.name, History())
                    number = int(path.name[1:])
                    if number > history.attempts:
                        with ours(path):
                            history.found[number] = disk.is_there(path / "attempt.json")
        return histories

    def freeze(self) -> None:
        """Block every further write of this process to the sweep, for ever.

        For daemon threads that are left behind while another process takes the sweep's lock.
        """
        self._gate.acquire()

    def open_attempts(self) -> list[Attempt]:
        """Return the attempts that were begun and have no outcome, in the order of the plan."""
        histories = self.histories()
        return [
            self.attempt(trial.name, number)
            for trial in self.record().plan.trials
            for number in histories.get(trial.name, History()).open
        ]

    def attempt(self, trial: str, number: int) -> Attempt:
        """Read an attempt as it was bound; a StoreError if its record is damaged or gone."""
        path = self._description(trial, number)
        with _refusing_damage(path):
            attempt = records.attempt(read(path) or b"")
            if (attempt.sweep, attempt.trial, attempt.number) != (self.id, trial, number):
                raise ValueError(f"it belongs to {attempt.trial} a{attempt.number}")
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
        """Return the folder of an attempt's raw logs."""
        return self.folder / "attempts" / trial / f"a{number}"

    def log(self, name: str) -> Path:
        """Return the log of the attempt that counts, by its name in the plan."""
        return self.folder / "logs" / name

    def keep_log(self, name: str, source: Path) -> None:
        """Link an attempt's log, synced, to the place of the one that counts: it is stored once.

        A power cut or a full disk may leave the place empty.
        """
        target = self.log(name)
        with ours(source), open(source, "rb") as log, ours(target):
            os.fsync(log.fileno())
            disk.make_folder(target.parent)
            try:
                with self._gate:
                    target.unlink(missing_ok=True)
                    os.link(source, target)
            except OSError:  # a file system without links
                with replacing(target, self._gate) as file:
                    shutil.copyfileobj(log, file)
            disk.sync_folder(target.parent)

    def outcome(self, name: str) -> tuple[Outcome, str] | None:
        """Read the outcome beside a log, with the sha256 of its bytes; None without an outcome."""
        path = self.log(name).with_suffix(".json")
        content = read(path)
        if content is None:
            return None
        with _refusing_damage(path):
            outcome = shape(Outcome).validate_json(content, strict=True)
            return outcome, hashlib.sha256(content).hexdigest()

    def keep_outcome(self, name: str, outcome: Outcome) -> str:
        """Write the outcome beside a log; return the sha256 of its bytes."""
        content = dumps(shape(Outcome).dump_python(outcome, mode="json")).encode()
        write(self.log(name).with_suffix(".json"), content, self._gate)
        return hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def _refusing_damage(path: Path) -> Iterator[None]:
    """Turn the ValueError of a file that cannot be parsed into STORE-DAMAGED."""
    try:
        yield
    except ValueError as error:
        raise errors.StoreError(
            f"{path} is damaged: {error}",
            code="STORE-DAMAGED",
            fix="restore the file, or start a new sweep with --new; the logs are untouched",
        ) from error
