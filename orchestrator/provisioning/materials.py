"""Materials of images: the lock beside an inventory, bundles, downloads, the registry's secret."""

import getpass
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator import disk, errors
from orchestrator.console import Voice
from orchestrator.files import downloads, yaml_reader
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.model.image import (
    BUNDLE_FILE,
    OWNER_LABEL,
    STATE_LABEL,
    Bundle,
    BundledDownload,
    BundledImage,
    Credentials,
    HeldImage,
    LockFile,
    file_name,
)
from orchestrator.model.node import Registry
from orchestrator.model.site import ImageRecord
from orchestrator.state import lock as lock_files
from orchestrator.state.files import write
from orchestrator.state.store import Store

SECRET_VARIABLE = "DLPERF_REGISTRY_SECRET"
MIB = 1 << 20


@dataclass(slots=True)
class Preparing:
    """Nodes, options and materials of one image preparation; ``lock`` grows with ``relock``.

    Args:
        inventory: its file, beside which the lock lies.
        relock: resolve base tags and hash downloads anew, instead of using the lock.
        downloads: their folder also has files in transit; nodes that share files see it.
        labels: of images built here: the identity of the state folder, and its user.
        bundled: the images of the bundle in use, by tag.
        files: their files, by tag.
    """

    fleet: Fleet
    inventory: Path
    relock: bool
    lock: LockFile
    downloads: Downloads
    voice: Voice
    labels: Mapping[str, str] = field(default_factory=dict)
    bundled: dict[str, HeldImage] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    credentials: Credentials | None = None

    @property
    def mirror(self) -> str | None:
        """Return the registry host to pull bases from, where it is not the one in their names."""
        registry = self.fleet.cluster.registry
        return registry.mirror if registry else None

    def show(self, title: str) -> Callable[[str], None]:
        """Return a function that shows the progress of a step in words."""
        return lambda text: self.voice.working(f"{title}: {text}")


def begin(
    store: Store,
    fleet: Fleet,
    voice: Voice,
    inventory: Path,
    relock: bool,
    folder: Path | None,
) -> Preparing:
    """Read the lock and the bundle, whose digests are added to the lock in memory."""
    kept = Downloads(store.root.resolve() / "downloads", voice.working)
    me = lock_files.own(store.root)
    owner = f"{me.user} on {me.process.host}, {me.folder}"
    labels = {STATE_LABEL: store.identity(), OWNER_LABEL: owner}
    preparing = Preparing(fleet, inventory, relock, lock(inventory), kept, voice, labels)
    if folder is not None:
        bundle = yaml_reader.validated(yaml_reader.read(folder / BUNDLE_FILE), Bundle)
        files = bundle.files.items()
        if damaged := [name for name, sha in files if not downloads.is_whole(folder / name, sha)]:
            raise errors.ImageError(
                f"the bundle in {folder} is damaged: missing or changed are {', '.join(damaged)}",
                code="BUNDLE-DAMAGED",
                fix="copy it again, or make it again",
            )
        parts = {part.url: part.sha256 for part in bundle.downloads}
        bases = {image.base: image.base_digest for image in bundle.images}
        known = preparing.lock
        preparing.lock = known.extend({**bases, **known.images}, {**parts, **known.downloads})
        for part in bundle.downloads:
            kept.fetch(folder / part.file, part.sha256)
        for image in bundle.images:
            preparing.bundled[image.tag] = HeldImage(image.id, image.inputs, image.content)
            preparing.files[image.tag] = folder / image.file
    return preparing


def lock(inventory: Path) -> LockFile:
    """Return the lock beside an inventory; an empty one where there is none."""
    path = _lock_path(inventory)
    with disk.on_disk(path):
        if not disk.is_there(path):
            return LockFile(version=1)
    return yaml_reader.validated(yaml_reader.read(path), LockFile)


def keep_lock(preparing: Preparing) -> None:
    """Write the lock beside the inventory; after an error the old one is still there."""
    path = _lock_path(preparing.inventory)
    text = preparing.lock.text()
    if not path.exists() or path.read_text() != text:
        write(path, text.encode())
        preparing.voice.line(f"lock written: {path}")


def _lock_path(inventory: Path) -> Path:
    return inventory.with_name(f"{inventory.name.removesuffix('.yaml')}.lock.json")


def unlocked(url: str) -> errors.ImageError:
    return errors.ImageError(
        f"no checksum is known for {url}",
        code="DOWNLOAD-UNLOCKED",
        fix="provision --lock accepts it once and records its sha256",
    )


def bundle_image(fleet: Fleet, record: ImageRecord, folder: Path, voice: Voice) -> BundledImage:
    """Save an image from the first node that has this very id under its tag."""
    file = f"images/{record.tag.partition('/')[2].replace(':', '-')}.tar"
    for node, source in fleet.images.items():
        held = source.find(record.tag)
        if held is not None and held.id == record.on(node):
            break
    else:
        raise errors.ImageError(
            f"no node has {record.tag} of id {record.id[:19]}",
            code="IMAGE-MISSING",
            fix="provision again",
        )

    voice.line(f"{node}: save {record.tag}")
    sha256, size = _write(source.save(record.tag), folder / file)
    return BundledImage(
        name=record.name,
        tag=record.tag,
        id=held.id,
        content=held.content,
        base=record.base,
        base_digest=record.base_digest,
        inputs=record.inputs_digest,
        file=file,
        sha256=sha256,
        size=size,
    )


def bundle_download(kept: Downloads, folder: Path, url: str, sha256: str | None) -> BundledDownload:
    """Copy a file of that sha256, downloaded unless it is kept here."""
    if sha256 is None:
        raise unlocked(url)
    # A wheel's name has a +, and a URL writes it as %2B; a bundle's paths have neither.
    file = f"downloads/{sha256[7:23]}-{file_name(url).replace('+', '_')[-100:]}"
    _, size = _write(read_pieces(kept.fetch(url, sha256)), folder / file)
    return BundledDownload(url=url, sha256=sha256, file=file, size=size)


def read_pieces(path: Path) -> Iterator[bytes]:
    with disk.on_disk(path), open(path, "rb") as file:
        while piece := file.read(MIB):
            yield piece


def _write(pieces: Iterable[bytes], path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    disk.remove_unfinished(path.parent.glob(f"{path.name}.*.new"))
    with disk.replacing(path) as file:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    return f"sha256:{digest.hexdigest()}", size


def credentials(registry: Registry | None) -> Credentials | None:
    """Return user and secret for the registry; None where the inventory names no user."""
    if registry is None or registry.user is None:
        return None
    secret = os.environ.get(SECRET_VARIABLE, "")
    if not secret and registry.secret_file is not None:
        path = Path(registry.secret_file).expanduser()
        with disk.on_disk(path, code="REG-SECRET"):
            mode = path.stat().st_mode
            secret = path.read_text().partition("\n")[0].strip()
        if mode & 0o077:
            raise errors.LocalError(
                f"others may read the secret in {path} (mode {stat.S_IMODE(mode):04o})",
                code="REG-SECRET",
                fix=f"chmod 600 {path}",
            )
    if not secret and sys.stdin.isatty():
        secret = getpass.getpass(f"Secret of {registry.user} at the registry: ")
    if not secret:
        raise errors.UsageError(
            f"the registry wants a secret for user {registry.user} and none is given",
            code="REG-SECRET",
            fix=f"set {SECRET_VARIABLE}, or name registry.secret_file (mode 0600) in the inventory",
        )
    return Credentials(registry.user, secret)
