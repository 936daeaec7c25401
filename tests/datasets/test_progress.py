"""How far a preparation is, and how that is told."""

import pytest

from orchestrator.datasets import (
    progress,
)
from orchestrator.datasets.progress import DataProgress

# Progress.


def test_the_last_whole_line_of_progress_counts() -> None:
    """A line that was cut says nothing yet."""
    text = "dlperf progress 1 1001 1300\nnoise\ndlperf progress 2 1001 2600\ndlperf progress 3 10"
    assert progress.last(text) == DataProgress(2, 1001, 2600)
    assert progress.last("noise") is None


def test_a_problem_has_a_code_and_words() -> None:
    """The first one named counts."""
    text = "dlperf problem DISK-FULL no space\ndlperf problem BUSY other\n"
    assert progress.problem(text) == ("DISK-FULL", "no space")
    assert progress.problem("problem x") is None


def test_the_time_left_is_told_once_it_can_be() -> None:
    """At the pace so far; nobody knows at the beginning, nor without a total."""
    first = DataProgress(100, 1001, 0)
    assert progress.left_s(first, first, 60) is None
    assert progress.left_s(first, DataProgress(200, 1001, 0), 50) == pytest.approx(400.5)
    assert progress.left_s(DataProgress(0, 0, 0), DataProgress(5, 0, 5), 50) is None


def test_many_nodes_are_told_in_one_line() -> None:
    """The one that is least far, the pace of all."""
    by_node = {"vs001": DataProgress(37, 1001, 5), "vs002": DataProgress(30, 1001, 5)}
    assert progress.summary(by_node, 1204.4, "12:03") == (
        "vs[001-002]: 30 of 1001 done (vs002 is least far), 1204 files/s, about 12:03 left"
    )
    assert progress.summary({"vs001": DataProgress(3, 0, 3)}, 0.0, "") == "vs001: 3 done, 0 files/s"
    assert progress.summary({}, 0.0, "") == "beginning"
