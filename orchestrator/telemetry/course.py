"""A node over the time of a trial, in few pieces for a figure. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from orchestrator.model.telemetry import (
    Course,
    GpuMoment,
    HostMoment,
    NodeTelemetry,
    Reach,
    Stretch,
)
from orchestrator.telemetry.judge import HARMFUL, by_gpu

MOST = 20
"""Pieces of a course."""
LEAST_S = 2.0  # the observer looks once a second: none is empty


def course(
    node: NodeTelemetry, went_s: float, window_s: tuple[float, float] | None
) -> Course | None:
    """The node from the gate of its task on; None where nothing was seen after it.

    Args:
        went_s: when the gate opened, in seconds since the epoch.
        window_s: first and last second of what was measured, after the gate.
    """
    seen_s = [*(host.at_s for host in node.hosts), *(gpu.at_s for gpu in node.gpus)]
    last_s = max(seen_s, default=went_s) - went_s
    if last_s <= 0:
        return None
    count = max(1, min(MOST, math.floor(last_s / LEAST_S)))
    held = _held(node.gpus)
    stretches = (
        _stretch(node, held, went_s, (last_s * number / count, last_s * (number + 1) / count))
        for number in range(count)
    )
    return Course(node.node, window_s, tuple(stretches))


def _stretch(
    node: NodeTelemetry,
    held: Sequence[GpuMoment],
    went_s: float,
    ends_s: tuple[float, float],
) -> Stretch:
    def inside(moment: GpuMoment | HostMoment) -> bool:
        return ends_s[0] < moment.at_s - went_s <= ends_s[1]

    gpus = [moment for moment in node.gpus if inside(moment)]
    hosts = [moment for moment in node.hosts if inside(moment)]
    slowed = [moment for moment in held if inside(moment)]
    limits = {name for moment in slowed for name in moment.limits or ()}
    return Stretch(
        *ends_s,
        sm_mhz=_reach(moment.sm_mhz for moment in gpus),
        power_w=_reach(moment.power_w for moment in gpus),
        temperature_c=_reach(moment.temperature_c for moment in gpus),
        utilisation_pct=_reach(moment.utilisation_pct for moment in gpus),
        limits=tuple(sorted(limits & HARMFUL)),
        held=bool(slowed),
        cpus=_cpus(node.hosts, inside),
        load=_last(moment.load for moment in hosts),
        available_mib=_last(moment.available_mib for moment in hosts),
    )


def _held(moments: Sequence[GpuMoment]) -> list[GpuMoment]:
    """Those at which a GPU's clocks were held down, or had been since the moment before."""
    found = [moment for moment in moments if HARMFUL & {*(moment.limits or ())}]
    for of_gpu in by_gpu(moments):
        counted = [moment for moment in of_gpu if moment.slowed_s is not None]
        found += [
            now
            for before, now in pairwise(counted)
            if (now.slowed_s or 0.0) > (before.slowed_s or 0.0)
        ]
    return found


def _reach(values: Iterable[float | None]) -> Reach | None:
    known = [value for value in values if value is not None]
    return Reach(min(known), math.fsum(known) / len(known), max(known)) if known else None


def _cpus(hosts: Sequence[HostMoment], inside: Callable[[HostMoment], bool]) -> float | None:
    """From the last moment before a piece to the last one in it."""
    places = [place for place, moment in enumerate(hosts) if inside(moment)]
    if not places:
        return None
    first, last = hosts[max(0, places[0] - 1)], hosts[places[-1]]
    seen_s = last.at_s - first.at_s
    return (last.busy_s - first.busy_s) / seen_s if seen_s > 0 else None


def _last(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return known[-1] if known else None
