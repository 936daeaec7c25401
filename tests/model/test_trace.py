"""Rates over iterations in few points."""

import random
from array import array

from orchestrator.logs import DLLOGGER, reader
from orchestrator.model.log import reduce_rates


def test_rates_of_many_steps_are_shown_in_at_most_120_points() -> None:
    """Of every tenth iteration from 10 to 2500, three at a time; one is left for the last point."""
    points = reduce_rates(10, 10, array("d", range(1, 251)))
    assert len(points) == 84
    assert points[:2] == ((10, 30, 1, 2, 3), (40, 60, 4, 5, 6))
    assert points[-1] == (2500, 2500, 250, 250, 250)


def test_few_rates_are_shown_as_they_are() -> None:
    """Each has a point of its own."""
    assert reduce_rates(1, 2, [8.0, 6.0]) == ((1, 1, 8, 8, 8), (3, 3, 6, 6, 6))


def test_a_long_log_holds_only_what_is_shown_of_it() -> None:
    """Its 5,000 rates are 120 points of 42 steps, the last of 2."""
    dice = random.Random(1)
    values = [round(dice.uniform(90, 110), 9) for _ in range(5000)]
    step = b"Epoch: 0 Iteration: %d  train.loss : 7.1  train.total_ips : %.9f img/s\n"
    step = b"DLL 2020-12-16 11:00:00.000000 - " + step
    log = b"".join(step % row for row in enumerate(values, 1))
    trace = reader(DLLOGGER)([log], None).trace
    assert len(trace) == 120
    assert trace == reduce_rates(1, 1, values)
