"""The clocks of a node over the time of a trial, in the few pieces that a figure draws.

Source: ``docs/state-of-machines.md``.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from orchestrator.verifying.plain_state import COLUMNS, Gpu, PlainNode

MOST, LEAST_S = 20, 2
Piece = dict[str, str | float | None]
"""What each column of a figure's table says, by its key; no limits where none held clocks down."""


def pieces(node: PlainNode, went_s: float) -> list[Piece]:
    """Return the pieces from the gate on, as long as anything was seen."""
    seen_s = [*(host.at_s for host in node.hosts), *(gpu.at_s for gpu in node.gpus)]
    last_s = max(seen_s, default=went_s) - went_s
    if last_s <= 0:
        return []
    count = max(1, min(MOST, int(last_s / LEAST_S)))
    slowed = _slowed(node)
    ends = ((last_s * place / count, last_s * (place + 1) / count) for place in range(count))
    return [_piece(node, slowed, went_s, *end) for end in ends]


def _piece(
    node: PlainNode, slowed: Sequence[Gpu], went_s: float, first_s: float, last_s: float
) -> Piece:
    def inside(moments: Sequence[Gpu]) -> list[Gpu]:
        return [it for it in moments if first_s < it.at_s - went_s <= last_s]

    clocks = [it.number(*COLUMNS["sm_mhz"]) for it in inside(node.gpus)]
    known = [clock for clock in clocks if clock is not None]
    held = inside(slowed)
    names = {name for moment in held for name in moment.harmful}
    return {
        "seconds": f"{_seconds(first_s)}-{_seconds(last_s)}",
        "sm_mhz": fmean(known) if known else None,
        "limits": ", ".join(sorted(names)) or ("heat or brakes" if held else ""),
    }


def _slowed(node: PlainNode) -> list[Gpu]:
    """Moments at which limits held a clock down, or a counter says so since the one before."""
    found = [moment for moment in node.gpus if moment.harmful]
    for index in {moment.index for moment in node.gpus}:
        own = [it for it in node.gpus if it.index == index and it.slowed_s is not None]
        found += [now for then, now in pairwise(own) if (now.slowed_s or 0) > (then.slowed_s or 0)]
    return found


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
