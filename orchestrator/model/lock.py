"""The lock file: digests of images and downloads, as `provision --lock` found them."""

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from orchestrator.model.image import Digest, FileUrl
from orchestrator.model.text import ImageReference, Noun


def file_name(inventory: str) -> str:
    """Return the name of the lock file beside an inventory of that file name."""
    return f"{inventory.removesuffix('.yaml')}.lock.json"


class LockFile(Noun):
    """The validated lock file; its JSON is also YAML, and read as strictly."""

    version: Literal[1]
    images: dict[ImageReference, Digest] = Field(default_factory=dict)
    """The digest that its registry reported, for each base reference."""
    downloads: dict[FileUrl, Digest] = Field(default_factory=dict)
    """The sha256 of the downloaded bytes, for each URL."""

    def extended(self, images: Mapping[str, str], downloads: Mapping[str, str]) -> "LockFile":
        """Return a copy with these digests, which replace those of the same names.

        Raises:
            ValidationError: something of it is no reference, no URL or no digest.
        """
        return LockFile(
            version=self.version,
            images={**self.images, **images},
            downloads={**self.downloads, **downloads},
        )

    def text(self) -> str:
        """Return the content of the lock file, sorted so that its diffs are small."""
        return json.dumps(self.model_dump(), indent=2, sort_keys=True) + "\n"


EMPTY = LockFile(version=1)
