"""The one exit code of a command where several apply."""

import itertools

import pytest

from orchestrator import errors


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((), 0),
        ((0, 0), 0),
        ((0, 3), 3),
        ((3, 5), 5),
        ((5, 4), 4),
        ((4, 6), 6),
        ((6, 7), 7),
        ((4, 7), 7),
        ((130, 4), 130),
        ((143, 7), 7),
    ],
)
def test_what_may_still_run_counts_most(codes: tuple[int, ...], code: int) -> None:
    """7 before 6, 4, 5 and 3, in whatever order they came; stopped before all but 7."""
    for order in itertools.permutations(codes):
        assert errors.joined(order) == code


def test_every_error_of_ours_has_a_place_in_the_order() -> None:
    """No exit code is unknown to the function that joins them."""
    kinds: list[type[errors.DlperfError]] = [errors.DlperfError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert {kind.exit_code for kind in kinds} <= set(errors.PRECEDENCE)
    assert {errors.Interrupted(number).exit_code for number in (1, 2, 15)} <= {130, 143}


def test_the_gravest_error_is_the_one_that_is_raised() -> None:
    """The first of those with the exit code that counts."""
    silent = errors.NodeUnreachable("silent", code="SSH-LOST")
    left = errors.LeftoverError("left", code="LEFTOVER")
    other = errors.LeftoverError("also left", code="LEFTOVER")
    assert errors.gravest((silent, left, other)) is left


def test_a_cause_in_foreign_words_ends_with_one_full_stop() -> None:
    """Whether they end with one or not; what was cut stays cut."""
    told = [str(errors.LocalError(cause, code="X")) for cause in ("it is so.", "it is so", "it...")]
    assert told == ["ERROR X: it is so.", "ERROR X: it is so.", "ERROR X: it..."]
