"""The files of an observer: a recording, an old driver, and lines that are damaged."""

from pprint import pformat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from orchestrator.model.telemetry import NodeTelemetry
from orchestrator.telemetry.read import limits, telemetry
from tests import SAMPLES

STATE = (SAMPLES / "telemetry/loaded_r0.state").read_bytes()
GPUS = (SAMPLES / "telemetry/throttled_r0.gpus").read_bytes()
HEAD, REST = STATE.split(b"\n", 1)
BOOT_S = 1795419075.830274636 - 1615.13


def read(state: bytes = STATE, gpus: bytes = b"") -> NodeTelemetry:
    node = telemetry("vs001", state, gpus)
    assert node is not None
    return node


def test_a_recording_is_read_as_a_person_reads_it(snapshot: SnapshotAssertion) -> None:
    """Processor time by the machine's own ticks, GPUs by the node's clock in UTC."""
    node = read(STATE, GPUS)
    first, last = node.hosts[0], node.processes[-1]
    assert first.at_s == pytest.approx(BOOT_S + 1615.13)
    assert first.busy_s == pytest.approx(1272.77 + 131.45 + 289.03 + 7.04)
    assert first.all_s == pytest.approx(first.busy_s + 1504.73 + 13.11 + 2.75)
    assert (last.since_s, last.at_s) == pytest.approx((BOOT_S + 1624.82, BOOT_S + 1627.99))
    assert (node.hosts[-1].task_s, node.hosts[1].task_s) == (0.22, None)
    assert pformat(node, width=110, compact=True) == snapshot


def test_an_old_driver_reports_less() -> None:
    """Names of before driver 535, and neither limits nor counters where it lacks them."""
    old = b"""timestamp, index, clocks.sm [MHz], clocks_throttle_reasons.active, total_energy_consumption [mJ]
2026/11/23 07:31:16.120, 0, 1530, 0x0000000000000008, 5000
2026/11/23 07:31:17.120, 0, 1530, [Not Supported], [N/A]
never, 0, 1530, 0x0, 1
2026/11/23 07:31:18.120, GPU, 1530, 0x0, 1
"""  # noqa: E501 - a head, as it is printed
    first, second = read(STATE, old).gpus
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
def test_a_file_without_its_first_line_gives_nothing(content: bytes) -> None:
    """An observer was killed at once, or is of another version."""
    assert telemetry("vs001", content, GPUS) is None


@given(st.integers(len(HEAD) + 1, len(STATE)), st.integers(0, len(GPUS)))
def test_an_observer_that_was_killed_leaves_whole_lines(state: int, gpus: int) -> None:
    """A line that is cut short is left out, and no other."""
    node, whole = read(STATE[:state], GPUS[:gpus]), read(STATE, GPUS)
    lines = STATE[:state].split(b"\n")[:-1]
    assert len(node.hosts) == sum(line.startswith(b"host,") for line in lines)
    assert node.hosts == whole.hosts[: len(node.hosts)]
    assert node.processes == whole.processes[: len(node.processes)]
    assert node.gpus == whole.gpus[: len(node.gpus)]
    assert len(node.gpus) == min(8, max(0, GPUS[:gpus].count(b"\n") - 1))  # the ninth was cut


def test_lines_without_their_numbers_are_left_out() -> None:
    """One is short, one has words for numbers, one is of a kind that is not known."""
    lines = b"host,1,2\nhost" + b",x" * 18 + b"\nhost,1616.00" + b",x" * 17
    lines += b"\nprocess,1,2,cpu,3\nprocess,1,2,tpu,3,4,x\nprocess,1,x,cpu,3,4,x\nelse,1\n"
    node = read(HEAD + b"\n" + lines, b"timestamp\n")
    assert (node.hosts, node.processes, node.gpus) == ((), (), ())


def test_bits_have_the_names_of_nvml() -> None:
    """An unknown bit is shown as it is."""
    assert limits(0x0) == ()
    assert limits(0x1 | 0x80 | 0x800) == ("gpu_idle", "hw_power_brake_slowdown", "0x800")


@pytest.mark.parametrize(
    ("more", "sight"),
    [(b"", None), (b",254950c2,pid:[1]", ("254950c2", "pid:[1]")), (b",,", None)],
)
def test_a_node_reports_its_boot_and_which_processes_it_sees(
    more: bytes, sight: tuple[str, str] | None
) -> None:
    assert read(HEAD + more + b"\n" + REST).sight == sight
