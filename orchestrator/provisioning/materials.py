"""Inputs of prepared images: the lock beside an inventory, a bundle, downloads."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import disk, errors
from orchestrator.console import Voice
from orchestrator.files import downloads, yaml_reader
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.model.bundle import FILE_NAME, Bundle
from orchestrator.model.image import LockFile
from orchestrator.state import lock as lock_files
from orchestrator.state.files import write
from orchestrator.state.store import Store

if TYPE_CHECKING:
    from orchestrator.runtimes.images import Credentials


@dataclass(slots=True)
class Preparing:
    """Nodes, options and materials of one image preparation; ``lock`` grows with ``relock``.

    Args:
        inventory: its file, beside which the lock lies.
        relock: resolve base tags and hash downloads anew, instead of holding them to the lock.
        bundled: the folder of the bundle.
        folder: for files on their way; where nodes share files, they see it too.
        state, owner: the identity of the state folder, and who works there, for images made.
    """

    fleet: Fleet
    inventory: Path
    relock: bool
    lock: LockFile
    bundled: Path | None
    bundle: Bundle | None
    downloads: Downloads
    voice: Voice
    folder: Path
    state: str = ""
    owner: str = ""
    credentials: "Credentials | None" = None

    @property
    def mirror(self) -> str | None:
        """Return the registry host to pull bases from, where it is not the one in their names."""
        registry = self.fleet.cluster.registry
        return registry.mirror if registry else None


def begin(
    store: Store,
    fleet: Fleet,
    voice: Voice,
    inventory: Path,
    relock: bool,
    bundled: Path | None,
) -> Preparing:
    """Read the lock and the bundle; what a bundle pins is added to the lock in memory.

    Raises:
        ConfigError: one of them is not valid.
        ImageError: BUNDLE-DAMAGED; a file of the bundle has another size or sha256.
    """

    def progress(url: str, got: int, total: int | None) -> None:
        of = f" of {total >> 20}" if total else ""
        voice.working(f"{url}: {got >> 20}{of} MiB")

    folder = store.root.resolve() / "downloads"
    downloads_here = Downloads(folder, progress)
    known_lock, bundle = lock(inventory), None
    if bundled is not None:
        document = yaml_reader.read(bundled / FILE_NAME)
        bundle = yaml_reader.validated(document, Bundle)
        if damages := downloads.find_damages(bundled, bundle.files):
            raise errors.ImageError(
                f"the bundle in {bundled} is damaged: {'; '.join(damages)}",
                code="BUNDLE-DAMAGED",
                fix="copy it again, or make it again",
            )
        parts = {part.url: part.sha256 for part in bundle.downloads}
        bases = {image.base: image.base_digest for image in bundle.images}
        known_lock = known_lock.extend(
            {**bases, **known_lock.images}, {**parts, **known_lock.downloads}
        )
        for part in bundle.downloads:
            if downloads_here.cached(part.sha256) is None:
                downloads_here.adopt(bundled / part.file, part.sha256)
    me = lock_files.own(store.root)
    return Preparing(
        fleet,
        inventory,
        relock,
        known_lock,
        bundled,
        bundle,
        downloads_here,
        voice,
        folder,
        state=store.identity(),
        owner=f"{me.user} on {me.process.host}, {me.folder}",
    )


def lock(inventory: Path) -> LockFile:
    """Return the lock beside an inventory; an empty one where there is none.

    Raises:
        ConfigError: it is not valid.
        LocalError: nobody knows whether there is one.
    """
    path = _lock_path(inventory)
    with disk.on_disk(path):
        if not disk.is_there(path):
            return LockFile(version=1)
    return yaml_reader.validated(yaml_reader.read(path), LockFile)


def keep_lock(preparing: Preparing) -> None:
    """Write the lock beside the inventory.

    Raises:
        StoreError, LocalError: the old one stays.
    """
    path = _lock_path(preparing.inventory)
    text = preparing.lock.text()
    if not path.exists() or path.read_text() != text:
        write(path, text.encode())
        preparing.voice.line(f"lock written: {path}")


def _lock_path(inventory: Path) -> Path:
    return inventory.with_name(f"{inventory.name.removesuffix('.yaml')}.lock.json")
