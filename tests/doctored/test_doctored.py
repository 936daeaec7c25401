"""No doctored log gives a wrong number without a word, and no honest one is accused."""

import pytest

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
