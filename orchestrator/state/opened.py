"""A sweep opened from whatever names it: an id, a playbook, a folder, or an archive."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors, words
from orchestrator.state import archives
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep


@dataclass(frozen=True, slots=True)
class OpenedSweep:
    """A sweep and where it came from.

    Args:
        archive: the file that it lies in; None of a folder. What is written into the folder of
            such a sweep is gone when it is closed.
    """

    sweep: Sweep
    archive: Path | None

    @property
    def name(self) -> str:
        """Path to show in messages: the archive's, or the sweep's folder."""
        return str(self.archive or self.sweep.folder)


@contextlib.contextmanager
def opened(store: Store, name: str | None) -> Iterator[OpenedSweep]:
    """Open a sweep by id, its beginning, folder, playbook or archive; the newest for None.

    An archive is unpacked into a folder that is removed when the block ends.

    Raises:
        UsageError: NO-SWEEP, SWEEP-AMBIGUOUS; or ARCHIVE-DAMAGED, ARCHIVE-UNSAFE.
        StoreError: its record cannot be read.
    """
    if name and name.endswith((archives.SUFFIX, ".json")) and not Path(name).exists():
        raise errors.UsageError(
            f"there is no file {words.shown(name)}",
            code="NO-SWEEP",
            fix="give the path of what `dlperf-orch archive` or `collect` wrote, or a sweep's id",
        )
    if name is None or not archives.is_one(Path(name)):
        yield OpenedSweep(store.sweep(name), None)
        return
    with tempfile.TemporaryDirectory(prefix="dlperf-archive-") as folder:
        sweep = archives.unpack(Path(name), Path(folder))
        sweep.record()
        yield OpenedSweep(sweep, Path(name))
