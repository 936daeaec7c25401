"""Processes of this machine, and waiting for what they do in their own time."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE_S = 180.0  # of what never comes; neighbours may have both processors


def wait_for(truth: Callable[[], object], what: str, limit_s: float = PATIENCE_S) -> None:
    """Wait until something holds, or fail with its name."""
    deadline = time.monotonic() + limit_s
    while not truth():
        if time.monotonic() > deadline:
            pytest.fail(f"after {limit_s:g} s still not: {what}")
        time.sleep(0.01)


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
