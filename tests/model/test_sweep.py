"""What the events of a sweep say of each trial."""

from orchestrator.model.sweep import Adopted, Ended, Event, Intent, by_trial


def intent(trial: str, attempt: int) -> Intent:
    return Intent(at="", trial=trial, attempt=attempt, port=23332 + attempt, log=f"{trial}.log")


def ended(trial: str, attempt: int, state: str) -> Ended:
    return Ended(at="", trial=trial, attempt=attempt, state=state)


def test_an_attempt_is_open_from_its_intent_to_its_end() -> None:
    """Who watches it meanwhile changes nothing."""
    begun: tuple[Event, ...] = (intent("t", 1), Adopted(at="", trial="t", attempt=1))
    found = by_trial(begun)["t"]
    assert (found.attempts, found.state, found.open) == (1, "planned", (1,))
    last = ended("t", 1, "valid")
    found = by_trial((*begun, last))["t"]
    assert (found.attempts, found.state, found.open, found.closed) == (1, "valid", (), {1: last})


def test_the_spans_of_attempts_are_those_of_their_events() -> None:
    """Open ones have no end yet; an attempt without an intent has no span."""
    first = Intent(at="10:00", trial="t", attempt=1, port=1, log="")
    second = Intent(at="10:02", trial="t", attempt=2, port=1, log="")
    end = Ended(at="10:01", trial="t", attempt=1, state="failed")
    assert by_trial((first, end, second))["t"].spans() == (("10:00", "10:01"), ("10:02", ""))
    assert by_trial((end,))["t"].spans() == ()


def test_a_trial_has_the_state_of_its_last_attempt() -> None:
    """And every attempt that ended before stays known; other trials are their own."""
    lost, valid = ended("t", 1, "infra-lost"), ended("t", 2, "valid")
    found = by_trial((intent("t", 1), lost, intent("u", 1), intent("t", 2), valid))
    assert (found["t"].attempts, found["t"].state) == (2, "valid")
    assert found["t"].closed == {1: lost, 2: valid}
    assert (found["u"].open, found["u"].closed) == ((1,), {})


def test_an_attempt_that_only_its_folder_tells_of_is_open() -> None:
    """Its number is not used again."""
    found = by_trial((intent("t", 1), ended("t", 1, "valid")))["t"]
    found.found[2] = True
    assert (found.attempts, found.open) == (2, (2,))


def test_a_folder_without_a_bound_attempt_only_takes_its_number() -> None:
    """Nothing was started of it."""
    found = by_trial((intent("t", 1), ended("t", 1, "valid")))["t"]
    found.found[2] = False
    assert (found.attempts, found.open) == (2, ())


def test_an_attempt_stays_open_beside_those_after_it() -> None:
    """A node of it was left out when the next ones ran."""
    found = by_trial((intent("t", 1), intent("t", 2), ended("t", 2, "valid")))["t"]
    assert (found.attempts, found.open, found.state) == (2, (1,), "valid")


def test_an_attempt_that_ends_after_later_ones_changes_nothing_of_its_trial() -> None:
    """What the last attempt came to is what counts, whenever an earlier one is closed."""
    events: tuple[Event, ...] = (intent("t", 1), intent("t", 2), ended("t", 2, "valid"))
    found = by_trial((*events, ended("t", 1, "infra-lost")))["t"]
    assert (found.open, found.state) == ((), "valid")
