"""The parsers of `nvidia-smi topo -m` and `nvlink`: tables that differ from the recorded ones."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.probes import topology
from tests import SAMPLES
from tests.probes.answers import OLD_TABLE


@pytest.mark.parametrize("path", sorted((SAMPLES / "topo").glob("*.txt")), ids=lambda it: it.stem)
def test_a_table_on_a_terminal_gives_the_same_facts(path: Path) -> None:
    """Tabs as blanks, other line ends and a prompt change no value but the numbers of lines."""
    text = path.read_text()
    whole = topology.parse(text)
    assert topology.parse(text.expandtabs(8)) == whole
    assert topology.parse(text.replace("\n", "\r\n")) == whole
    assert topology.parse(f"root@vs002:~# nvidia-smi topo -m\n{text}").links == whole.links


def test_a_digest_stands_for_names_and_links() -> None:
    """Sites keep digests, so the digest of a wiring never changes between versions."""
    fact = topology.parse(OLD_TABLE)
    assert fact.digest == "e5f492a0b08b718339c63fc9e4401de43955a5c3353c4c0592faf87d344ab9c8"
    assert topology.parse(OLD_TABLE.replace("0-7,", "0-3,")).digest == fact.digest
    assert topology.parse(OLD_TABLE.replace("NV2", "NV4")).digest != fact.digest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bash: nvidia-smi: command not found\n",
        "GPU0 and GPU1 are close\nGPU 0: Tesla V100 (UUID: GPU-1)\n",
        "\tGPU0\tGPU1\nGPU0\t0\t40\nGPU1\t40\t0\n",
        OLD_TABLE.replace("\t X ", "\t"),
        (SAMPLES / "topo-p2p" / "club3090_p2p.txt").read_text(),
    ],
)
def test_a_text_that_is_no_table_of_wiring_is_refused(text: str) -> None:
    """Such as what peers can do, or the distances that another maker's tool prints."""
    with pytest.raises(errors.LogError) as caught:
        topology.parse(text)
    assert caught.value.code == "UNREADABLE"
    assert "record it on the node itself with `nvidia-smi topo -m > FILE`" in caught.value.fix


def test_what_is_mended_on_the_wire_is_no_error() -> None:
    """Blackwell's links count forward error correction too, with traffic and rates."""
    counted = """\
GPU 0: doctored, with names and counts that are told of Blackwell (UUID: none)
\t Link 13: Replay Errors: 1
\t Link 14: Tx packets: 12345
\t Link 14: Link recovery successful events: 505
\t Link 14: Total link recovery events: 505
\t Link 14: Effective BER: 15e-255
\t Link 14: FEC Errors - 0: 36140749276
\t Link 14: Raw Errors Lane 0: 82
"""
    assert topology.nvlink_errors(counted) == {
        (0, 13): {"Replay Errors": 1},
        (0, 14): {"Link recovery successful events": 505},
    }


def test_a_node_without_nvlinks_has_none() -> None:
    text = " Link 0: 25 GB/s\nNVML: Unable to retrieve NVLink information\n"
    assert (topology.nvlinks(text), topology.nvlink_errors(text)) == ({}, {})
