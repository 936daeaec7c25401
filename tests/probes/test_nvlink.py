"""NVLinks and their errors, as nvidia-smi prints them."""

from orchestrator.probes import topology
from tests import SAMPLES

FOLDER = SAMPLES / "health"


def test_nvlinks_are_read_from_what_nvidia_smi_printed() -> None:
    """By GPU and link; of another text there are none."""
    broken = topology.nvlinks((FOLDER / "azure_v100_nvlink_inactive.txt").read_text())
    assert broken == {3: (True, True, True, False, True, False)}
    whole = topology.nvlinks((FOLDER / "nccl_tests_a100_nvlink.txt").read_text())
    assert whole == {0: (True,) * 12, 1: (True,) * 12}
    assert topology.nvlinks(" Link 0: 25 GB/s\nNVML: Unable to retrieve NVLink information\n") == {}


def test_errors_are_those_that_links_have_counted() -> None:
    """The recorded machine has a bad link on each of two GPUs; sound links are not listed."""
    bad = topology.nvlink_errors((FOLDER / "scuffed_v100_nvlink_errors.txt").read_text())
    assert bad == {
        (0, 3): {"Replay Errors": 211},
        (2, 0): {"Replay Errors": 2, "CRC Errors": 65535},
    }
    sound = (FOLDER / "mlengineering_h100_nvlink_errors.txt").read_text()
    assert topology.nvlink_errors(sound) == {}


def test_what_is_mended_on_the_wire_is_no_error() -> None:
    """Blackwell's links count that too, with traffic and rates; other texts have no errors."""
    counted = """\
GPU 0: doctored, with names and counts that are told of Blackwell (UUID: none)
\t Link 14: Tx packets: 12345
\t Link 14: Link recovery successful events: 505
\t Link 14: Total link recovery events: 505
\t Link 14: Effective BER: 15e-255
\t Link 14: FEC Errors - 0: 36140749276
\t Link 14: Raw Errors Lane 0: 82
"""
    assert topology.nvlink_errors(counted) == {(0, 14): {"Link recovery successful events": 505}}
    assert topology.nvlink_errors("NVML: Unable to retrieve NVLink information\n") == {}
