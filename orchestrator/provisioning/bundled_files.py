"""Images and downloads, written as files of a bundle."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator import disk, errors
from orchestrator.console import Voice
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.model.bundle import BundledDownload, BundledImage
from orchestrator.model.image import file_name
from orchestrator.model.site import ImageRecord

MIB = 1 << 20


def image(fleet: Fleet, record: ImageRecord, folder: Path, voice: Voice) -> BundledImage:
    """Save an image from the first node that has this very id under its tag.

    Raises:
        ImageError: IMAGE-MISSING; no node has it.
        NodeError: its engine broke off; nothing of the image is left in the folder.
    """
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

    def show(pieces: Iterable[bytes]) -> Iterator[bytes]:
        came = 0
        for piece in pieces:
            came += len(piece)
            voice.working(f"save {record.tag}: {came // MIB} MiB")
            yield piece

    sha256, size = _write(show(source.save(record.tag)), folder / file)
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


def download(kept: Downloads, folder: Path, url: str, sha256: str | None) -> BundledDownload:
    """Copy a file of that sha256, downloaded unless it is kept here.

    Raises:
        ImageError: DOWNLOAD-UNLOCKED without a sha256; as of ``Downloads.fetch``.
    """
    if sha256 is None:
        raise errors.ImageError(
            f"no checksum is known for {url}",
            code="DOWNLOAD-UNLOCKED",
            fix="provision --lock first",
        )
    # A wheel's name has a +, and a URL writes it as %2B; a bundle's paths have neither.
    file = f"downloads/{sha256[7:23]}-{file_name(url).replace('+', '_')[-100:]}"
    source = kept.fetch(url, sha256)
    with disk.on_disk(source), open(source, "rb") as content:
        _, size = _write(iter(lambda: content.read(MIB), b""), folder / file)
    return BundledDownload(url=url, sha256=sha256, file=file, size=size)


def _write(pieces: Iterable[bytes], path: Path) -> tuple[str, int]:
    """Write a file and return its digest and its size in bytes."""
    digest, size = hashlib.sha256(), 0
    disk.remove_unfinished(path.parent.glob(f"{path.name}.*.new"))
    with disk.replacing(path) as file:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    return f"sha256:{digest.hexdigest()}", size
