"""Progress of preparations is parsed from logs and described by the node that is least far."""

from orchestrator.preparing_data.prepare import describe, find_problem, find_progress


def test_the_last_whole_line_of_progress_counts() -> None:
    """A line that was cut says nothing yet."""
    text = "dlperf progress 1 1001 1300\nnoise\ndlperf progress 2 1001 2600\ndlperf progress 3 10"
    assert find_progress(text) == (2, 1001)
    assert find_progress("noise") is None


def test_a_problem_has_a_code_and_words() -> None:
    """The first one named counts."""
    text = "dlperf problem DISK-FULL no space\ndlperf problem BUSY other\n"
    assert find_problem(text) == ("DISK-FULL", "no space")
    assert find_problem("problem x") is None


def test_many_nodes_are_told_in_one_line() -> None:
    """The one that is least far."""
    now = {"vs001": (37, 1001), "vs002": (30, 1001)}
    assert describe(now) == "vs[001-002]: 30 of 1001 done (vs002 is least far)"
    assert describe({"vs001": (3, 9)}) == "vs001: 3 of 9 done"
    assert describe({}) == "beginning"
