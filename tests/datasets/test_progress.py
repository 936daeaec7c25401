"""How far a preparation is, and how that is told."""

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


def test_many_nodes_are_told_in_one_line() -> None:
    """The one that is least far, the pace of all, and the longest time left."""
    first = {"vs001": (DataProgress(10, 1001, 50), 7.0), "vs002": (DataProgress(20, 1001, 5), 8.0)}
    now = {"vs001": DataProgress(37, 1001, 950), "vs002": DataProgress(30, 1001, 605)}
    assert progress.summary(first, now, 10.0) == (
        "vs[001-002]: 30 of 1001 done (vs002 is least far), 600 files/s, about 3:14 left"
    )
    assert progress.summary(first, {}, 10.0) == "beginning"


def test_the_time_left_is_told_once_it_can_be() -> None:
    """Nobody knows it at the beginning, nor without a total."""
    begun = {"vs001": (DataProgress(3, 0, 3), 1.0)}
    assert progress.summary(begun, {"vs001": DataProgress(3, 0, 3)}, 1.0) == (
        "vs001: 3 done, 0 files/s"
    )
    begun = {"vs001": (DataProgress(3, 9, 3), 1.0)}
    assert progress.summary(begun, {"vs001": DataProgress(3, 9, 3)}, 61.0) == (
        "vs001: 3 of 9 done, 0 files/s"
    )
