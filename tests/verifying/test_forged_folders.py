"""What lies in a sweep's folder as a whole: files that came or went, and a folder made up."""

from pathlib import Path

import pytest

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.state import contents
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep
from tests.verifying.forging import ONE, both_logs, edit, reseal


def test_a_file_that_came_or_went_is_found(pytorch: Sweep) -> None:
    """A log more or less than there were when the reports were written."""
    (pytorch.folder / "logs/1n8g/r50_b256_amp_9.log").write_text("new\n")
    (pytorch.attempt_folder("1n8g-r50_b256_amp_1", 1) / "r0.gpus").write_text("new\n")
    (pytorch.attempt_folder("1n8g-r50_b256_amp_2", 1) / "r0.log").unlink()
    found = {difference.file: difference for difference in check_sweep(pytorch).differences}
    assert found["logs/1n8g/r50_b256_amp_9.log"].written == "a file"
    assert found["attempts/1n8g-r50_b256_amp_1/a1/r0.gpus"].written == "a file"
    assert "attempts/1n8g-r50_b256_amp_2/a1/r0.log" in found


@pytest.mark.parametrize("content", ['{"tasks": [{"files": ["key"]}]}', "{", "[]"])
def test_what_a_task_was_given_is_in_no_list(pytorch: Sweep, content: str) -> None:
    """Keys; where ``attempt.json`` does not tell which, no file beside the logs is told."""
    folder = pytorch.attempt_folder("1n8g-r50_b256_amp_2", 1)
    (folder / "key").write_text("secret\n")
    (folder / "attempt.json").write_text(content)
    found = {difference.file for difference in check_sweep(pytorch).differences}
    assert "attempts/1n8g-r50_b256_amp_2/a1/attempt.json" in found
    assert "attempts/1n8g-r50_b256_amp_2/a1/key" not in found


def test_a_folder_forged_throughout_agrees_with_itself(pytorch: Sweep) -> None:
    """Who writes logs, records and reports anew is found by nobody who has nothing else."""
    for path in both_logs(pytorch, ONE):
        text = path.read_text()
        path.write_text(text.replace("train.loss : 6.9", "train.loss : 5.9"))
    reseal(pytorch, ONE)
    report_files.reports(pytorch.folder, measured(pytorch), "en")
    contents.keep_sums(pytorch)
    assert check_sweep(pytorch).differences == []


def test_a_renamed_folder_is_the_same_sweep(pytorch: Sweep, tmp_path: Path) -> None:
    """Its name is no evidence: verify and collect go by the id in its record."""
    pytorch.folder.rename(tmp_path / "published")
    renamed = Store(tmp_path).sweep(str(tmp_path / "published"))
    assert renamed.id == pytorch.id
    assert check_sweep(renamed).differences == []


def test_another_version_is_named(pytorch: Sweep) -> None:
    """Reports that other code wrote agree; which code it was is told."""
    edit(pytorch.folder / "results.json", lambda it: it["written"].update(code="0" * 64))
    contents.keep_sums(pytorch)
    findings = check_sweep(pytorch)
    assert findings.differences == []
    assert "one version" in findings.not_derived


def test_a_workload_that_is_not_installed_is_no_difference(pytorch: Sweep) -> None:
    """Checksums and numbers are checked; reports are not made again."""
    edit(pytorch.folder / "sweep.json", lambda it: it["plan"].update(workload="gone"))
    contents.keep_sums(pytorch)
    findings = check_sweep(pytorch)
    assert findings.differences == []
    assert findings.not_derived["reports"]
