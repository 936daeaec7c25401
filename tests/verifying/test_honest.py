"""verify raises no alarm over sweeps that nobody forged, whatever happened in them."""

from pathlib import Path
from random import Random

import pytest

from orchestrator.report import Language
from orchestrator.state.store import Store
from orchestrator.verbs.verify import check_sweep
from tests.verifying import honest, sweeps

FEW, MANY = range(12), range(12, 412)


def check(folder: Path, seed: int) -> None:
    """Derive a sweep that is drawn by a seed: nothing differs."""
    chance = Random(f"honest {seed}")
    recorded, strict = honest.drawn(chance), chance.random() < 0.2
    language: Language = "zh" if chance.random() < 0.5 else "en"
    sweep = sweeps.collected(Store(folder / str(seed)), recorded, language, strict=strict)
    assert check_sweep(sweep).differences == [], (seed, recorded.workload, recorded.method)


@pytest.mark.parametrize("seed", FEW)
def test_nothing_differs_in_an_honest_sweep(tmp_path: Path, seed: int) -> None:
    """Of damaged logs, retried and interrupted trials, torn observers, in either language."""
    check(tmp_path, seed)


@pytest.mark.cluster
@pytest.mark.long
def test_nothing_differs_in_many_honest_sweeps(tmp_path: Path) -> None:
    """Some minutes, for the combinations that nobody thought of."""
    for seed in MANY:
        check(tmp_path, seed)
