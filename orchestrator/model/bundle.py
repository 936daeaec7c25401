"""A bundle: images and downloads as files in a folder, for nodes that no registry reaches."""

import json
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


class _BundledFile(Noun):
    file: str
    sha256: Digest
    """Digest of the file."""
    size: Size
    """Size of the file, in bytes."""


class BundledImage(_BundledFile):
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


class BundledDownload(_BundledFile):
    """A file that an image is built from."""

    url: FileUrl
    file: DownloadFile


class Bundle(Noun):
    """The validated bundle.json."""

    version: Literal[1]
    created: Words
    """Time of creation, in UTC."""
    images: tuple[BundledImage, ...] = ()
    downloads: tuple[BundledDownload, ...] = ()

    @property
    def files(self) -> dict[str, str]:
        """Map each file of the bundle, by its path in it, to the sha256 that it must have."""
        return {part.file: part.sha256 for part in (*self.images, *self.downloads)}

    def image(self, tag: str) -> BundledImage | None:
        return next((image for image in self.images if image.tag == tag), None)

    def text(self) -> str:
        return json.dumps(self.model_dump(), indent=2) + "\n"
