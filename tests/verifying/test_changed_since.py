"""Evidence that changed after the run is named; reports written since are believed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.state import contents
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep
from tests.verifying import sweeps
from tests.verifying.forging import edit

Change = Callable[[Path], None]


def without_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def without_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


def with_another_line(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def garbled(path: Path) -> None:
    path.write_bytes(b"{")


def another_throughput(path: Path) -> None:
    edit(path, lambda it: it.update(throughput=1.0))


GANG, ONE = "2n8g-r50_b256_amp_2", "1n8g-r50_b256_amp_2"


@pytest.mark.parametrize(
    ("trial", "name", "change"),
    [
        (GANG, "logs/2n8g/r50_b256_amp_2.log", with_another_line),
        (GANG, "logs/2n8g/r50_b256_amp_2.log", without_end),
        (GANG, "r0.log", without_last_line),
        (GANG, "r1.log", with_another_line),
        (GANG, "r1.log", Path.unlink),
        (GANG, "attempt.json", Path.unlink),
        (ONE, "logs/1n8g/r50_b256_amp_2.log", without_last_line),
        (ONE, "logs/1n8g/r50_b256_amp_2.log", without_end),
        (ONE, "logs/1n8g/r50_b256_amp_2.log", Path.unlink),
        (ONE, "logs/1n8g/r50_b256_amp_2.json", garbled),
        (ONE, "logs/1n8g/r50_b256_amp_2.json", another_throughput),
        (ONE, "logs/1n8g/r50_b256_amp_2.json", Path.unlink),
    ],
)
def test_reports_that_leave_a_changed_trial_out_are_believed(
    pytorch: Sweep, trial: str, name: str, change: Change
) -> None:
    """Its numbers differ from nothing: ``collect`` does not count it, and ``verify`` neither."""
    path = pytorch.folder / (name if "/" in name else f"attempts/{trial}/a1/{name}")
    check(pytorch, path, change)


@pytest.mark.parametrize("change", [without_last_line, without_end, Path.unlink])
@pytest.mark.parametrize("name", ["r0.state", "r0.gpus"])
def test_reports_without_a_changed_state_are_believed(
    untouched: dict[str, Sweep], tmp_path: Path, name: str, change: Change
) -> None:
    """The trial counts, but neither joules nor marks are taken from what was changed."""
    sweep = sweeps.copied(untouched["marked"], tmp_path)
    check(sweep, sweep.attempt_folder("1n1g-r50_b256_amp_2", 1) / name, change)


def check(sweep: Sweep, path: Path, change: Change) -> None:
    change(path)
    report_files.reports(sweep.folder, measured(sweep), "en")
    contents.keep_sums(sweep)
    found = {difference.file for difference in check_sweep(sweep).differences}
    assert path.relative_to(sweep.folder).as_posix() in found
    assert all(file.startswith(("logs/", "attempts/")) for file in found), found
