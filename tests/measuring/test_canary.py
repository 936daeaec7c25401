"""The canary's verdict: whether the machines drifted while a sweep ran."""

import pytest

from orchestrator.measuring import medians
from orchestrator.model.result import Measurement, Result, Watched
from tests.measuring.trials import case, trial

PLACES = ("start", "middle", "end")


def own(*values: float) -> Result:
    """The case's own result over these throughputs."""
    return medians.result(case("1x1"), [trial(str(n), value) for n, value in enumerate(values)])


def watched(*trials: Measurement, result: Result | None = None) -> Watched:
    """The verdict over what was measured at the start, in the middle and at the end."""
    return medians.judge_canary(case("1x1"), PLACES[: len(trials)], trials, result)


def values(*throughputs: float) -> list[Measurement]:
    """Valid trials of these throughputs."""
    return [trial(place, value) for place, value in zip(PLACES, throughputs, strict=False)]


def test_a_difference_beyond_two_percent_is_a_drift() -> None:
    """The mark says what was measured when; the numbers stay."""
    found = watched(*values(802.9, 790.0, 780.0))
    assert found.drift == pytest.approx(22.9 / 790)
    (mark,) = found.marks
    assert (mark.code, mark.message) == (
        "DRIFT",
        "2.9% between 802.90 at the start, 790.00 at the middle, 780.00 at the end;"
        " expected at most 2.0%: the machines changed",
    )
    assert watched(*values(802.9, 790.0, 788.0)).marks == ()


def test_a_case_that_scatters_more_has_a_wider_bound() -> None:
    """Its own trials differ by 5 %; of two trials nothing is learnt, and 2 % is the least."""
    drifted = values(802.9, 790.0, 780.0)
    scattered = watched(*drifted, result=own(800.0, 780.0, 820.0))
    assert (scattered.bound, scattered.marks) == (0.05, ())
    assert watched(*drifted, result=own(780.0, 820.0)).bound == 0.02
    assert watched(*drifted, result=own(800.0, 800.1, 800.2)).bound == 0.02
    assert watched(*drifted, result=medians.result(case("1x1"), [])).bound == 0.02


def test_what_is_not_valid_says_nothing() -> None:
    """A canary that failed or was not run yet is shown, and is no drift."""
    failed, planned = trial("middle", None, "failed"), trial("end", None, "planned")
    found = watched(trial("start", 802.9), failed, planned)
    assert (found.drift, found.marks, len(found.trials)) == (None, (), 3)
    assert watched(planned).drift is None
