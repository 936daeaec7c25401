"""A node over the time of a trial: few pieces, each as it was seen, and none made up."""

from dataclasses import replace

import pytest

from orchestrator.model.telemetry import GpuMoment, HostMoment, NodeTelemetry, Reach
from orchestrator.telemetry.course import MOST, course
from orchestrator.telemetry.read import telemetry
from tests.telemetry.test_read import GPUS, STATE

BARE = NodeTelemetry("vs001", 8, (), (), ())


def host(at_s: float, busy_s: float, available_mib: float | None = 2048.0) -> HostMoment:
    """A moment of a node."""
    return HostMoment(at_s, busy_s, 0.0, None, 1.5, available_mib)


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
    assert piece.sm_mhz == Reach(1395, (5 * 1980 + 1410 + 1395 + 1980) / 8, 1980)
    assert piece.temperature_c == Reach(60, (61 + 60 + 87 + 60 + 87 + 61 + 70) / 7, 87)
    assert (piece.held, piece.limits) == (True, ("sw_thermal_slowdown",))
    assert (piece.cpus, piece.load) == (None, None)


def test_pieces_are_equal_few_and_from_the_gate_on() -> None:
    """Two moments or more in each; what was seen before the gate is in none."""
    gpus = tuple(GpuMoment(95.0 + at, 0, sm_mhz=float(at)) for at in range(206))
    found = course(replace(BARE, gpus=gpus), 100.0, None)
    assert found is not None
    assert len(found.stretches) == MOST
    assert {round(p.last_s - p.first_s, 6) for p in found.stretches} == {round(200 / MOST, 6)}
    assert found.stretches[0].sm_mhz == Reach(6, 10.5, 15)
    assert found.stretches[-1].sm_mhz == Reach(196, 200.5, 205)
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


def test_processors_in_use_are_counted_from_the_moment_before() -> None:
    """4 of them for 4 s, then 2; a stretch without a moment tells nothing."""
    busy = (0.0, 4.0, 8.0, 12.0, 16.0, 18.0, 20.0)
    hosts = [host(100.0 + at, value) for at, value in enumerate(busy)]
    found = course(replace(BARE, hosts=tuple(hosts)), 100.0, None)
    assert found is not None
    assert [piece.cpus for piece in found.stretches] == [4, 4, 2]
    assert [piece.available_mib for piece in found.stretches] == [2048.0] * 3
    gap = course(replace(BARE, hosts=(*hosts[:3], hosts[6])), 100.0, None)
    assert gap is not None
    assert [piece.cpus for piece in gap.stretches] == [4, None, 3]
    assert [piece.load for piece in gap.stretches] == [1.5, None, 1.5]


def test_a_single_moment_tells_no_processors() -> None:
    """There is none before it to count from; and before the gate there is no course at all."""
    found = course(replace(BARE, hosts=(host(101.0, 7.0, None),)), 100.0, None)
    assert found is not None
    assert [(p.cpus, p.load, p.available_mib) for p in found.stretches] == [(None, 1.5, None)]
    assert course(replace(BARE, hosts=(host(99.0, 7.0),)), 100.0, None) is None
    assert course(BARE, 100.0, None) is None
