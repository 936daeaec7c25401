"""A node over the time of a trial: few pieces, each as it was seen, and none made up."""

from dataclasses import replace

import pytest

from orchestrator.model.telemetry import GpuMoment, HostMoment, NodeTelemetry
from orchestrator.telemetry.course import MOST, course
from orchestrator.telemetry.read import telemetry
from tests.telemetry.test_read import GPUS, STATE

BARE = NodeTelemetry("vs001", 8, (), (), ())


def test_a_recorded_throttle_lies_where_it_was() -> None:
    """GPU 0 fell to 1410 and 1395 MHz in the second and the third second; GPU 1 did not."""
    node = telemetry("vs002", STATE, GPUS)
    assert node is not None
    gate_s = node.gpus[0].at_s - 0.5
    found = course(replace(node, hosts=()), gate_s, (0.5, 3.5))
    assert found is not None
    assert (found.node, found.window_s, len(found.stretches)) == ("vs002", (0.5, 3.5), 1)
    (piece,) = found.stretches
    assert piece.first_s == 0
    assert piece.last_s == pytest.approx(3.501, abs=1e-3)
    assert piece.sm_mhz == (5 * 1980 + 1410 + 1395 + 1980) / 8
    assert (piece.held, piece.limits) == (True, ("sw_thermal_slowdown",))


def test_pieces_are_equal_few_and_from_the_gate_on() -> None:
    """Two moments or more in each; what was seen before the gate is in none."""
    gpus = tuple(GpuMoment(95.0 + at, 0, sm_mhz=float(at)) for at in range(206))
    found = course(replace(BARE, gpus=gpus), 100.0, None)
    assert found is not None
    assert len(found.stretches) == MOST
    assert {round(p.last_s - p.first_s, 6) for p in found.stretches} == {round(200 / MOST, 6)}
    assert found.stretches[0].sm_mhz == 10.5
    assert found.stretches[-1].sm_mhz == 200.5
    short = course(replace(BARE, gpus=gpus[:12]), 100.0, None)
    assert short is not None
    assert [piece.last_s for piece in short.stretches] == [2, 4, 6]


def test_a_counter_that_grows_holds_clocks_down_without_a_name() -> None:
    """In the piece in which it was seen to have grown, and in no other; of its own GPU alone."""
    counts = (5.0, 5.0, 5.0, 5.4, 5.4, 5.4)
    gpus = tuple(
        GpuMoment(101.0 + at, gpu, limits=("gpu_idle",), slowed_s=None if gpu else slowed)
        for at, slowed in enumerate(counts)
        for gpu in (0, 1)
    )
    found = course(replace(BARE, gpus=gpus), 100.0, None)
    assert found is not None
    assert [(piece.held, piece.limits) for piece in found.stretches] == [
        (False, ()),
        (True, ()),
        (False, ()),
    ]


def test_a_node_without_gpus_has_no_clocks() -> None:
    """Its moments say how long it was seen; before the gate there is no course at all."""
    late, early = (HostMoment(at_s, 7.0, 0.0, None, 1.5, None) for at_s in (105.0, 99.0))
    found = course(replace(BARE, hosts=(late,)), 100.0, None)
    assert found is not None
    assert [(it.last_s, it.sm_mhz, it.held) for it in found.stretches] == [
        (2.5, None, False),
        (5.0, None, False),
    ]
    assert course(replace(BARE, hosts=(early,)), 100.0, None) is None
    assert course(BARE, 100.0, None) is None
