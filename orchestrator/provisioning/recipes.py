"""Recipes of images: from image.yaml, lock, bundle and the last provisioning.

With ``--lock`` the digest of a base comes from the registry or the archive. Else it comes from the
lock beside the inventory, to which a bundle adds, from the last provisioning, or the registry.
"""

import hashlib
import io
import json
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.disk import on_disk
from orchestrator.files import shipped, yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.image import Image, content_digest
from orchestrator.model.site import Site
from orchestrator.planning import images
from orchestrator.planning.images import ImageRecipe
from orchestrator.provisioning import materials
from orchestrator.provisioning.materials import Preparing

_MOST_OF_CONTEXT = 64 << 20  # bytes
_DOWNLOADS = "downloads"
_MOST_OF_CONFIGURATION = 4 << 20  # bytes; one has a few kilobytes, and layers are far larger
_DAMAGES = (
    *(tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError),
    *(ValueError, TypeError, KeyError),
)


def draft(preparing: Preparing, name: str, before: Site | None) -> tuple[ImageRecipe, Path]:
    """Return an image's recipe as far as it is known without a request, and its folder."""
    image, folder = user_files.image(name)
    user_files.refuse(yaml_reader.read(folder / "image.yaml"), image.unsaid())
    record = before.images.get(name) if before else None
    digest = None
    if not preparing.relock:
        digest = preparing.lock.images.get(image.base)
        if digest is None and record is not None and record.base == image.base:
            digest = record.base_digest
    locked = preparing.lock.downloads
    checksums = {url: locked[url] for url in image.downloads if url in locked}
    cached = frozenset(filter(preparing.downloads.cached, checksums.values()))
    files = {
        name: f"sha256:{hashlib.sha256(content).hexdigest()}"
        for name, content in read_context(folder).items()
    }
    recipe = ImageRecipe(image, digest, files, checksums, cached, preparing.bundled, record)
    return recipe, folder


def resolve(preparing: Preparing, draft: ImageRecipe) -> ImageRecipe:
    """Return the recipe with the digest of its base and the sha256 of every download.

    With ``--lock`` a file is trusted on its first download, and its sha256 is recorded.

    Raises:
        ImageError: a base cannot be resolved; DOWNLOAD-UNLOCKED without ``relock``; ARCHIVE, a
            download is no archive or wheel, or an archive holds another image.
    """
    image, voice = draft.image, preparing.voice
    checksums, cached = dict(draft.downloads), set(draft.cached)
    for url in draft.needed:
        if url not in checksums:
            if not preparing.relock:
                raise materials.unlocked(url)
            voice.line(
                f"{url}: downloaded without a known checksum, since --lock asks for it;"
                " its sha256 is recorded"
            )
            path, checksums[url] = preparing.downloads.store(url, None)
            # A web page may come in the place of an archive.
            if not tarfile.is_tarfile(path) and not zipfile.is_zipfile(path):
                seen = f"{url} gave neither a tar archive nor a wheel"
                raise errors.ImageError(seen, code="ARCHIVE", fix="look at its URL")
            cached.add(checksums[url])
    digest = draft.base_digest
    if digest is None:
        if image.archive is not None:
            path = preparing.downloads.fetch(image.archive, checksums[image.archive])
            (digest, _), host = find_archived(path, image), "its archive"
        else:
            origin = images.reference(image.base)
            host = preparing.mirror or origin.host
            first = next(iter(preparing.fleet.images.values()))
            source = f"{host}/{origin.repository}:{origin.tag}"
            digest = first.digest(source, preparing.credentials)
        voice.line(f"{image.base} is {digest}, says {host}")
    if preparing.relock:
        preparing.lock = preparing.lock.extend({image.base: digest}, checksums)
    return replace(draft, base_digest=digest, downloads=checksums, cached=frozenset(cached))


def fetch(preparing: Preparing, recipe: ImageRecipe, url: str) -> Path:
    """Return the file at ``url`` with the sha256 that is locked, checked before its first use."""
    sha256 = recipe.downloads.get(url)
    if sha256 is None:
        raise materials.unlocked(url)
    return preparing.downloads.fetch(url, sha256)


def find_archived(path: Path, image: Image) -> tuple[str, str]:
    """Return id and content digest of the image's base in a file of `docker save`."""
    held = list_saved(path)
    base = images.reference(image.base)
    matches = {held[name] for name in held if images.reference(name) == base}
    if len(matches) != 1:
        raise errors.ImageError(
            f"{image.archive} holds {', '.join(held) or 'no image with a name'};"
            f" needed {image.base}",
            code="ARCHIVE",
            fix="give its name to base: in image.yaml",
        )
    return matches.pop()


def list_saved(path: Path) -> dict[str, tuple[str, str]]:
    """Return the images in a file of ``docker save``, by name, without a Docker engine.

    Each as the sha256 of its configuration, which is its id, and the digest of its content.
    """
    small: dict[str, bytes] = {}  # by name, what may be the list or a configuration
    found: dict[str, tuple[str, str]] = {}
    try:
        with tarfile.open(path, "r|*") as archive:  # in one pass
            for member in archive:
                if member.isfile() and member.size <= _MOST_OF_CONFIGURATION:
                    file = archive.extractfile(member)
                    if (content := file.read() if file else b"").startswith((b"{", b"[")):
                        small[member.name] = content
        for image in json.loads(small["manifest.json"]):
            configuration = small[image["Config"]]
            said = json.loads(configuration)
            layers, settings = said["rootfs"]["diff_ids"], said.get("config") or {}
            identity = f"sha256:{hashlib.sha256(configuration).hexdigest()}"
            held = identity, content_digest(layers, settings)
            found |= dict.fromkeys(image["RepoTags"] or (), held)
    except _DAMAGES as error:
        raise errors.ImageError(
            f"{path.name} cannot be read: {error!r}; needed what `docker save` writes",
            code="ARCHIVE",
            fix="get it anew",
        ) from error
    return found


def read_context(folder: Path) -> dict[str, bytes]:
    """Return the files of an image's folder that go into its build, by path in the folder.

    image.yaml is left out, since its values go in by themselves; so are pages, caches and hidden
    files, so that an edited comment builds nothing anew. A shared script that the Dockerfile copies
    goes in, unless the image's folder has a script of that name.
    """
    contents: dict[str, bytes] = {}
    room = _MOST_OF_CONTEXT
    for path in _paths(folder):
        with on_disk(path):
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > room:
                raise _unfit(f"{path} is no plain file, or too large; needed at most 64 MiB in all")
            content = path.read_bytes()
        room -= len(content)
        contents[path.relative_to(folder).as_posix()] = content
    if "Dockerfile" not in contents:
        raise _unfit(f"{folder} has no Dockerfile; needed one to build an image from")
    lines = contents["Dockerfile"].decode(errors="replace").splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()}
    for path in shipped.SCRIPTS.glob("*.sh"):
        if path.name in copied - contents.keys():
            with on_disk(path):
                contents[path.name] = path.read_bytes()
    return contents


def _paths(folder: Path) -> Iterator[Path]:
    """Yield the paths of the context below the folder, sorted, without folders."""
    with on_disk(folder):
        inside = sorted(folder.iterdir())
    for path in inside:
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".md":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _paths(path)
        elif path.name != "image.yaml":
            yield path


def _unfit(cause: str) -> errors.ImageError:
    return errors.ImageError(cause, code="IMAGE-FOLDER", fix="compare it with a shipped folder")


def write_context(contents: Mapping[str, bytes], downloads: Mapping[str, Path], to: Path) -> None:
    """Write the context as a tar with the same bytes for the same files, one file at a time.

    Args:
        downloads: by name below ``downloads/``, which is made even if it is empty, so that a
            Dockerfile can copy it.
    """
    placed = {f"{_DOWNLOADS}/{name}": path for name, path in sorted(downloads.items())}
    parents = (str(folder) for name in (*contents, *placed) for folder in Path(name).parents)
    with on_disk(to), tarfile.open(to, "w", format=tarfile.GNU_FORMAT) as archive:
        for folder in sorted({_DOWNLOADS, *parents} - {"."}):
            archive.addfile(_entry(folder, 0, tarfile.DIRTYPE, 0o755))
        for name, content in sorted(contents.items()):
            archive.addfile(_entry(name, len(content)), io.BytesIO(content))
        for name, path in placed.items():
            with open(path, "rb") as file:
                archive.addfile(_entry(name, os.fstat(file.fileno()).st_size), file)


def _entry(
    name: str, size: int, kind: bytes = tarfile.REGTYPE, mode: int = 0o644
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)  # owner root, no time: as TarInfo begins
    entry.size, entry.type, entry.mode = size, kind, mode
    return entry
