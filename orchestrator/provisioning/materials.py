"""What images are prepared from: the lock beside an inventory, a bundle, downloads."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.files import downloads, load
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.inputs import yaml_files
from orchestrator.model.bundle import FILE_NAME, Bundle
from orchestrator.model.lock import EMPTY, Lock, file_name
from orchestrator.state.store import Store, write

if TYPE_CHECKING:
    from orchestrator.runtimes.images import Credentials


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a command asks of images.

    Args:
        names: of the images to prepare.
        relock: resolve what bases stand for now, and trust downloads as they come.
        bundle: a folder that holds images and downloads.
    """

    names: tuple[str, ...]
    inventory: Path
    relock: bool
    bundle: Path | None


@dataclass(slots=True)
class Preparing:
    """What preparing images works with."""

    fleet: Fleet
    wanted: Wanted
    lock: Lock
    bundle: Bundle | None
    downloads: Downloads
    credentials: "Credentials | None"
    voice: Voice

    @property
    def mirror(self) -> str | None:
        """Where bases are pulled from, if not from where their names say."""
        registry = self.fleet.cluster.registry
        return registry.mirror if registry else None


def begin(
    store: Store,
    fleet: Fleet,
    wanted: Wanted,
    voice: Voice,
    credentials: "Credentials | None",
) -> Preparing:
    """Read the lock and the bundle.

    Raises:
        ConfigError: one of them does not hold.
        ImageError: the bundle's files are not what they must be.
    """

    def progress(url: str, got: int, total: int | None) -> None:
        of = f" of {total >> 20}" if total else ""
        voice.working(f"{url}: {got >> 20}{of} MiB")

    kept = Downloads(store.root / "downloads", progress)
    bundle = _bundle(wanted.bundle) if wanted.bundle else None
    held = lock(wanted.inventory)
    if bundle is not None and wanted.bundle is not None:
        parts = {part.url: part.sha256 for part in bundle.downloads}
        held = held.extended({**bundle.bases, **held.images}, {**parts, **held.downloads})
        for part in bundle.downloads:
            if kept.cached(part.sha256) is None:
                kept.adopt(wanted.bundle / part.file, part.sha256)
    return Preparing(fleet, wanted, held, bundle, kept, credentials, voice)


def lock(inventory: Path) -> Lock:
    """The lock beside an inventory; an empty one where there is none.

    Raises:
        ConfigError: it does not hold.
    """
    path = _lock_path(inventory)
    return load.validated(load.read(path), Lock) if path.exists() else EMPTY


def keep_lock(preparing: Preparing) -> None:
    """Write the lock beside the inventory.

    Raises:
        StoreError, LocalError: the old one stays.
    """
    path = _lock_path(preparing.wanted.inventory)
    text = preparing.lock.text()
    if not path.exists() or path.read_text() != text:
        write(path, text.encode())
        preparing.voice.line(f"lock written: {path}")


def _lock_path(inventory: Path) -> Path:
    return inventory.with_name(file_name(inventory.name))


def _bundle(folder: Path) -> Bundle:
    document = load.read(folder / FILE_NAME)
    bundle = load.validated(document, Bundle)
    yaml_files.refuse(document, bundle.contradictions())
    damages = bundle.damages(downloads.found(folder, bundle.files))
    if damages:
        raise errors.ImageError(
            f"the bundle in {folder} is damaged: {'; '.join(damages)}",
            code="BUNDLE-DAMAGED",
            fix="copy it again, or make it again",
        )
    return bundle
