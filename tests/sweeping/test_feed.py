"""The feed of lanes: each trial once, in an order that outcomes decide."""

import threading

from orchestrator.console import Voice
from orchestrator.model.plan import Trial
from orchestrator.sweeping.loop import Feed, run_lanes
from tests.measuring.test_settling import built, first_case, truth


def test_lanes_run_what_is_needed_and_hear_what_is_not() -> None:
    """Three lanes: nine trials of two cases, the quiet one's last three are dropped once."""
    whole = built(pack="disjoint")
    gives, outcomes = truth(whole), dict[str, float]()
    said: list[tuple[str, int]] = []
    together: list[int] = []
    lock, busy = threading.Lock(), [0]
    feed = Feed(
        whole,
        whole.trials,
        lambda trial: outcomes.get(trial.name),
        lambda: 3,
        lambda line, count: said.append((line, count)),
    )

    def measure(trial: Trial) -> float:
        with lock:
            busy[0] += 1
            together.append(busy[0])
        outcomes[trial.name] = gives[trial.name]
        with lock:
            busy[0] -= 1
        return gives[trial.name]

    run_lanes(feed.next, measure, lanes=3, voice=Voice(as_json=False), ended=feed.end)
    quiet = first_case(whole)
    assert set(outcomes) == {one.name for one in whole.trials} - {one.name for one in quiet[3:]}
    ((line, count),) = said
    assert line.startswith("1n1g-r50_b256_amp: settled after 3 trials")
    assert count == 3
    assert max(together) <= 3


def test_what_waits_for_a_running_trial_is_given_once_that_has_ended() -> None:
    """While a trial that decides runs, no other begins; with its outcome the rest is dropped."""
    whole = built()
    gives, quiet = truth(whole), first_case(whole)
    known = {one.name: gives[one.name] for one in quiet[:2]}
    said: list[int] = []
    feed = Feed(
        whole,
        quiet[2:],
        lambda trial: known.get(trial.name),
        lambda: 1,
        lambda _line, count: said.append(count),
    )
    assert [feed.next(), feed.next()] == [quiet[2], None]
    feed.end(quiet[2], gives[quiet[2].name])
    assert feed.next() is None
    assert said == [3]


def test_what_has_settled_before_is_not_given() -> None:
    """A sweep that goes on: the first trials are valid, and nothing is left."""
    whole = built()
    gives = {one.name: truth(whole)[one.name] for one in first_case(whole)[:3]}
    said: list[int] = []
    feed = Feed(
        whole,
        first_case(whole),
        lambda trial: gives.get(trial.name),
        lambda: 1,
        lambda _line, count: said.append(count),
    )
    assert feed.next() is None
    assert said == [3]
