"""Files that the kernel has of every process."""

from collections.abc import Iterator
from pathlib import Path


def files(name: str) -> Iterator[Path]:
    """That file of all processes; one that ends meanwhile has none.

    A glob of ``*/NAME`` looks at the file itself, and fails where a process ends under its eyes.
    """
    return (process / name for process in Path("/proc").glob("[0-9]*"))


def carrying(*marks: bytes) -> list[int]:
    """Processes of this machine whose environment has one of the marks."""
    found = []
    for path in files("environ"):
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if any(mark in content for mark in marks):
            found.append(int(path.parent.name))
    return found
