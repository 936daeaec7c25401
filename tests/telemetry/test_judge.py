"""A trial is marked by what its nodes did within its window, and by nothing else."""

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator.model.log import SECOND_NS, Moment, TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.telemetry import GpuMoment, HostMoment, NodeTelemetry, ProcessMoment
from orchestrator.telemetry import judge
from orchestrator.telemetry.judge import Period
from tests.measuring.trials import LOG
from tests.telemetry.test_read import GPUS, STATE, read

WINDOW = Period("window", 100.0, 110.0)


def host(
    at_s: float, busy_s: float, task_s: float | None, steal_s: float = 0.0, *, cpus: int = 8
) -> HostMoment:
    return HostMoment(at_s, cpus * at_s, busy_s, steal_s, task_s, 1.5)


def quiet(*, cpus: int = 8) -> NodeTelemetry:
    """Return a node that its task has to itself."""
    hosts = tuple(host(100 + at, 8.0 * at, 8.0 * at - 0.01 * at, cpus=cpus) for at in range(-5, 16))
    return NodeTelemetry("vs001", cpus, (), hosts, ())


def marks(node: NodeTelemetry, over: Period = WINDOW, beside_cpus: float = 0.0) -> list[Problem]:
    return list(judge.marks(node, over, judge.state(node, over, beside_cpus)))


def codes(node: NodeTelemetry, over: Period = WINDOW) -> list[str]:
    return [mark.code for mark in marks(node, over)]


def log(origin_s: float | None, start_s: float = 2.0, end_s: float = 12.0) -> TrainingLog:
    """Return a log whose first step was printed then, with a window after it."""
    origin_ns = None if origin_s is None else int(origin_s * SECOND_NS)
    start = Moment(5, int(start_s * SECOND_NS), 6)
    return replace(
        LOG, origin_ns=origin_ns, start=start, end=Moment(50, int(end_s * SECOND_NS), 51)
    )


@pytest.mark.parametrize(
    ("log", "went_s", "ended_s", "found"),
    [
        # In UTC, however late the first step comes after the gate
        *((log(1000.0 + it), 1000.0, 6000.0, (it + 2, it + 12)) for it in (0, 4, 899, 900, 4000)),
        # A clock of whole seconds prints a step up to one second too early
        (log(1000.0), 1000.7, 1030.0, (1.3, 11.3)),
        (log(1000.0), 1001.0, 1030.0, None),
        # The last line may be printed after the last look
        (log(1004.0), 1000.0, 1014.0, (6, 16)),
        (log(1004.0), 1000.0, 1013.9, None),
        # A program with a time zone of its own
        *((log(1004.0 + it), 1000.0, 1030.0, None) for it in (8 * 3600, -5 * 3600, 900, -900, 17)),
        (log(None), 1000.0, 1030.0, None),
        (replace(log(1004.0), start=None), 1000.0, 1030.0, None),
        (replace(log(1004.0), end=None), 1000.0, 1030.0, None),
    ],
)
def test_a_window_is_placed_on_the_clock_of_its_node(
    log: TrainingLog, went_s: float, ended_s: float, found: tuple[float, float] | None
) -> None:
    seen = judge.window(log, went_s, ended_s)
    assert seen == (None if found is None else pytest.approx(found))


def test_the_period_is_the_window_else_the_whole_run() -> None:
    assert judge.period(quiet(), 98.0, (2.0, 12.0)) == Period("window", 100.0, 110.0)
    assert judge.period(quiet(), 98.0, None) == Period("run", 98.0, 115.0)
    assert judge.period(replace(quiet(), hosts=()), 98.0, None) == Period("run", 98.0, 98.0)


NORMAL = ("sw_power_cap", "applications_clocks_setting")
QUIET = replace(
    quiet(), gpus=tuple(GpuMoment(float(at), 0, limits=NORMAL) for at in range(100, 110))
)


def test_the_state_of_a_quiet_node_is_summed_up() -> None:
    state = judge.state(QUIET, WINDOW)
    assert state.others_cpus == pytest.approx(0.01)
    assert (state.moments, state.seconds, state.steal, state.load) == (11, 10.0, 0.0, 1.5)
    assert state.limits == ("applications_clocks_setting", "sw_power_cap")
    assert (state.sm_mhz, state.slowed_s) == (None, None)


def beside(others: float, *, cpus: int = 8) -> NodeTelemetry:
    """Return a node whose task uses 5 CPUs and where others use some."""
    hosts = [host(100 + at, (5.0 + others) * at, 5.0 * at, cpus=cpus) for at in range(11)]
    return replace(quiet(), cpus=cpus, hosts=tuple(hosts))


def every_third(last: int = 9) -> NodeTelemetry:
    """Return a node whose task is counted each third second until the last; others use 1.5 CPUs."""
    hosts = tuple(
        host(100.0 + at, 2.0 * at, 0.5 * at if at % 3 == 0 and at <= last else None, cpus=2)
        for at in range(10)
    )
    return NodeTelemetry("vs001", 2, (), hosts, ())


def seen(*hosts: HostMoment) -> NodeTelemetry:
    return NodeTelemetry("vs001", 2, (), hosts, ())


# A load that came and went: what was before and after a window is not in it
BURST = seen(
    *(
        host(100.0 + at, busy_s, 0.5 * at if at % 6 == 0 else None, cpus=2)
        for at, busy_s in enumerate((0.0, 0.5, 1.0, 3.0, 5.0, 5.5, 6.0))
    )
)
# A look whose counters were read 1.5 s after its time saw 5.5 s of ticks in 4 s
FIRST = HostMoment(100.0, 1000.0, 500.0, 0.0, 0.0, 1.5)
LATE = HostMoment(104.0, 1011.0, 511.0, 0.0, 0.5, 1.5)


@pytest.mark.parametrize(
    ("node", "first_s", "last_s", "others"),
    [
        (beside(1.0), 100, 110, 1.0),
        (beside(0.8), 100, 110, 0.8),
        (beside(1.0, cpus=16), 100, 110, 1.0),
        # Wherever the window lies between the counts of the task
        *((every_third(), it, it + 4, 1.5) for it in (100.2, 101, 101.5, 102.9, 103.4, 104.6)),
        (BURST, 102, 104, 1.5),
        # No more CPUs are in use than a node has
        (seen(FIRST, LATE), 100, 110, 2.0 - 0.5 / 5.5),
        # Too few moments, or none of the task within the window
        (seen(FIRST, replace(LATE, all_s=FIRST.all_s)), 100, 110, None),
        (seen(*(host(100.0 + at, 6.0 * at, None) for at in range(9))), 100, 110, None),
        (every_third(3), 104, 108, None),
        (every_third(), 102.4, 103.3, None),
        (every_third(), 101.4, 101.9, None),
    ],
)
def test_cpus_that_others_use_are_known_or_absent(
    node: NodeTelemetry, first_s: float, last_s: float, others: float | None
) -> None:
    over = Period("window", first_s, last_s)
    found = judge.state(node, over).others_cpus
    assert found == (None if others is None else pytest.approx(others))
    is_bound = (others or 0) > max(0.5, node.cpus / 10) and len(node.hosts) > 2
    assert codes(node, over) == (["CPU-LOADED"] if is_bound else [])


BEGIN_S = 1795419076.12  # 2026/11/23 07:31:16.120, the first moment of the recording
# A driver that shows no reason at a moment, but counts
COUNTED = tuple(GpuMoment(100.0 + at, 3, limits=(), slowed_s=0.1 * at) for at in range(5))
STOLEN = tuple(host(100 + at, 6.0 * at, 6.0 * at, steal_s=0.4 * at) for at in range(11))
SHORT = tuple(host(100 + at, 6.0 * at, 0.0) for at in range(2))
# The bound is half a CPU, or any memory of a GPU, within the window
ALIENS = (
    ProcessMoment(90.0, 93.0, "cpu", 7, 1.0, "early"),
    ProcessMoment(99.0, 102.0, "cpu", 8, 0.6, "stress"),
    ProcessMoment(102.0, 105.0, "cpu", 8, 0.9, "stress"),
    ProcessMoment(102.0, 105.0, "cpu", 9, 0.3, "sshd"),
    ProcessMoment(105.0, 105.0, "gpu", 10, 512, "python"),
    ProcessMoment(109.5, 112.5, "cpu", 11, 1.0, "late"),
)
MARKED = {
    "quiet": (QUIET, WINDOW, []),
    "counted": (replace(quiet(), gpus=COUNTED), WINDOW, ["THROTTLED"]),
    "loaded": (beside(1.0), WINDOW, ["CPU-LOADED"]),
    "stolen": (replace(quiet(), hosts=STOLEN), WINDOW, ["CPU-LOADED"]),
    "short": (replace(quiet(), hosts=SHORT), WINDOW, []),
    "aliens": (replace(quiet(), processes=ALIENS), WINDOW, ["ALIEN-PROCESS"] * 2),
}


@pytest.mark.parametrize(("node", "over", "expected"), MARKED.values(), ids=MARKED)
def test_a_node_is_marked_for_what_happens_within_its_window(
    node: NodeTelemetry, over: Period, expected: list[str], snapshot: SnapshotAssertion
) -> None:
    found = marks(node, over)
    assert [mark.code for mark in found] == expected
    if found:
        assert "\n".join(mark.message for mark in found) == snapshot


def test_a_recorded_throttle_is_marked_within_its_window_alone(snapshot: SnapshotAssertion) -> None:
    node = replace(read(STATE, GPUS), node="vs002", hosts=(), processes=())
    (mark,) = marks(node, Period("window", BEGIN_S, BEGIN_S + 4))
    assert mark.code == "THROTTLED"
    assert mark.message == snapshot
    assert codes(node, Period("window", BEGIN_S + 2.9, BEGIN_S + 4)) == []


def test_a_clock_that_stands_still_gives_no_share_of_the_hypervisor() -> None:
    still = tuple(host(100.0, 6.0, None) for _ in range(3))
    assert judge.state(replace(quiet(), hosts=still), WINDOW).steal is None


def power(watts: float | None, counted_w: float | None = None) -> tuple[GpuMoment, ...]:
    """Return two GPUs, a moment a second, with a counter that grows by ``counted_w``."""
    return tuple(
        GpuMoment(
            100.5 + at,
            gpu,
            power_w=watts,
            energy_j=counted_w if counted_w is None else counted_w * at,
        )
        for at in range(9)
        for gpu in (0, 1)
    )


def energy(throughput: float, *gpus: tuple[GpuMoment, ...]) -> tuple[float, float, str]:
    used = judge.energy([(replace(quiet(), gpus=it), WINDOW) for it in gpus], throughput)
    assert used is not None
    return round(used.joules, 6), round(used.per_sample, 6), used.source


def test_joules_per_sample_are_of_all_gpus_over_the_window() -> None:
    """2 GPUs of 300 W for 10 s, 500 samples/s: 6000 J, 1.2 J a sample; or by counters."""
    assert energy(500.0, power(300.0)) == (6000.0, 1.2, "power")
    assert energy(1000.0, power(300.0), power(300.0, 310.0)) == (12200.0, 1.22, "power")
    assert energy(500.0, power(None, 310.0)) == (6200.0, 1.24, "counter")


def test_energy_that_is_not_known_of_all_gpus_is_absent() -> None:
    """It is never 0."""
    assert judge.energy([], 500.0) is None
    node = replace(quiet(), gpus=power(300.0))
    assert judge.energy([(node, WINDOW)], None) is None
    assert judge.energy([(node, Period("run", 100.0, 110.0))], 500.0) is None
    lone = (*power(300.0), GpuMoment(50.0, 2, power_w=300.0))
    for gpus in ((), power(None), power(300.0)[:4], lone):
        assert judge.energy([(replace(node, gpus=gpus), WINDOW)], 500.0) is None


def gang(*sights: tuple[str, str] | None) -> list[tuple[NodeTelemetry, Period]]:
    """Nodes of one machine with 8 CPUs, all busy, of which each node's task uses 4."""
    hosts = tuple(host(100 + at, 8.0 * at, 4.0 * at) for at in range(-5, 16))
    return [
        (NodeTelemetry(f"vs{at}", 8, (), hosts, (), sight), WINDOW)
        for at, sight in enumerate(sights)
    ]


@pytest.mark.parametrize(
    ("second", "beside_cpus"),
    [
        (("boot", "pid:[2]"), 4.0),
        (("boot", "pid:[1]"), 0.0),  # it sees those processes, and has counted them
        (("other", "pid:[2]"), 0.0),
        (None, 0.0),
    ],
)
def test_the_gang_on_another_node_of_its_machine_is_not_others(
    second: tuple[str, str] | None, beside_cpus: float
) -> None:
    """Nodes in containers of one machine count its whole time, and see their own processes only."""
    nodes = gang(("boot", "pid:[1]"), second)
    first, over = nodes[0]
    assert judge.beside(first, nodes) == pytest.approx(beside_cpus)
    others = judge.state(first, over, beside_cpus).others_cpus
    assert others == pytest.approx(4.0 - beside_cpus)
    found = [mark.code for mark in marks(first, over, beside_cpus)]
    assert found == ([] if beside_cpus else ["CPU-LOADED"])


def test_a_node_that_was_seen_too_briefly_takes_nothing_off() -> None:
    """One moment tells no rate."""
    first, (second, over) = gang(("boot", "pid:[1]"), ("boot", "pid:[2]"))
    brief = replace(second, hosts=second.hosts[:6])
    assert judge.beside(first[0], [first, (brief, over)]) == 0.0


def hot(at_s: float) -> GpuMoment:
    return GpuMoment(at_s, 0, limits=("sw_thermal_slowdown", "sw_power_cap"))


def test_a_recorded_throttle_lies_where_it_was() -> None:
    """GPU 0 was hot in the second and the third second; its power cap is normal."""
    seen = read(STATE, GPUS)
    found = judge.find_held(seen, seen.gpus[0].at_s - 0.5, (0.5, 3.5))
    assert found is not None
    assert (found.node, found.limits) == ("vs001", ("sw_thermal_slowdown",))
    ((first_s, last_s),) = found.spans
    assert (first_s, last_s) == pytest.approx((1.5, 2.5), abs=0.01)
    assert found.window_s == (0.5, 3.5)
    assert found.last_s == pytest.approx(3.501, abs=1e-3)


def counted(*slowed_s: float) -> list[GpuMoment]:
    """Return moments of two GPUs, of which the first counts seconds under limits."""
    return [
        GpuMoment(101.0 + at, gpu, limits=("gpu_idle",), slowed_s=None if gpu else slowed)
        for at, slowed in enumerate(slowed_s)
        for gpu in (0, 1)
    ]


@pytest.mark.parametrize(
    ("moments", "spans", "limits"),
    [
        # Looks are a second apart, one may be late; what was before the gate is in none
        (
            [*map(hot, (95.0, 101.0, 102.0, 104.0, 107.0))],
            ((1.0, 4.0), (7.0, 7.0)),
            ("sw_thermal_slowdown",),
        ),
        # A counter that grows holds clocks down from the moment at which it was seen to have grown
        (counted(5.0, 5.0, 5.4, 5.4), ((3.0, 3.0),), ()),
        ([GpuMoment(101.0, 0, limits=("sw_power_cap",))], None, ()),
        ([hot(99.0)], None, ()),
        ([], None, ()),
    ],
)
def test_clocks_are_held_down_in_spans(
    moments: list[GpuMoment], spans: object, limits: tuple[str, ...]
) -> None:
    node = NodeTelemetry("vs001", 8, tuple(moments), (), ())
    found = judge.find_held(node, 100.0, None)
    assert (found and found.spans) == spans
    assert found is None or (found.limits, found.window_s) == (limits, None)
