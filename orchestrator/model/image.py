"""An image that we define: its base, and what of ours lies in it."""

from dataclasses import dataclass

from orchestrator.model.text import ImageReference, Module, Name, NodePath, Noun, ProgramName, Words


class Image(Noun):
    """The validated image.yaml."""

    name: Name
    description: Words | None = None
    base: ImageReference
    """What it is built from; the digest belongs to the lock, never to this file."""
    requires: tuple[Module, ...] = ()
    """Python modules that must be importable where the program runs as a plain process."""
    extra: Name | None = None
    """The extra of this package that brings those modules."""
    python: ProgramName = "python"
    """The interpreter, inside the image."""
    code: NodePath = "/workspace"
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
