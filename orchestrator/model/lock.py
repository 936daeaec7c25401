"""The lock file: digests of images and downloads, as `provision --lock` found them."""

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from orchestrator.model.image import Digest, FileUrl
from orchestrator.model.text import ImageReference, Noun


def file_name(inventory: str) -> str:
    """The name of the lock that lies beside an inventory of that file name."""
    return f"{inventory.removesuffix('.yaml')}.lock.json"


class LockFile(Noun):
    """The validated lock file; its JSON is also YAML, and read as strictly."""

    version: Literal[1]
    images: dict[ImageReference, Digest] = Field(default_factory=dict)
    """By base reference: the digest that its registry gave."""
    downloads: dict[FileUrl, Digest] = Field(default_factory=dict)
    """By URL: the sha256 of the bytes that came from there."""

    def extended(self, images: Mapping[str, str], downloads: Mapping[str, str]) -> "LockFile":
        """The lock with these digests too; what it held for the same names is replaced.

        Raises:
            ValidationError: something of it is no reference, no URL or no digest.
        """
        return LockFile(
            version=self.version,
            images={**self.images, **images},
            downloads={**self.downloads, **downloads},
        )

    def text(self) -> str:
        """The lock as its file holds it: sorted, so that a change shows as what it is."""
        return json.dumps(self.model_dump(), indent=2, sort_keys=True) + "\n"


EMPTY = LockFile(version=1)
