"""A place whose nodes are given by the tiny scheduler."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import TESTS
from tests.conftest import Place

BEGIN = "import tiny_scheduler as t; t.install(); from orchestrator.__main__ import main; main()"


@pytest.fixture
def place(machine: None, tmp_path: Path) -> Iterator[Place]:  # noqa: ARG001 - beside other tests
    """As that of all other tests; only the scheduler is another."""
    shared = tmp_path / "shared"
    shared.mkdir()
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"TINY_SEED={seed}")  # noqa: T201 - shown by pytest when the test fails
    here = Place.made(tmp_path / "place")
    here.program, here.files = (sys.executable, "-c", BEGIN), shared / "files"
    here.more_env = {
        "PYTHONPATH": f"{TESTS.parent}:{TESTS / 'toy'}:{TESTS / 'tiny'}",
        "TINY_SHARED": str(shared),
        "TINY_SEED": str(seed),
    }
    yield here
    here.end()
