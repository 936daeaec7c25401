"""An image that we define: its base, and what of ours lies in it."""

from dataclasses import dataclass

from pydantic import Field

from orchestrator.model.text import ImageReference, Name, Noun, Words


class Image(Noun):
    """The validated image.yaml."""

    name: Name
    description: Words | None = None
    base: ImageReference
    """What it is built from; the digest belongs to the lock, never to this file."""
    requires: tuple[Words, ...] = ()
    """Python modules that must be importable where the program runs as a plain process."""
    extra: Name | None = None
    """The extra of this package that brings those modules."""
    python: Words = "python"
    """The interpreter, inside the image."""
    code: Words = Field(default="/workspace")
    """Where the program lies, inside the image."""


@dataclass(frozen=True, slots=True)
class Program:
    """Where an image's program lies on every node.

    Args:
        digest: of everything in it, as ``sha256:...``; empty while it is not known.
    """

    code: str
    python: str
    digest: str
