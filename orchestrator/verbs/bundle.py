"""bundle: images and downloads as files, for nodes that no registry and no mirror reaches."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from orchestrator import errors, words
from orchestrator.console import Voice
from orchestrator.disk import on_disk
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.inputs import sites, user_files
from orchestrator.model.bundle import (
    FILE_NAME,
    Bundle,
    BundledDownload,
    BundledImage,
    FileSeen,
)
from orchestrator.model.image import file_name
from orchestrator.model.site import ImageRecord, Site
from orchestrator.provisioning import materials
from orchestrator.state.store import Store, now, write

MIB = 1 << 20


def bundle(store: Store, inventory: str, folder: Path, names: tuple[str, ...], voice: Voice) -> int:
    """Write provisioned images and their downloads into a folder; exit code.

    Raises:
        UnfitError: IMAGE-NOT-PROVISIONED.
        NodeError, ImageError: a node could not give an image; no bundle.json is written.
    """
    cluster, path = user_files.cluster(inventory)
    site = sites.of(store, cluster)
    records = _records(site, names, inventory)
    lock = materials.lock(path)
    kept = Downloads(store.root / "downloads", lambda *_: None)
    with Fleet.of(cluster) as fleet:
        parts = [_image(fleet, record, folder, voice) for record in records]
    voice.rested()
    # A base's archive is not among them: its layers are in the image that was built from it.
    urls = dict.fromkeys(
        url for record in records for url in user_files.image(record.name)[0].parts
    )
    files = [_download(kept, folder, url, lock.downloads.get(url)) for url in urls]
    made = Bundle(version=1, created=now(), images=tuple(parts), downloads=tuple(files))
    write(folder / FILE_NAME, made.text().encode())
    size = sum(seen.size for seen in made.files.values())
    voice.result(
        f"{words.count(len(parts), 'image')} and {words.count(len(files), 'download')},"
        f" {size / MIB:.0f} MiB, in {folder}"
    )
    voice.document({"exit_code": 0, "folder": str(folder), "bundle": made.model_dump(mode="json")})
    return 0


def _records(site: Site | None, names: tuple[str, ...], inventory: str) -> list[ImageRecord]:
    records = site.images if site else {}
    if not records:
        raise errors.UnfitError(
            "no image has been provisioned yet",
            code="IMAGE-NOT-PROVISIONED",
            fix=f"dlperf-orch provision {inventory} --lock",
        )
    missing = [name for name in names if name not in records]
    if missing:
        raise errors.UnfitError(
            f"no image {', '.join(missing)} was prepared; there are {', '.join(records)}",
            code="IMAGE-NOT-PROVISIONED",
            fix=f"dlperf-orch provision {inventory}",
        )
    return [records[name] for name in names or records]


def _image(fleet: Fleet, record: ImageRecord, folder: Path, voice: Voice) -> BundledImage:
    """Save an image from the first node that has this very id under its tag."""
    file = f"images/{record.tag.partition('/')[2].replace(':', '-')}.tar"
    engines = ((engine, engine.find(record.tag)) for engine in fleet.images.values())
    source = next((engine for engine, seen in engines if seen and seen.id == record.id), None)
    if source is None:
        raise errors.ImageError(
            f"no node has {record.tag} of id {record.id[:19]}",
            code="IMAGE-MISSING",
            fix="provision again",
        )
    seen = _written(source.save(record.tag), folder / file, f"save {record.tag}", voice)
    return BundledImage(
        name=record.name,
        tag=record.tag,
        id=record.id,
        base=record.base,
        base_digest=record.base_digest,
        inputs=record.inputs_digest,
        file=file,
        sha256=seen.sha256,
        size=seen.size,
    )


def _download(kept: Downloads, folder: Path, url: str, sha256: str | None) -> BundledDownload:
    if sha256 is None:
        raise errors.ImageError(
            f"no checksum is known for {url}",
            code="DOWNLOAD-UNLOCKED",
            fix="provision --lock first",
        )
    source = kept.fetch(url, sha256) if kept.cached(sha256) is None else kept.cached(sha256)
    # A wheel's name has a +, and a URL writes it as %2B; a bundle's paths have neither.
    file = f"downloads/{sha256[7:23]}-{file_name(url).replace('+', '_')[-100:]}"
    with on_disk(folder / file), open(source or "", "rb") as content:
        pieces = iter(lambda: content.read(MIB), b"")
        seen = _copied(pieces, folder / file)
    return BundledDownload(url=url, sha256=seen.sha256, file=file, size=seen.size)


def _written(pieces: Iterable[bytes], path: Path, title: str, voice: Voice) -> FileSeen:
    def with_progress() -> Iterable[bytes]:
        came = 0
        for piece in pieces:
            came += len(piece)
            voice.working(f"{title}: {came // MIB} MiB")
            yield piece

    with on_disk(path):
        return _copied(with_progress(), path)


def _copied(pieces: Iterable[bytes], path: Path) -> FileSeen:
    """Write a file aside, hash it on the way, and rename it."""
    digest, size = hashlib.sha256(), 0
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = path.with_name(f"{path.name}.new")
    with open(aside, "wb") as file:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    aside.rename(path)
    return FileSeen(f"sha256:{digest.hexdigest()}", size)
