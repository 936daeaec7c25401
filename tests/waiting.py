"""Waiting for what real processes do in their own time."""

import time
from collections.abc import Callable

import pytest

PATIENCE_S = 180.0  # of what never comes; neighbours may have both processors


def wait_for(truth: Callable[[], object], what: str, limit_s: float = PATIENCE_S) -> None:
    """Wait until something holds, or fail with its name."""
    deadline = time.monotonic() + limit_s
    while not truth():
        if time.monotonic() > deadline:
            pytest.fail(f"after {limit_s:g} s still not: {what}")
        time.sleep(0.01)
