"""The state folder: its sweeps, newest first, and what provisioning kept of each cluster."""

import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import disk, errors, words
from orchestrator.model.process import Holder
from orchestrator.model.sweep import SweepRecord
from orchestrator.state.files import now, ours, read, write
from orchestrator.state.lock import Lock
from orchestrator.state.sweep import Sweep

PARTS = ("sweep.json", "events.jsonl", "attempts", "logs")
# Experiment, and when the sweep was made.
SWEEP_ID = re.compile(
    r"([A-Za-z0-9][\w.-]*)-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-[0-9a-f]{6}", re.ASCII
)


class Store:
    def __init__(self, root: Path) -> None:
        self.root = root

    def sweeps(self) -> list[Sweep]:
        """List the sweeps whose records can be read, newest first."""
        return self._read_all()[0]

    def unreadable(self) -> dict[str, errors.DlperfError]:
        """Return, by id, why a sweep's record cannot be read; other sweeps are not affected."""
        return self._read_all()[1]

    def _read_all(self) -> tuple[list[Sweep], dict[str, errors.DlperfError]]:
        """Read every record; a sweep that was killed before it began has none and is no sweep."""
        place, created = self.root / "sweeps", dict[Sweep, str]()
        failures = dict[str, errors.DlperfError]()
        with ours(place):
            folders = [
                it for it in disk.listed(place) if any(disk.is_there(it / name) for name in PARTS)
            ]
        for sweep in map(Sweep, folders):
            try:
                created[sweep] = sweep.record().created  # a copy of the folder has other file times
            except errors.DlperfError as error:
                failures[sweep.id] = error
        return sorted(created, key=lambda it: (created[it], it.id), reverse=True), failures

    def identity(self) -> str:
        """Return what tells this state folder from others, wherever it is moved to."""
        path = self.root / "identity"
        if (content := read(path)) is None:
            write(path, secrets.token_hex(8).encode())
            content = read(path) or b""
        return content.decode(errors="replace").strip()

    def sweep_ids(self) -> frozenset[str]:
        """Return the ids of all sweeps, also of those whose record cannot be read."""
        readable, unreadable = self._read_all()
        return frozenset((*(sweep.id for sweep in readable), *unreadable))

    def sweep(self, name: str | None) -> Sweep:
        """Find a sweep by id, path, playbook (its newest) or beginning of an id; None: the newest.

        Raises:
            UsageError: there is none, or several ids begin so.
            StoreError: its record cannot be read, or that of one that may be newer.
        """
        name = name or None
        if name and os.path.isfile(os.path.join(name, "sweep.json")):  # too long a name is none
            return Sweep.at(Path(name).resolve())
        playbook = Path(name).stem if name and name.endswith(".yaml") else name

        def is_named(sweep: Sweep) -> bool:
            return name in (None, sweep.id) or playbook == sweep.playbook

        readable, unreadable = self._read_all()
        newest = next(filter(is_named, readable), None)
        made = newest.record().created[:19] if newest else ""
        for sweep_id, error in unreadable.items():
            named = SWEEP_ID.fullmatch(sweep_id)
            moment = "{}-{}-{}T{}:{}:{}".format(*named.groups()[1:]) if named else ""
            if is_named(self._at(sweep_id)) and moment >= made:
                raise error
        if newest is not None:
            return newest
        ids = [*(sweep.id for sweep in readable), *unreadable]
        fitting = [it for it in ids if name and it.startswith(name)]
        if len(fitting) > 1:
            raise errors.UsageError(
                f"several sweeps begin with {words.shown(name or '')}: {', '.join(fitting)}",
                code="SWEEP-AMBIGUOUS",
                fix="give more of the id",
            )
        for sweep_id in fitting:
            self._at(sweep_id).record()
            return self._at(sweep_id)
        raise errors.UsageError(
            f"no sweep {words.shown(name)} in {self.root}" if name else f"no sweep in {self.root}",
            code="NO-SWEEP",
            fix="see `dlperf-orch list sweeps`" if name else "run `dlperf-orch sweep PLAYBOOK`",
        )

    def new_sweep(self, record: SweepRecord) -> Sweep:
        """Create a sweep: its record, in a folder ``EXPERIMENT-YYYYMMDD-HHMMSS-xxxxxx``.

        Tasks carry the id on their nodes, so it must be unique beyond this state folder.
        """
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        folder = self.root / "sweeps" / f"{record.experiment}-{moment}-{secrets.token_hex(3)}"
        with ours(folder):
            disk.make_folder(folder)
        sweep = Sweep(folder)
        sweep.keep_record(replace(record, id=sweep.id, created=now()))
        return sweep

    def _at(self, sweep_id: str) -> Sweep:
        return Sweep(self.root / "sweeps" / sweep_id)

    def lock(self, cluster: str) -> Lock:
        """Return the lock that a process holds while it measures on a cluster."""
        return Lock(self.root / "sites" / f"{cluster}.lock", f"cluster {cluster}", self.root)

    def cluster_holders(self) -> list[Holder]:
        """List those who measure on a cluster of this state folder, or prepare it."""
        place = self.root / "sites"
        with ours(place):
            names = [path.stem for path in disk.listed(place) if path.suffix == ".lock"]
        return [holder for name in names if (holder := self.lock(name).holder()) is not None]

    def site(self, cluster: str) -> bytes | None:
        """Return the site that provisioning kept of a cluster, as JSON, or None."""
        return read(self.root / "sites" / f"{cluster}.json")

    def keep_site(self, cluster: str, content: bytes) -> Path:
        """Write a cluster's site; return the path of its file."""
        path = self.root / "sites" / f"{cluster}.json"
        write(path, content)
        disk.remove_unfinished(path.parent.glob(f"{path.name}.*.new"))
        return path

    def sites(self) -> Iterator[bytes]:
        """Return the sites of all clusters as JSON, the file written last first."""
        place = self.root / "sites"
        with ours(place):
            files = [path for path in disk.listed(place) if path.suffix == ".json"]
            paths = sorted(files, key=lambda path: path.stat().st_mtime)
        for path in reversed(paths):
            with ours(path):
                content = path.read_bytes()
            yield content
