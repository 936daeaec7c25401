"""What the state of its nodes says of a trial: medians, energy, and marks. Pure.

Temperatures are shown and judged by nothing, since what throttles says so itself. Bounds are told
in ``docs/state-of-machines.md``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean, median

from orchestrator import words
from orchestrator.model.problem import Problem
from orchestrator.model.telemetry import (
    Energy,
    GpuMoment,
    HostMoment,
    MachineState,
    NodeTelemetry,
    ProcessMoment,
)
from orchestrator.telemetry.periods import Period

# The software power cap is normal under full load, and so are clocks that somebody set.
HARMFUL = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
LEAST_MOMENTS = 3  # fewer tell nothing of a span
ALIEN_CPUS = 0.5
OTHERS_SHARE, OTHERS_CPUS = 0.1, 0.5  # of all CPUs, but at least so many
STEAL_SHARE = 0.02
LEAST_S = 2.0  # between the first and the last count of the task's processes
LEAST_HOST_S = 0.9  # of a node, which is looked at once a second


def beside(node: NodeTelemetry, nodes: Iterable[tuple[NodeTelemetry, Period]]) -> float:
    """CPUs that the gang used on other nodes of the same machine, whose processes it cannot see.

    Args:
        nodes: all that were seen of the gang.
    """
    used = (_cpus(other, over) for other, over in nodes if _unseen(node, other))
    return sum(task for _, task in filter(None, used))


def _unseen(node: NodeTelemetry, other: NodeTelemetry) -> bool:
    """Return True if both run on one machine but cannot see each other's processes."""
    here, there = node.sight, other.sight
    return here is not None and there is not None and here[0] == there[0] and here[1] != there[1]


def state(node: NodeTelemetry, over: Period, beside_cpus: float = 0.0) -> MachineState:
    """A node over a period.

    Args:
        beside_cpus: of what its machine used, by tasks of the gang on other nodes.
    """
    gpus = [moment for moment in node.gpus if over.holds(moment.at_s)]
    hosts = [moment for moment in node.hosts if over.holds(moment.at_s)]
    limits = [moment.limits for moment in gpus if moment.limits is not None]
    seen = {name for names in limits for name in names} - {"gpu_idle"}
    return MachineState(
        node=node.node,
        span=over.span,
        seconds=over.seconds,
        moments=len(hosts),
        sm_mhz=_median(moment.sm_mhz for moment in gpus),
        memory_mhz=_median(moment.memory_mhz for moment in gpus),
        power_w=_median(moment.power_w for moment in gpus),
        temperature_c=_median(moment.temperature_c for moment in gpus),
        utilisation_pct=_median(moment.utilisation_pct for moment in gpus),
        memory_mib=_median(moment.memory_mib for moment in gpus),
        memory_peak_mib=max(
            (it.memory_mib for it in gpus if it.memory_mib is not None), default=None
        ),
        limits=tuple(sorted(seen)) if limits else None,
        slowed_s=max(
            (slow for slow in map(_slowed_s, by_gpu(gpus)) if slow is not None), default=None
        ),
        others_cpus=_others_cpus(node, over, beside_cpus),
        steal=_steal(hosts),
        load=_median(moment.load for moment in hosts),
    )


def marks(node: NodeTelemetry, over: Period, beside_cpus: float = 0.0) -> Iterable[Problem]:
    """Yield the problems in a node's state that may have affected the trial's number."""
    gpus = [moment for moment in node.gpus if over.holds(moment.at_s)]
    for moments in by_gpu(gpus):
        yield from _throttled(node.node, moments)
    processes = [seen for seen in node.processes if over.holds((seen.since_s + seen.at_s) / 2)]
    yield from _aliens(node.node, processes)
    now = state(node, over, beside_cpus)
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
    """Return the energy of all GPUs over the window, None if any of them does not report it.

    Args:
        throughput: samples per second of the gang.
    """
    if not nodes or not throughput or any(over.span != "window" for _, over in nodes):
        return None
    seconds = nodes[0][1].seconds
    used: list[tuple[float, bool]] = []
    for node, over in nodes:
        gpus = by_gpu([moment for moment in node.gpus if over.holds(moment.at_s)])
        told = [_joules(moments, over.seconds) for moments in gpus]
        known = [joules for joules in told if joules is not None]
        if not known or len(known) != len({moment.index for moment in node.gpus}):
            return None
        used += known
    joules = sum(amount for amount, _ in used)
    counted = all(by_counter for _, by_counter in used)
    return Energy(joules, joules / (throughput * seconds), "counter" if counted else "power")


def by_gpu(moments: Sequence[GpuMoment]) -> Sequence[Sequence[GpuMoment]]:
    """The moments of each GPU."""
    by_index: dict[int, list[GpuMoment]] = {}
    for moment in moments:
        by_index.setdefault(moment.index, []).append(moment)
    return [*by_index.values()]


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


def _throttled(node: str, moments: Sequence[GpuMoment]) -> Iterable[Problem]:
    harmful = [HARMFUL & {*(moment.limits or ())} for moment in moments]
    held = [names for names in harmful if names]
    slowed_s = _slowed_s(moments) or 0.0
    if not held and not slowed_s:
        return
    names = ", ".join(sorted({name for some in held for name in some})) or "thermal or brake limits"
    seen = f"in {len(held)} of {len(moments)} moments"
    counted = f", {slowed_s:.1f} s by the driver's counters" if slowed_s else ""
    yield Problem(
        "THROTTLED",
        f"node {node}: the clocks of GPU {moments[0].index} were held down by {names}"
        f" {seen}{counted}",
    )


def _slowed_s(moments: Sequence[GpuMoment]) -> float | None:
    """By how much the counters grew."""
    counted = [moment.slowed_s for moment in moments if moment.slowed_s is not None]
    return counted[-1] - counted[0] if counted else None


def _aliens(node: str, processes: Sequence[ProcessMoment]) -> Iterable[Problem]:
    most: dict[tuple[str, int], ProcessMoment] = {}
    for seen in processes:
        before = most.get((seen.kind, seen.pid))
        if seen.kind == "gpu" or seen.amount >= ALIEN_CPUS:
            most[seen.kind, seen.pid] = (
                replace(before, amount=max(before.amount, seen.amount)) if before else seen
            )
    for (kind, pid), seen in most.items():
        amount = (
            f"{seen.amount:.0f} MiB of GPU memory" if kind == "gpu" else f"{seen.amount:.1f} CPUs"
        )
        yield Problem(
            "ALIEN-PROCESS",
            f"node {node}: process {pid} ({seen.name}), which is not of the sweep, used {amount}",
        )


def _others_cpus(node: NodeTelemetry, over: Period, beside_cpus: float) -> float | None:
    used = _cpus(node, over)
    return None if used is None else max(0.0, used[0] - used[1] - beside_cpus)


def _cpus(node: NodeTelemetry, over: Period) -> tuple[float, float] | None:
    """Return the CPUs that all of a node used over a period, and its task; None if not observed.

    Seconds are those that the kernel counted itself: a look that is late on a busy node reads more
    ticks than its time says, which would be more CPUs than the node has.
    The node is looked at once a second, its task every third time: in a window too short for two of
    these the task has used its CPUs evenly between the counts around it.
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
    """Processor time of a task at a moment, between the counts before and after it."""
    before = max((it for it in counted if it.at_s <= at_s), key=lambda it: it.at_s)
    after = min((it for it in counted if it.at_s >= at_s), key=lambda it: it.at_s)
    first_s, last_s = before.task_s or 0.0, after.task_s or 0.0
    if before.at_s == after.at_s:
        return first_s
    return first_s + (last_s - first_s) * (at_s - before.at_s) / (after.at_s - before.at_s)


def _steal(hosts: Sequence[HostMoment]) -> float | None:
    if len(hosts) < LEAST_MOMENTS:
        return None
    all_s = hosts[-1].all_s - hosts[0].all_s
    return (hosts[-1].steal_s - hosts[0].steal_s) / all_s if all_s else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
