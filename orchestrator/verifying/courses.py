"""A node over the time of a trial, in the few pieces that a figure draws.

Source: ``docs/state-of-machines.md``.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean

from orchestrator.verifying.plain_state import COLUMNS, Gpu, Host, PlainNode

MOST, LEAST_S = 20, 2
OF_GPUS = ("sm_mhz", "power_w", "temperature_c", "utilisation_pct")
OF_HOSTS = ("cpus", "load", "available")
Piece = dict[str, str | float | None]
"""What each column of a figure's table says, by its key."""


def pieces(node: PlainNode, went_s: float) -> list[Piece]:
    """From the gate on, as long as anything was seen."""
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
    def inside(moment: Gpu | Host) -> bool:
        return first_s < moment.at_s - went_s <= last_s

    gpus = [moment for moment in node.gpus if inside(moment)]
    hosts = [moment for moment in node.hosts if inside(moment)]
    held = [moment for moment in slowed if inside(moment)]
    names = {name for moment in held for name in moment.harmful}
    available = _last(host.available_kib for host in hosts)
    return {
        "seconds": f"{_seconds(first_s)}-{_seconds(last_s)}",
        **{key: _mean(it.number(*COLUMNS[key]) for it in gpus) for key in OF_GPUS},
        "limits": ", ".join(sorted(names)) or ("heat or brakes" if held else ""),
        "cpus": _cpus(node.hosts, hosts),
        "load": _last(host.load for host in hosts),
        "available": None if available is None else available / (1 << 20),
    }


def _slowed(node: PlainNode) -> list[Gpu]:
    """Moments at which limits held a clock down, or a counter says so since the one before."""
    found = [moment for moment in node.gpus if moment.harmful]
    for index in {moment.index for moment in node.gpus}:
        own = [it for it in node.gpus if it.index == index and it.slowed_s is not None]
        found += [now for then, now in pairwise(own) if (now.slowed_s or 0) > (then.slowed_s or 0)]
    return found


def _cpus(every: Sequence[Host], inside: Sequence[Host]) -> float | None:
    """In use from the last moment before a piece on."""
    if not inside:
        return None
    place = every.index(inside[0])
    first, last = every[max(0, place - 1)], inside[-1]
    lasted_s = last.at_s - first.at_s
    return (last.busy_s - first.busy_s) / lasted_s if lasted_s > 0 else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _last(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return known[-1] if known else None


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
