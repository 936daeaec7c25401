"""When clocks were held down: as the driver says or counts, from the gate on."""

import pytest

from orchestrator.model.telemetry import GpuMoment, NodeTelemetry
from orchestrator.telemetry.judge import find_held
from orchestrator.telemetry.read import telemetry
from tests.telemetry.test_read import GPUS, STATE


def node(*gpus: GpuMoment) -> NodeTelemetry:
    """One that was seen at these moments."""
    return NodeTelemetry("vs001", 8, gpus, (), ())


def hot(at_s: float) -> GpuMoment:
    """A moment of heat."""
    return GpuMoment(at_s, 0, limits=("sw_thermal_slowdown", "sw_power_cap"))


def test_a_recorded_throttle_lies_where_it_was() -> None:
    """GPU 0 in the second and the third second; not for the power cap."""
    seen = telemetry("vs002", STATE, GPUS)
    assert seen is not None
    found = find_held(seen, seen.gpus[0].at_s - 0.5, (0.5, 3.5))
    assert found is not None
    assert (found.node, found.limits) == ("vs002", ("sw_thermal_slowdown",))
    ((first_s, last_s),) = found.spans
    assert (first_s, last_s) == pytest.approx((1.5, 2.5), abs=0.01)
    assert found.window_s == (0.5, 3.5)
    assert found.last_s == pytest.approx(3.501, abs=1e-3)


def test_moments_that_are_apart_are_spans_of_their_own() -> None:
    """Looks are a second apart, one may be late; what was before the gate is in none."""
    found = find_held(node(*map(hot, (95.0, 101.0, 102.0, 104.0, 107.0))), 100.0, None)
    assert found is not None
    assert (found.spans, found.window_s) == (((1.0, 4.0), (7.0, 7.0)), None)


def test_a_counter_that_grows_holds_clocks_down_without_a_name() -> None:
    """At the moment at which it was seen to have grown; of its own GPU alone."""
    counts = (5.0, 5.0, 5.4, 5.4)
    seen = [
        GpuMoment(101.0 + at, gpu, limits=("gpu_idle",), slowed_s=None if gpu else slowed)
        for at, slowed in enumerate(counts)
        for gpu in (0, 1)
    ]
    found = find_held(node(*seen), 100.0, None)
    assert found is not None
    assert (found.spans, found.limits) == (((3.0, 3.0),), ())


def test_clocks_that_ran_free_are_none() -> None:
    """Nor those that were held before the gate, nor of a node without GPUs."""
    assert find_held(node(GpuMoment(101.0, 0, limits=("sw_power_cap",))), 100.0, None) is None
    assert find_held(node(hot(99.0)), 100.0, None) is None
    assert find_held(node(), 100.0, None) is None
