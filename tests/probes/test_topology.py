"""The parsers of `nvidia-smi topo -m` and `nvlink`: tables that differ from the recorded ones."""

import re
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.probes import topology
from tests import SAMPLES

# As drivers 5xx print it: tabs, two of them before the GPU NUMA ID, but one in the titles.
TABLE = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tPIX\tSYS\t0-7,16-23\t0\t\tN/A
GPU1\tNV18\t X \tSYS\tPIX\t8-15,24-31\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
# The same node on a driver 4xx: no NUMA columns, the HCAs by name.
OLD_TABLE = """\
\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity
GPU0\t X \tNV2\tPIX\tSYS\t0-7,16-23
GPU1\tNV2\t X \tSYS\tPIX\t8-15,24-31
mlx5_0\tPIX\tSYS\t X \tSYS\t
mlx5_1\tSYS\tPIX\tSYS\t X \t
"""
CPUS = {"GPU0": "0-7,16-23", "GPU1": "8-15,24-31"}


@pytest.mark.parametrize("path", sorted((SAMPLES / "topo").glob("*.txt")), ids=lambda it: it.stem)
def test_a_table_on_a_terminal_says_the_same(path: Path) -> None:
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
    ("old", "new", "cpus", "numas"),
    [
        # A cgroup without CPUs of the GPU's node leaves the cell blank
        ("0-7,16-23", "", None, "0"),
        ("\t\tN/A", "\t0", CPUS["GPU0"], "0"),
        ("NV18", "SOC", CPUS["GPU0"], "0"),
        ("NV18", "NV4", CPUS["GPU0"], "0"),
        ("NV18", "C2C", CPUS["GPU0"], "0"),
    ],
)
def test_a_table_of_another_driver_has_no_problem(
    old: str, new: str, cpus: str | None, numas: str
) -> None:
    fact = topology.parse(TABLE.replace(old, new))
    assert fact.cpu_affinity == {**CPUS, "GPU0": cpus}
    assert fact.numa_affinity == {"GPU0": numas, "GPU1": "1"}
    assert fact.links["GPU0"]["GPU1"] == (new if old == "NV18" else "NV18")
    assert fact.problems == ()


@pytest.mark.parametrize(
    "becomes", ["0-7,16-230\t\tN/A", "0-7,16-230", "0-7,16-23", "7-0\t0x0\t\tN/A"]
)
def test_affinity_that_may_be_glued_is_null(becomes: str) -> None:
    """The row keeps its links."""
    fact = topology.parse(TABLE.replace("0-7,16-23\t0\t\tN/A", becomes))
    assert fact.links == topology.parse(TABLE).links
    assert fact.cpu_affinity == {**CPUS, "GPU0": None}
    assert fact.numa_affinity == {"GPU0": None, "GPU1": "1"}
    (problem,) = fact.problems
    assert problem.code == "UNREADABLE"
    assert problem.message.startswith("nvidia-smi topo -m, line 2: GPU0 has affinities ")


def test_a_table_without_affinity_has_none() -> None:
    text = re.sub(r"\t(CPU Affinity|0-7,16-23|8-15,24-31)", "", OLD_TABLE)
    fact = topology.parse(text)
    assert fact.links == topology.parse(OLD_TABLE).links
    assert (fact.cpu_affinity, fact.numa_affinity) == ({}, {})


@pytest.mark.parametrize(
    ("found", "becomes", "hcas"),
    [
        ("  NIC1: mlx5_1\n", "", ("mlx5_0", "NIC1")),
        ("NIC1: mlx5_1\n", "NIC1: mlx5_ib\n", ("mlx5_0", "mlx5_ib")),
        ("NIC1: mlx5_1\n", "NIC1: mlx5", ("mlx5_0", "mlx5")),
        ("NIC1: mlx5_1\n", "NIC1: mlx5_0\n", ("?0", "?1")),
    ],
)
def test_an_adapter_without_a_whole_name_is_a_problem(
    found: str, becomes: str, hcas: tuple[str, ...]
) -> None:
    """The driver cuts long names, so a name without a number may be that of another adapter."""
    fact = topology.parse(TABLE.replace(found, becomes))
    assert (fact.hcas, fact.digest) == (hcas, None)
    (problem,) = fact.problems
    assert problem.code == "UNREADABLE"
    assert "line 1: adapters without a whole name: " in problem.message


@pytest.mark.parametrize(
    ("found", "becomes", "row", "line"),
    [
        ("GPU1\tNV2\t X \tSYS", "GPU1\tNV2\t X ", "GPU1", 3),
        ("GPU1\tNV2\t X ", "GPU1\tNV2\tNV2\t X ", "GPU1", 3),
        ("GPU1\tNV2\t X \tSYS", "GPU1\t X \tNV2\tSYS", "GPU1", 3),
        ("GPU1\tNV2\t X \tSYS", "GPU1\tNV2\t X \t X ", "GPU1", 3),
        ("GPU1\tNV2\t X ", "GPU1\tNV2\tPIX", "GPU1", 3),
        ("GPU1\tNV2\t X \tSYS\tPIX\t8", "GPU1\tNV2\t X \tSYS\tPIX8", "GPU1", 3),
        ("GPU1\tNV2\t X \tSYS", "GPU1\tXGMI\t X \tSYS", "GPU1", 3),
        ("mlx5_1\tSYS", "\tSYS", "mlx5_1", 5),
        ("mlx5_1\tSYS", "mlx5_9\tSYS", "mlx5_1", 5),
        ("mlx5_1\tSYS\tPIX\tSYS\t X \t\n", "", "mlx5_1", 5),
        ("PIX\tSYS\t X \t\n", "PIX\tSYS\t X ", "mlx5_1", 5),
    ],
)
def test_a_row_that_does_not_fit_is_not_used(found: str, becomes: str, row: str, line: int) -> None:
    """A row may be short, long, shifted, glued, cut or absent."""
    fact = topology.parse(OLD_TABLE.replace(found, becomes))
    assert list(fact.links) == [it for it in ("GPU0", "GPU1", "mlx5_0", "mlx5_1") if it != row]
    assert fact.cpu_affinity["GPU1"] == (None if row == "GPU1" else "8-15,24-31")
    (problem,) = fact.problems
    assert problem.code == "UNREADABLE"
    assert problem.message == (
        f"nvidia-smi topo -m, line {line}: {row} has not X for itself"
        " and a link for each of 4 devices; not used"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bash: nvidia-smi: command not found\n",
        "GPU0 and GPU1 are close\nGPU 0: Tesla V100 (UUID: GPU-1)\n",
        TABLE.replace("NIC0\tNIC1\tCPU", "NIC0NIC1\tCPU"),
        TABLE.splitlines()[0] + "\n",
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
\t Link 14: Tx packets: 12345
\t Link 14: Link recovery successful events: 505
\t Link 14: Total link recovery events: 505
\t Link 14: Effective BER: 15e-255
\t Link 14: FEC Errors - 0: 36140749276
\t Link 14: Raw Errors Lane 0: 82
"""
    assert topology.nvlink_errors(counted) == {(0, 14): {"Link recovery successful events": 505}}


def test_a_node_without_nvlinks_has_none() -> None:
    text = " Link 0: 25 GB/s\nNVML: Unable to retrieve NVLink information\n"
    assert (topology.nvlinks(text), topology.nvlink_errors(text)) == ({}, {})
