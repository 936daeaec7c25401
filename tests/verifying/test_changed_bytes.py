"""Any byte that changes in any file of a sweep is found."""

from pathlib import Path
from random import Random

import pytest

from orchestrator.errors import DlperfError
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep
from tests.verifying import sweeps


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_byte_is_found(untouched: dict[str, Sweep], tmp_path: Path, seed: int) -> None:
    """Each seed draws five kinds of files, a file of each, a place in it and another byte."""
    chance = Random(f"byte {seed}")
    untouched_folder = untouched["marked"].folder
    kinds: dict[str, list[Path]] = {}
    for path in sorted(untouched_folder.rglob("*")):
        if path.is_file() and path.stat().st_size:
            kinds.setdefault(path.name[-5:], []).append(path.relative_to(untouched_folder))
    sweep = sweeps.copied(untouched["marked"], tmp_path)
    for kind in chance.sample(sorted(kinds), 5):
        path = sweep.folder / chance.choice(kinds[kind])
        content = path.read_bytes()
        place = chance.randrange(len(content))
        byte = bytes([chance.choice([it for it in range(256) if it != content[place]])])
        path.write_bytes(content[:place] + byte + content[place + 1 :])
        try:
            found = [difference.file for difference in check_sweep(sweep).differences]
        except DlperfError as error:
            found = [name for name in (path.name,) if name in str(error)]
        assert found, (path, place, byte)
        path.write_bytes(content)
