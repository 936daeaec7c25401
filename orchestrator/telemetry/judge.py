"""Judges a trial by the state of its nodes: medians, energy, held clocks, and marks. Pure.

Bounds are in ``docs/state-of-machines.md``. No temperature is judged: what throttles says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, median

from orchestrator import words
from orchestrator.model.log import SECOND_NS, TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.telemetry import (
    HARMFUL,
    Energy,
    GpuMoment,
    HeldClocks,
    HostMoment,
    MachineState,
    NodeTelemetry,
    ProcessMoment,
    Span,
)

LATE_S = 2.0  # a log's last lines may be printed after the observer's last look
APART_S = 2.0  # the observer looks once a second; moments that are further apart are two spans
LEAST_MOMENTS = 3  # needed to judge a span
ALIEN_CPUS = 0.5
OTHERS_SHARE, OTHERS_CPUS = 0.1, 0.5  # of all CPUs, but at least so many
STEAL_SHARE = 0.02
LEAST_S = 2.0  # from the first to the last count of the task's processes
LEAST_HOST_S = 0.9  # from the first to the last look at a node, once a second
_MEDIANS = ("sm_mhz", "memory_mhz", "power_w", "temperature_c", "utilisation_pct", "memory_mib")


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time on one node, in seconds since the epoch by its own clock."""

    span: Span
    first_s: float
    last_s: float

    @property
    def seconds(self) -> float:
        return self.last_s - self.first_s

    def holds(self, at_s: float) -> bool:
        return self.first_s <= at_s <= self.last_s


def window(log: TrainingLog, went_s: float, ended_s: float) -> tuple[float, float] | None:
    """Return first and last second of the log's window after its task's gate opened.

    Return None where the log has no clock, or a step that its node saw before or after the task.
    Tasks run with TZ=UTC0, so that a clock without a zone is in UTC.

    Args:
        went_s, ended_s: when the gate opened and the task was seen last, since the epoch.
    """
    if log.origin_ns is None or log.start is None or log.end is None:
        return None
    after_s = log.origin_ns / SECOND_NS - went_s
    length_s = log.end.clock_ns / SECOND_NS
    # A clock of whole seconds prints a step up to one second too early.
    if not -1 < after_s <= ended_s - went_s - length_s + LATE_S:
        return None
    return after_s + log.start.clock_ns / SECOND_NS, after_s + length_s


def period(node: NodeTelemetry, went_s: float, inside: tuple[float, float] | None) -> Period:
    """Return the window on a node, else all that was seen of it after its gate opened."""
    if inside is not None:
        return Period("window", went_s + inside[0], went_s + inside[1])
    return Period("run", went_s, max(went_s, *(moment.at_s for moment in node.hosts), went_s))


def beside(node: NodeTelemetry, nodes: Iterable[tuple[NodeTelemetry, Period]]) -> float:
    """Sum up the CPUs that the gang used on other nodes of the machine, unseen by this node."""
    boot, namespace = node.sight or ("", "")
    used = (
        _cpus(other, over)
        for other, over in nodes
        if boot and other.sight and other.sight[0] == boot and other.sight[1] != namespace
    )
    return sum(cpus[1] for cpus in used if cpus)


def state(node: NodeTelemetry, over: Period, beside_cpus: float = 0.0) -> MachineState:
    """Sum up a node over a period; ``beside_cpus`` as of ``beside``."""
    gpus = [moment for moment in node.gpus if over.holds(moment.at_s)]
    hosts = [moment for moment in node.hosts if over.holds(moment.at_s)]
    known = [moment.limits for moment in gpus if moment.limits is not None]
    limits = {name for names in known for name in names} - {"gpu_idle"}
    slowed = [slow for slow in map(_slowed_s, by_gpu(gpus)) if slow is not None]
    used = _cpus(node, over)
    all_s = hosts[-1].all_s - hosts[0].all_s if len(hosts) >= LEAST_MOMENTS else 0.0
    medians = {name: _median(getattr(moment, name) for moment in gpus) for name in _MEDIANS}
    return MachineState(
        node=node.node,
        span=over.span,
        seconds=over.seconds,
        moments=len(hosts),
        **medians,
        memory_peak_mib=max(
            (moment.memory_mib for moment in gpus if moment.memory_mib is not None), default=None
        ),
        limits=tuple(sorted(limits)) if known else None,
        slowed_s=max(slowed, default=None),
        others_cpus=None if used is None else max(0.0, used[0] - used[1] - beside_cpus),
        steal=(hosts[-1].steal_s - hosts[0].steal_s) / all_s if all_s else None,
        load=_median(moment.load for moment in hosts),
    )


def marks(node: NodeTelemetry, over: Period, now: MachineState) -> Iterable[Problem]:
    """Yield the problems in a node's ``state`` over a period that may have affected the number."""
    gpus = [moment for moment in node.gpus if over.holds(moment.at_s)]
    for moments in by_gpu(gpus):
        yield from _find_throttling(node.node, moments)
    yield from _find_aliens(node, over)
    if now.moments < LEAST_MOMENTS:
        return
    bound = max(OTHERS_CPUS, OTHERS_SHARE * node.cpus)
    if now.others_cpus is not None and now.others_cpus > bound:
        seen, most = words.apart(now.others_cpus, bound)
        yield Problem(
            "CPU-LOADED",
            f"node {node.node}: programs outside of the trial used {seen} of its {node.cpus} CPUs"
            f" on average; needed at most {most}",
        )
    if now.steal is not None and now.steal > STEAL_SHARE:
        seen, most = words.apart(now.steal, STEAL_SHARE, "%")
        yield Problem(
            "CPU-LOADED",
            f"node {node.node}: the hypervisor gave {seen} of its CPUs to others; needed at most"
            f" {most}",
        )


def energy(
    nodes: Sequence[tuple[NodeTelemetry, Period]], throughput: float | None
) -> Energy | None:
    """Return the energy of all GPUs over the window, None if any of them does not report it."""
    if not nodes or not throughput or any(over.span != "window" for _, over in nodes):
        return None
    used: list[tuple[float, bool]] = []
    for node, over in nodes:
        gpus = by_gpu([moment for moment in node.gpus if over.holds(moment.at_s)])
        known = [pair for moments in gpus if (pair := _joules(moments, over.seconds)) is not None]
        if not known or len(known) != len({moment.index for moment in node.gpus}):
            return None
        used += known
    joules = sum(amount for amount, _ in used)
    per_sample = joules / (throughput * nodes[0][1].seconds)
    return Energy(joules, per_sample, "counter" if all(it for _, it in used) else "power")


def find_held(
    node: NodeTelemetry, went_s: float, window_s: tuple[float, float] | None
) -> HeldClocks | None:
    """Return the spans over which limits held a clock down, from the gate on; None without any.

    Clocks were also held down where the driver's counter has grown since the moment before.
    """
    held = [moment for moment in node.gpus if HARMFUL & {*(moment.limits or ())}]
    for moments in by_gpu(node.gpus):
        counted = [(m.slowed_s, m) for m in moments if m.slowed_s is not None]
        held += [now for (before_s, _), (now_s, now) in pairwise(counted) if now_s > before_s]
    held = [moment for moment in held if moment.at_s >= went_s]
    spans: list[tuple[float, float]] = []
    for after_s in sorted(moment.at_s - went_s for moment in held):
        if spans and after_s - spans[-1][1] <= APART_S:
            spans[-1] = (spans[-1][0], after_s)
        else:
            spans.append((after_s, after_s))
    if not spans:
        return None
    limits = {name for moment in held for name in moment.limits or ()} & HARMFUL
    last_s = node.gpus[-1].at_s - went_s
    return HeldClocks(node.node, tuple(sorted(limits)), tuple(spans), window_s, last_s)


def by_gpu(moments: Sequence[GpuMoment]) -> Sequence[Sequence[GpuMoment]]:
    """Group moments by GPU."""
    ordered = sorted(moments, key=lambda moment: moment.index)
    return [[*own] for _, own in groupby(ordered, key=lambda moment: moment.index)]


def _joules(moments: Sequence[GpuMoment], seconds: float) -> tuple[float, bool] | None:
    """Return a GPU's energy, and True if its counter gave it; None from too few moments."""
    if len(moments) < LEAST_MOMENTS:
        return None
    first, last = moments[0], moments[-1]
    seen_s = last.at_s - first.at_s
    if first.energy_j is not None and last.energy_j is not None and 2 * seen_s >= seconds:
        return (last.energy_j - first.energy_j) * seconds / seen_s, True
    powers_w = [moment.power_w for moment in moments if moment.power_w is not None]
    return (fmean(powers_w) * seconds, False) if len(powers_w) >= LEAST_MOMENTS else None


def _find_throttling(node: str, moments: Sequence[GpuMoment]) -> Iterable[Problem]:
    held = [some for moment in moments if (some := HARMFUL & {*(moment.limits or ())})]
    slowed_s = _slowed_s(moments) or 0.0
    if held or slowed_s:
        names = ", ".join(sorted({name for some in held for name in some}))
        counted = f", {slowed_s:.1f} s by the driver's counters" if slowed_s else ""
        yield Problem(
            "THROTTLED",
            f"node {node}: the clocks of GPU {moments[0].index} were held down by"
            f" {names or 'thermal or brake limits'}"
            f" in {len(held)} of {len(moments)} moments{counted}",
        )


def _slowed_s(moments: Sequence[GpuMoment]) -> float | None:
    counted = [moment.slowed_s for moment in moments if moment.slowed_s is not None]
    return counted[-1] - counted[0] if counted else None


def _find_aliens(node: NodeTelemetry, over: Period) -> Iterable[Problem]:
    most: dict[tuple[str, int], ProcessMoment] = {}
    for seen in node.processes:
        is_inside = over.holds((seen.since_s + seen.at_s) / 2)
        if is_inside and (seen.kind == "gpu" or seen.amount >= ALIEN_CPUS):
            key = seen.kind, seen.pid
            most[key] = max(most.get(key, seen), seen, key=lambda moment: moment.amount)
    for seen in most.values():
        is_gpu, used = seen.kind == "gpu", seen.amount
        amount = f"{used:.0f} MiB of GPU memory" if is_gpu else f"{used:.1f} CPUs"
        yield Problem(
            "ALIEN-PROCESS",
            f"node {node.node}: process {seen.pid} ({seen.name}), which is not of the sweep,"
            f" used {amount}",
        )


def _cpus(node: NodeTelemetry, over: Period) -> tuple[float, float] | None:
    """Return the CPUs that all of a node used over a period, and its task; None if not observed.

    Seconds are the kernel's own: on a busy node a late look reads more ticks than its time allows,
    which would be more CPUs than the node has. The node is looked at once a second, its task every
    third time; in a shorter window the task's CPUs are interpolated between the counts around it.
    """
    counted = [at for at in node.hosts if at.task_s is not None]
    inside = [at for at in counted if over.holds(at.at_s)]
    if len(inside) < 2 or inside[-1].at_s - inside[0].at_s < LEAST_S:
        inside = [
            at
            for at in node.hosts
            if over.holds(at.at_s) and counted and counted[0].at_s <= at.at_s <= counted[-1].at_s
        ]
    if len(inside) < 2 or inside[-1].at_s - inside[0].at_s < LEAST_HOST_S:
        return None
    first, last = inside[0], inside[-1]
    seconds = (last.all_s - first.all_s) / node.cpus
    if seconds <= 0:
        return None
    task_s = _task_s(counted, last.at_s) - _task_s(counted, first.at_s)
    return (last.busy_s - first.busy_s) / seconds, task_s / seconds


def _task_s(counted: Sequence[HostMoment], at_s: float) -> float:
    """Interpolate a task's processor time between the counts before and after a moment."""
    before = max((it for it in counted if it.at_s <= at_s), key=lambda it: it.at_s)
    after = min((it for it in counted if it.at_s >= at_s), key=lambda it: it.at_s)
    first_s, last_s = before.task_s or 0.0, after.task_s or 0.0
    if before.at_s == after.at_s:
        return first_s
    return first_s + (last_s - first_s) * (at_s - before.at_s) / (after.at_s - before.at_s)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
