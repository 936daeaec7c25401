"""The feed of lanes: each trial once, in an order that outcomes decide."""

import threading
from functools import partial

from orchestrator.model.plan import Trial
from orchestrator.planning.packing import Packing
from orchestrator.sweeping import lanes
from orchestrator.sweeping.loop import Feed
from tests.measuring.test_settling import built, first_case, truth

ALONE = partial(Packing, "none", 1)


def test_lanes_run_what_is_needed_and_hear_what_is_not() -> None:
    """Three lanes: nine trials of two cases, the quiet one's last three are dropped once."""
    whole = built()
    gives, outcomes = truth(whole), dict[str, float]()
    said: list[tuple[str, int]] = []
    together: list[int] = []
    lock, busy = threading.Lock(), [0]
    feed = Feed(
        whole,
        whole.trials,
        lambda trial: outcomes.get(trial.name),
        partial(Packing, "disjoint", 3),
        lambda: True,
        lambda line, count: said.append((line, count)),
    )

    def measure(trial: Trial) -> None:
        with feed.ending(trial):
            with lock:
                busy[0] += 1
                together.append(busy[0])
            outcomes[trial.name] = gives[trial.name]
            with lock:
                busy[0] -= 1

    lanes.run(feed, measure, lanes=3, may_begin=lambda: True, say=print)
    quiet = first_case(whole)
    assert set(outcomes) == {one.name for one in whole.trials} - {one.name for one in quiet[3:]}
    ((line, count),) = said
    assert line.startswith("1n1g-r50_b256_amp: settled after 3 trials")
    assert count == 3
    assert max(together) <= 3


def test_a_lane_that_waits_ends_with_the_sweep() -> None:
    """While another lane runs what decides, a signal ends the wait."""
    whole = built()
    going = [True]
    known = {one.name: truth(whole)[one.name] for one in first_case(whole)[:2]}
    trials = first_case(whole)[2:]
    feed = Feed(whole, trials, lambda trial: known.get(trial.name), ALONE, lambda: going[0], print)
    assert next(feed) == trials[0]
    waiting = threading.Thread(target=lambda: list(feed))
    waiting.start()
    going[0] = False
    waiting.join(60)
    assert not waiting.is_alive()


def test_what_has_settled_before_is_not_given() -> None:
    """A sweep that goes on: the first trials are valid, and nothing is left."""
    whole = built()
    gives = {one.name: truth(whole)[one.name] for one in first_case(whole)[:3]}
    said: list[int] = []
    feed = Feed(
        whole,
        first_case(whole),
        lambda trial: gives.get(trial.name),
        ALONE,
        lambda: True,
        lambda _line, count: said.append(count),
    )
    assert list(feed) == []
    assert said == [3]
