"""No doctored log gives a wrong number without a word, and no honest one is accused."""

import pytest

from tests.doctored.honest import BASES, truth
from tests.doctored.judge import cases, judge

FEW = 131
"""Every so many logs take some seconds."""


def _wrong(every: int) -> list[str]:
    found = (judge(*case) for case in cases(every))
    return [str(it) for it in found if it.verdict in ("SILENT", "ACCUSED")]


def test_of_a_few_doctored_logs_none_is_believed_and_no_honest_one_accused() -> None:
    assert _wrong(FEW) == []


@pytest.mark.cluster
@pytest.mark.long
def test_of_all_doctored_logs_none_is_believed_and_no_honest_one_accused() -> None:
    assert _wrong(1) == []


@pytest.mark.parametrize(("row", "published"), [(0, 367.9), (1, 6098.37), (2, 21584.76)])
def test_the_second_reader_gives_what_was_reckoned_by_hand(row: int, published: float) -> None:
    """The values are those of expected.csv beside the recorded logs."""
    assert truth(BASES[row], BASES[row].bytes()) == pytest.approx((published,), abs=0.005)
