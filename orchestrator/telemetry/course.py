"""The clocks of a node over the time of a trial, in few pieces for a figure. Pure."""

import math
from collections.abc import Sequence
from itertools import pairwise

from orchestrator.model.telemetry import Course, GpuMoment, NodeTelemetry, Stretch
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
    node: NodeTelemetry, held: Sequence[GpuMoment], went_s: float, ends_s: tuple[float, float]
) -> Stretch:
    def inside(moments: Sequence[GpuMoment]) -> list[GpuMoment]:
        return [it for it in moments if ends_s[0] < it.at_s - went_s <= ends_s[1]]

    clocks = [moment.sm_mhz for moment in inside(node.gpus) if moment.sm_mhz is not None]
    slowed = inside(held)
    limits = {name for moment in slowed for name in moment.limits or ()}
    return Stretch(
        *ends_s,
        sm_mhz=math.fsum(clocks) / len(clocks) if clocks else None,
        limits=tuple(sorted(limits & HARMFUL)),
        held=bool(slowed),
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
