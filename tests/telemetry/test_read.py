"""What an observer wrote is read as it is, and what a driver does not say is absent."""

import pytest

from orchestrator.telemetry.read import limits, telemetry
from tests import TESTS

SAMPLES = TESTS / "samples" / "telemetry"
STATE = (SAMPLES / "loaded_r0.state").read_bytes()
GPUS = (SAMPLES / "throttled_r0.gpus").read_bytes()
BOOT_S = 1795419075.830274636 - 1615.13


def test_moments_of_a_node_are_those_of_the_recording() -> None:
    """Processor time in seconds, by the machine's own ticks; what was not counted is None."""
    node = telemetry("vs001", STATE, b"")
    assert node is not None
    assert (node.node, node.cpus, node.gpus, len(node.hosts)) == ("vs001", 2, (), 13)
    first, last = node.hosts[0], node.hosts[-1]
    assert first.at_s == pytest.approx(BOOT_S + 1615.13)
    assert first.busy_s == pytest.approx(1272.77 + 131.45 + 289.03 + 7.04)
    assert first.all_s == pytest.approx(first.busy_s + 1504.73 + 13.11 + 2.75)  # 2 of 1610 s
    assert (first.steal_s, first.task_s, first.load) == (2.75, 0.0, 15.63)
    assert (last.task_s, node.hosts[1].task_s) == (0.22, None)


def test_processes_of_others_have_their_names_and_shares() -> None:
    """Each with the stretch of time over which its share was taken."""
    node = telemetry("vs001", STATE, b"")
    assert node is not None
    seen = [(process.kind, process.pid, process.amount, process.name) for process in node.processes]
    assert seen[-1] == ("cpu", 21900, 0.53, "dockerd")
    assert len(seen) == 5
    last = node.processes[-1]
    assert (last.since_s, last.at_s) == pytest.approx((BOOT_S + 1624.82, BOOT_S + 1627.99))


def test_moments_of_gpus_are_on_the_clock_of_the_node() -> None:
    """The observer's nvidia-smi prints UTC; units are in the heads, and a cut line is left out."""
    node = telemetry("vs001", STATE, GPUS)
    assert node is not None
    assert len(node.gpus) == 8
    first, held, silent = node.gpus[0], node.gpus[2], node.gpus[-1]
    assert first.at_s == pytest.approx(1795419076.12)
    assert (first.index, first.sm_mhz, first.memory_mhz, first.power_w) == (0, 1980, 2619, 690.1)
    assert (first.temperature_c, first.utilisation_pct, first.memory_mib) == (61, 100, 70412)
    assert (first.limits, first.slowed_s) == (("sw_power_cap",), 1.5)
    assert (held.limits, held.sm_mhz, held.energy_j) == (("sw_thermal_slowdown",), 1410, None)
    assert (silent.power_w, silent.temperature_c, silent.utilisation_pct) == (None, None, None)


def test_an_old_driver_says_less() -> None:
    """Names of before driver 535, and neither limits nor counters where it does not know them."""
    old = b"""timestamp, index, clocks.sm [MHz], clocks_throttle_reasons.active, total_energy_consumption [mJ]
2026/11/23 07:31:16.120, 0, 1530, 0x0000000000000008, 5000
2026/11/23 07:31:17.120, 0, 1530, [Not Supported], [N/A]
never, 0, 1530, 0x0, 1
2026/11/23 07:31:18.120, GPU, 1530, 0x0, 1
"""  # noqa: E501 - a head, as it is printed
    node = telemetry("vs001", STATE, old)
    assert node is not None
    first, second = node.gpus
    assert (first.limits, first.energy_j, first.slowed_s) == (("hw_slowdown",), 5.0, None)
    assert (second.limits, second.energy_j, second.sm_mhz) == (None, None, 1530)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"node,1,1795",
        b"node,2,1,1,2,100\n",
        b"node,1,1,1,0,100\n",
        b"node,1,1,1,0.5,100\n",
        b"node,1,x,1,2,100\n",
    ],
)
def test_a_file_without_its_first_line_tells_nothing(content: bytes) -> None:
    """Of an observer that was killed at once, of another version, or of no whole processor."""
    assert telemetry("vs001", content, GPUS) is None


def test_unreadable_lines_are_left_out() -> None:
    """One that is cut, one with words for numbers, one of a kind that is not known."""
    lines = b"host,1,2\nhost" + b",x" * 18 + b"\nhost,1616.00" + b",x" * 17
    lines += b"\nprocess,1,2,cpu,3\nprocess,1,2,tpu,3,4,x\nprocess,1,x,cpu,3,4,x\nelse,1\n"
    node = telemetry("vs001", STATE.splitlines(keepends=True)[0] + lines, b"timestamp\n")
    assert node is not None
    assert (node.hosts, node.processes, node.gpus) == ((), (), ())


def test_bits_have_the_names_of_nvml() -> None:
    """A bit that NVML does not tell is shown as it is."""
    assert limits(0x0) == ()
    assert limits(0x1 | 0x80 | 0x800) == ("gpu_idle", "hw_power_brake_slowdown", "0x800")


def test_the_machine_of_a_node_and_what_it_sees_are_told() -> None:
    """The boot and the namespace of processes; nothing where the observer could not read them."""
    head, rest = STATE.split(b"\n", 1)
    for more, sight in ((b",254950c2,pid:[1]", ("254950c2", "pid:[1]")), (b",,", None)):
        node = telemetry("vs001", head + more + b"\n" + rest, b"")
        assert node is not None
        assert node.sight == sight
    older = telemetry("vs001", STATE, b"")
    assert older is not None
    assert older.sight is None
