"""State of the machines beside a trial, energy and marks, from what observers wrote.

Source of every bound: ``docs/state-of-machines.md``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from orchestrator.verifying import plain_state
from orchestrator.verifying.damages import NS
from orchestrator.verifying.differences import items, number, text
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.plain_state import COLUMNS, Gpu, Host, PlainNode, Process
from orchestrator.verifying.trials import DerivedTrial

LEAST_MOMENTS = 3
LEAST_S = 2
LEAST_HOST_S = 0.9
APART_S = 2
ALIEN_CPUS = 0.5
OTHERS_SHARE, OTHERS_CPUS, STEAL_SHARE = 0.1, 0.5, 0.02


@dataclass(slots=True)
class Machines:
    """What was derived of the machines of a trial; nothing where no observer saw them.

    Args:
        energy: joules, joules per sample, and ``counter`` or ``power``.
        held: by node, when limits held a clock down, and which.
    """

    states: list[dict[str, object]] = field(default_factory=list)
    energy: tuple[float, float, str] | None = None
    marks: list[Mark] = field(default_factory=list)
    held: list[dict[str, str]] = field(default_factory=list)
    unplaced: list[Mark] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A node within the measured window, or within the run where no clock tells the window."""

    node: PlainNode
    window: bool
    first_s: float
    last_s: float

    def holds(self, at_s: float) -> bool:
        return self.first_s <= at_s <= self.last_s

    @property
    def seconds(self) -> float:
        return self.last_s - self.first_s

    @property
    def hosts(self) -> list[Host]:
        return [moment for moment in self.node.hosts if self.holds(moment.at_s)]

    @property
    def processes(self) -> list[Process]:
        return [it for it in self.node.processes if self.holds((it.since_s + it.at_s) / 2)]

    @property
    def gpus(self) -> dict[int, list[Gpu]]:
        """By index."""
        found: dict[int, list[Gpu]] = {}
        for moment in self.node.gpus:
            if self.holds(moment.at_s):
                found.setdefault(moment.index, []).append(moment)
        return found


def derived(folder: Path, outcome: Mapping[str, object], trial: DerivedTrial) -> Machines:
    """The machines of a trial whose observers' files are what they were.

    Args:
        folder: of the attempt.
    """
    ends, seen, inside = items(outcome.get("tasks")), [], None
    unplaced: list[Mark] = []
    held: list[dict[str, str]] = []
    for place, end in enumerate(ends):
        rank, went_s = end.get("node_rank"), number(end.get("went_at"))
        files = folder / f"r{rank}.state", folder / f"r{rank}.gpus"
        node = plain_state.read(text(end.get("node")), *files)
        if node is None or not node.hosts or went_s is None:
            continue
        held += _held(node, went_s)
        if place == 0:
            inside = _window(trial, went_s, node.hosts[-1].at_s)
            if inside is None and trial.begun_ns is not None and trial.span and all(trial.span):
                unplaced.append(Mark("NOT-PLACED", (node.node,)))
        if inside:
            seen.append(_Seen(node, True, went_s + inside[0], went_s + inside[1]))
        else:
            last_s = max(went_s, *(moment.at_s for moment in node.hosts))
            seen.append(_Seen(node, False, went_s, last_s))
    energy = _energy(seen, trial.throughput) if seen and len(seen) == len(ends) else None
    others = [_others(node, seen) for node in seen]
    marks = [mark for node, cpus in zip(seen, others, strict=True) for mark in _marks(node, cpus)]
    states = [_state(node, cpus) for node, cpus in zip(seen, others, strict=True)]
    return Machines(states, energy, marks, held, unplaced)


def _window(trial: DerivedTrial, went_s: float, ended_s: float) -> tuple[float, float] | None:
    """Seconds after the gate opened; None where the log's clock, in UTC, does not fit."""
    first, last = trial.span or (None, None)
    if not (first and last) or trial.begun_ns is None:
        return None
    if first.clock_ns is None or last.clock_ns is None:
        return None
    after_s = trial.begun_ns / NS - went_s
    first_s, last_s = ((end - trial.begun_ns) / NS for end in (first.clock_ns, last.clock_ns))
    if not -1 < after_s <= ended_s - went_s - last_s + 2:
        return None
    return after_s + first_s, after_s + last_s


def _state(seen: _Seen, others: float | None) -> dict[str, object]:
    """As results.json says it."""
    gpus = [moment for moments in seen.gpus.values() for moment in moments]
    told = [limits for moment in gpus if (limits := moment.limits) is not None]
    slowed = [_slowed_s(moments) for moments in seen.gpus.values()]
    found = {
        "node": seen.node.node,
        "span": "window" if seen.window else "run",
        "seconds": seen.seconds,
        "moments": len(seen.hosts),
        **{name: _middle([it.number(*of) for it in gpus]) for name, of in COLUMNS.items()},
        "limits": sorted({name for names in told for name in names} - {"gpu_idle"})
        if told
        else None,
        "slowed_s": max((it for it in slowed if it is not None), default=None),
        "others_cpus": others,
        "steal": _steal(seen),
        "load": _middle([moment.load for moment in seen.hosts]),
    }
    return {**found, "not_observed": [key for key, value in found.items() if value is None]}


def _marks(seen: _Seen, others: float | None) -> Iterator[Mark]:
    node = f"node {seen.node.node}"
    for index, moments in seen.gpus.items():
        yield from _throttled(node, index, moments)
    yield from _aliens(node, seen.processes)
    if len(seen.hosts) < LEAST_MOMENTS:
        return
    cpus, steal = seen.node.cpus, _steal(seen)
    bound = max(OTHERS_CPUS, OTHERS_SHARE * cpus)
    if others is not None and others > bound:
        used = f"{others:.1f} of {cpus}"
        yield Mark("CPU-LOADED", (node, used, f"at most {bound:.1f}"))
    if steal is not None and steal > STEAL_SHARE:
        yield Mark("CPU-LOADED", (node, f"{steal:.1%}", f"at most {STEAL_SHARE:.0%}"))


def _throttled(node: str, index: int, moments: Sequence[Gpu]) -> Iterator[Mark]:
    held = [moment.harmful for moment in moments if moment.harmful]
    slowed_s = _slowed_s(moments)
    if held or slowed_s:
        names = sorted({name for some in held for name in some})
        counted = (f"{slowed_s:.1f} s",) if slowed_s else ()
        times = f"in {len(held)} of {len(moments)}"
        yield Mark("THROTTLED", (node, f"GPU {index}", *names, times, *counted))


def _held(node: PlainNode, went_s: float) -> Iterator[dict[str, str]]:
    """Spans over which a clock was held down, or had been since the look before; which limits."""
    found = [moment for moment in node.gpus if moment.harmful]
    for index in {moment.index for moment in node.gpus}:
        own = [it for it in node.gpus if it.index == index and it.slowed_s is not None]
        found += [now for then, now in pairwise(own) if (now.slowed_s or 0) > (then.slowed_s or 0)]
    found = [moment for moment in found if moment.at_s >= went_s]
    spans: list[list[float]] = []
    for after_s in sorted(moment.at_s - went_s for moment in found):
        if not spans or after_s - spans[-1][1] > APART_S:
            spans.append([after_s, after_s])
        spans[-1][1] = after_s
    if spans:
        seconds = ", ".join(f"{first:.1f}-{last:.1f}" for first, last in spans)
        names = sorted({name for moment in found for name in moment.harmful})
        limits = ", ".join(names) or "heat or brakes"
        yield {"node": node.node, "seconds": seconds, "limits": limits}


def _aliens(node: str, processes: Sequence[Process]) -> Iterator[Mark]:
    most: dict[tuple[str, int], tuple[str, float]] = {}
    for it in processes:
        if it.kind == "gpu" or it.amount >= ALIEN_CPUS:
            name, amount = most.get((it.kind, it.pid), (it.name, it.amount))
            most[it.kind, it.pid] = (name, max(amount, it.amount))
    for (kind, pid), (name, amount) in most.items():
        used = f"{amount:.0f} MiB" if kind == "gpu" else f"{amount:.1f} CPUs"
        yield Mark("ALIEN-PROCESS", (node, f"process {pid} ({name})", used))


def _energy(seen: Sequence[_Seen], throughput: float | None) -> tuple[float, float, str] | None:
    if not throughput or not all(node.window for node in seen):
        return None
    seconds, used = seen[0].seconds, []
    for node in seen:
        gpus = [_joules(moments, node.seconds) for moments in node.gpus.values()]
        if not gpus or len(gpus) < len({moment.index for moment in node.node.gpus}):
            return None
        used += gpus
    known = [it for it in used if it is not None]
    if len(known) < len(used):
        return None
    joules = sum(amount for amount, _ in known)
    source = "counter" if all(counted for _, counted in known) else "power"
    return joules, joules / (throughput * seconds), source


def _joules(moments: Sequence[Gpu], seconds: float) -> tuple[float, bool] | None:
    """Of one GPU, and whether a counter says so; None of too few moments."""
    if len(moments) < LEAST_MOMENTS:
        return None
    first, last = (end.number("total_energy_consumption") for end in (moments[0], moments[-1]))
    seen_s = moments[-1].at_s - moments[0].at_s
    if first is not None and last is not None and 2 * seen_s >= seconds:
        return (last / 1e3 - first / 1e3) * seconds / seen_s, True
    powers = [it for moment in moments if (it := moment.number("power.draw")) is not None]
    return (fmean(powers) * seconds, False) if len(powers) >= LEAST_MOMENTS else None


def _slowed_s(moments: Sequence[Gpu]) -> float | None:
    """By how much the counters grew."""
    counted = [it for moment in moments if (it := moment.slowed_s) is not None]
    return counted[-1] - counted[0] if counted else None


def _others(seen: _Seen, gang: Sequence[_Seen]) -> float | None:
    """CPUs that neither its task used nor the gang's on other nodes of the same machine."""
    if (used := _used(seen)) is None:
        return None
    busy, own = used
    here = seen.node
    unseen = (it for it in gang if here.boot and it.node.boot == here.boot)
    beside = [_used(it) for it in unseen if it.node.namespace != here.namespace]
    # Its own first: in another order the last digit is another.
    return max(0.0, busy - own - sum(task for _, task in filter(None, beside)))


def _used(seen: _Seen) -> tuple[float, float] | None:
    """CPUs of the whole node, and of its task: between two counts in the window, or around it."""
    counts = [(it.at_s, it.task_s) for it in seen.node.hosts if it.task_s is not None]
    span = [it for it in seen.hosts if it.task_s is not None]
    least_s: float = LEAST_S
    if len(span) < 2 or span[-1].at_s - span[0].at_s < least_s:
        least_s = LEAST_HOST_S
        span = [it for it in seen.hosts if counts and counts[0][0] <= it.at_s <= counts[-1][0]]
    lasted_s = span[-1].at_s - span[0].at_s if span else 0
    if len(span) < 2 or lasted_s < least_s:
        return None
    own = [_counted(counts, end.at_s) for end in (span[0], span[-1])]
    return (span[-1].busy_s - span[0].busy_s) / lasted_s, (own[1] - own[0]) / lasted_s


def _counted(counts: Sequence[tuple[float, float]], at_s: float) -> float:
    """Seconds of the task at a moment, on the line between two counts."""
    place = next(place for place, (until_s, _) in enumerate(counts) if until_s >= at_s)
    until_s, after = counts[place]
    if until_s == at_s:
        return after
    since_s, before = counts[place - 1]
    return before + (after - before) * (at_s - since_s) / (until_s - since_s)


def _steal(seen: _Seen) -> float | None:
    hosts = seen.hosts
    lasted_s = hosts[-1].at_s - hosts[0].at_s if len(hosts) >= LEAST_MOMENTS else 0
    if not lasted_s:
        return None
    return (hosts[-1].steal_s - hosts[0].steal_s) / lasted_s / seen.node.cpus


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
