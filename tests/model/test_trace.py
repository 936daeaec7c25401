"""Rates over iterations in few points."""

import random
from array import array

from orchestrator.logs import DLLOGGER, reader
from orchestrator.model.log import Trace


def test_rates_of_many_steps_are_shown_in_at_most_120_points() -> None:
    """Of every tenth iteration from 10 to 2500, three at a time; one is left for the last point."""
    rates = array("d", range(1, 251))
    points = [*Trace(10, 10, 250, 1, rates, rates, rates).points]
    assert len(points) == 84
    assert points[:2] == [(10, 30, 1, 2, 3), (40, 60, 4, 5, 6)]
    assert points[-1] == (2500, 2500, 250, 250, 250)


def test_few_rates_are_shown_as_they_are() -> None:
    """Values of two steps stay values of two steps, and the last one is of one."""
    trace = Trace(1, 1, 5, 2, [7.0, 5.0, 9.0], [8.0, 6.0, 9.0], [9.0, 7.0, 9.0])
    assert [*trace.points] == [(1, 2, 7, 8, 9), (3, 4, 5, 6, 7), (5, 5, 9, 9, 9)]


def test_a_long_log_holds_only_what_is_shown_of_it() -> None:
    """What 5,000 rates are summed up in has the points that all of them give."""
    dice = random.Random(1)
    values = [round(dice.uniform(90, 110), 9) for _ in range(5000)]
    step = b"Epoch: 0 Iteration: %d  train.loss : 7.1  train.total_ips : %.9f img/s\n"
    step = b"DLL 2020-12-16 11:00:00.000000 - " + step
    log = b"".join(step % row for row in enumerate(values, 1))
    trace = reader(DLLOGGER)([log], None).trace
    assert trace is not None
    assert len(trace.means) == 120  # of 42 steps, the last of 2
    assert [*trace.points] == [*Trace(1, 1, 5000, 1, values, values, values).points]
