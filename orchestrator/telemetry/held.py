"""When the clocks of a node's GPUs were held down. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from orchestrator.model.telemetry import GpuMoment, HeldClocks, NodeTelemetry
from orchestrator.telemetry.judge import HARMFUL, by_gpu

APART_S = 2.0  # the observer looks once a second; moments that are further apart are two spans


def find_held(
    node: NodeTelemetry, went_s: float, window_s: tuple[float, float] | None
) -> HeldClocks | None:
    """Return the spans over which limits held a clock down, from the gate on; None without any.

    Args:
        went_s: when the gate opened, in seconds since the epoch.
        window_s: first and last second of what was measured, after the gate.
    """
    moments = [moment for moment in _find_moments(node.gpus) if moment.at_s >= went_s]
    spans: list[tuple[float, float]] = []
    for after_s in sorted(moment.at_s - went_s for moment in moments):
        begins = not spans or after_s - spans[-1][1] > APART_S
        if begins:
            spans.append((after_s, after_s))
        else:
            spans[-1] = (spans[-1][0], after_s)
    if not spans:
        return None
    limits = {name for moment in moments for name in moment.limits or ()} & HARMFUL
    last_s = node.gpus[-1].at_s - went_s
    return HeldClocks(node.node, tuple(sorted(limits)), tuple(spans), window_s, last_s)


def _find_moments(moments: Sequence[GpuMoment]) -> list[GpuMoment]:
    """Return moments at which a GPU's clocks were held down, or had been since the one before."""
    found = [moment for moment in moments if HARMFUL & {*(moment.limits or ())}]
    for of_gpu in by_gpu(moments):
        counted = [moment for moment in of_gpu if moment.slowed_s is not None]
        found += [
            now
            for before, now in pairwise(counted)
            if (now.slowed_s or 0.0) > (before.slowed_s or 0.0)
        ]
    return found
