"""Images, prepared: every node has the same derived image, built once and carried."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import context, downloads, errors, images, load, shipped
from orchestrator.console import Voice
from orchestrator.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.images import Action, Recipe
from orchestrator.model.bundle import FILE_NAME, Bundle
from orchestrator.model.lock import EMPTY, Lock, file_name
from orchestrator.model.site import Site
from orchestrator.store import Store, write
from orchestrator.verbs import _files, _inputs

if TYPE_CHECKING:
    from orchestrator.runtimes.images import Credentials

CHUNK_BYTES = 1 << 20


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


def recipe(preparing: Preparing, name: str, before: Site | None) -> tuple[Recipe, Path]:
    """An image's recipe, as far as lock, bundle and the last provisioning know it; its folder."""
    image, folder = _files.image(name)
    _files.refuse(load.read(folder / "image.yaml"), image.unsaid())
    known = before.images.get(name) if before else None
    digest = preparing.lock.images.get(image.base)
    if digest is None and known is not None and known.base == image.base:
        digest = known.base_digest
    if preparing.wanted.relock:
        digest = None
    checksums = {
        url: preparing.lock.downloads[url]
        for url in image.downloads
        if url in preparing.lock.downloads
    }
    cached = frozenset(each for each in checksums.values() if preparing.downloads.cached(each))
    bundled = {each.tag: each.id for each in preparing.bundle.images} if preparing.bundle else {}
    contents = context.files(folder, shipped.SCRIPTS)
    ignored = images.ignored(image, contents["Dockerfile"].decode(errors="replace"))
    if ignored:
        raise errors.ImageError(
            f"image {name} sets {', '.join(ignored)}, of which its Dockerfile takes no notice",
            code="IMAGE-FOLDER",
            fix="add the ARG to the Dockerfile, or leave the value out of image.yaml",
        )
    files = context.digests(contents)
    known_id = known.id if known else None
    return Recipe(image, digest, files, checksums, cached, bundled, known_id), folder


def resolved(preparing: Preparing, known: Recipe) -> Recipe:
    """The recipe with everything known: bases asked for, downloads learnt where that is allowed.

    Raises:
        ImageError: a base cannot be resolved; or a download's sha256 is not locked.
    """
    checksums, cached = dict(known.downloads), set(known.cached)
    for url in known.wanted:
        if url not in checksums:
            checksums[url] = _inputs.learnt(preparing, known.image, url)
            cached.add(checksums[url])
    digest = known.base_digest
    if digest is None:
        digest = _inputs.base_digest(preparing, known.image, checksums)
    if preparing.wanted.relock:
        preparing.lock = preparing.lock.extended({known.image.base: digest}, checksums)
    return replace(known, base_digest=digest, downloads=checksums, cached=frozenset(cached))


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


def shown(actions: Mapping[str, Sequence[Action]]) -> Iterator[tuple[str, str, str, str, str]]:
    """Rows of a table: image, kind, node, what, reason."""
    for name, each in actions.items():
        for action in each:
            yield name, action.kind, action.node or "this machine", action.what, action.reason


def _lock_path(inventory: Path) -> Path:
    return inventory.with_name(file_name(inventory.name))


def _bundle(folder: Path) -> Bundle:
    document = load.read(folder / FILE_NAME)
    bundle = load.validated(document, Bundle)
    _files.refuse(document, bundle.contradictions())
    damages = bundle.damages(downloads.found(folder, bundle.files))
    if damages:
        raise errors.ImageError(
            f"the bundle in {folder} is damaged: {'; '.join(damages)}",
            code="BUNDLE-DAMAGED",
            fix="copy it again, or make it again",
        )
    return bundle
