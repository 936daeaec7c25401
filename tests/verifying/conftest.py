"""Sweeps of recorded logs that the tests of this folder change, each in a copy of its own."""

from pathlib import Path

import pytest

from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from tests.verifying import sweeps


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sweep]:
    """By workload, a sweep with its reports; nobody changes these."""
    folder = tmp_path_factory.mktemp("sweeps")
    return {
        name: sweeps.collected(Store(folder / name), recorded())
        for name, recorded in sweeps.ALL.items()
    }


@pytest.fixture
def pytorch(untouched: dict[str, Sweep], tmp_path: Path) -> Sweep:
    """A copy of seed 003's sweep: 25 trials, of which the last one's log was cut."""
    return sweeps.copied(untouched["pytorch"], tmp_path)
