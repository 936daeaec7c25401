"""A bundle: images and downloads as files in a folder, for nodes that no registry reaches."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.model.image import Digest, FileUrl, ImageName
from orchestrator.model.text import ImageReference, Matching, Noun, Words

FILE_NAME = "bundle.json"
_PART = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
Tag = Annotated[
    str,
    Matching(
        r"dlperf/[a-z0-9]+([._-][a-z0-9]+)*:[0-9a-f]{16}",
        "dlperf/NAME: and 16 hexadecimal digits",
    ),
]
ImageFile = Annotated[str, Matching(rf"images/{_PART}\.tar", "images/NAME.tar")]
DownloadFile = Annotated[str, Matching(rf"downloads/{_PART}", "downloads/NAME")]
Size = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class FileSeen:
    """A file of the bundle's folder as it is: its sha256 and its size in bytes."""

    sha256: str
    size: int


class BundledImage(Noun):
    """A derived image, as `docker save` wrote it."""

    name: ImageName
    tag: Tag
    id: Digest
    """The image's id in the engine that saved it."""
    content: Digest | None = None
    """Digest of its layers and settings, which each node must show after loading; else its id."""
    base: ImageReference
    base_digest: Digest
    inputs: Digest
    """Digest of everything that went in."""
    file: ImageFile
    sha256: Digest
    """Digest of the file."""
    size: Size
    """Size of the file, in bytes."""


class BundledDownload(Noun):
    """A file that an image is built from."""

    url: FileUrl
    sha256: Digest
    file: DownloadFile
    size: Size
    """In bytes."""


class Bundle(Noun):
    """The validated bundle.json."""

    version: Literal[1]
    created: Words
    """Time of creation, in UTC."""
    images: tuple[BundledImage, ...] = ()
    downloads: tuple[BundledDownload, ...] = ()

    @property
    def files(self) -> dict[str, FileSeen]:
        """Return the required checksum and size of each file, by its path in the bundle."""
        images = {image.file: FileSeen(image.sha256, image.size) for image in self.images}
        return images | {part.file: FileSeen(part.sha256, part.size) for part in self.downloads}

    def image(self, tag: str) -> BundledImage | None:
        return next((image for image in self.images if image.tag == tag), None)

    def damages(self, seen: Mapping[str, FileSeen]) -> tuple[str, ...]:
        """Describe each file of the bundle that is missing or differs from its record.

        Args:
            seen: by path in the folder; what is not there is missing.
        """
        found: list[str] = []
        for file, must in self.files.items():
            is_there = seen.get(file)
            if is_there is None:
                found.append(f"{file} is missing")
            elif is_there.size != must.size:
                found.append(f"{file} has {is_there.size} bytes; needed {must.size}")
            elif is_there.sha256 != must.sha256:
                found.append(f"{file} has {is_there.sha256}; needed {must.sha256}")
        return tuple(found)

    def text(self) -> str:
        return json.dumps(self.model_dump(), indent=2) + "\n"
