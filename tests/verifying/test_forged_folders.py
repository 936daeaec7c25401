"""What lies in a sweep's folder as a whole: files that came or went, and a folder made up."""

import pytest

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.state import contents
from orchestrator.state.sweep import Sweep
from orchestrator.verifying.check import verified
from tests.verifying.forging import ONE, both_logs, reseal


def test_a_file_that_came_or_went_is_found(pytorch: Sweep) -> None:
    """A log more or less than there were when the reports were written."""
    (pytorch.folder / "logs/1n8g/r50_b256_amp_9.log").write_text("new\n")
    (pytorch.attempt_folder("1n8g-r50_b256_amp_1", 1) / "r0.gpus").write_text("new\n")
    (pytorch.attempt_folder("1n8g-r50_b256_amp_2", 1) / "r0.log").unlink()
    found = {difference.file: difference for difference in verified(pytorch.folder).differences}
    assert found["logs/1n8g/r50_b256_amp_9.log"].written == "a file"
    assert found["attempts/1n8g-r50_b256_amp_1/a1/r0.gpus"].written == "a file"
    assert "attempts/1n8g-r50_b256_amp_2/a1/r0.log" in found


@pytest.mark.parametrize("content", ['{"tasks": [{"files": ["key"]}]}', "{", "[]"])
def test_what_a_task_was_given_is_in_no_list(pytorch: Sweep, content: str) -> None:
    """Keys; where ``attempt.json`` does not tell which, no file beside the logs is told."""
    folder = pytorch.attempt_folder("1n8g-r50_b256_amp_2", 1)
    (folder / "key").write_text("secret\n")
    (folder / "attempt.json").write_text(content)
    found = {difference.file for difference in verified(pytorch.folder).differences}
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
    assert verified(pytorch.folder).differences == []
