"""The topology parser: what it makes of real `nvidia-smi topo -m` outputs and of broken ones."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pytest

import tests
from orchestrator import errors
from orchestrator.probes import topology
from tests.probes.topo import OLD_TABLE, TABLE

SAMPLES = tests.SAMPLES / "topo"


@dataclass(frozen=True)
class Expected:
    """What a person reads in a sample; ``rows`` are copied from its lines without the X."""

    gpus: int
    hcas: str
    rows: Mapping[str, str]
    cpu: str = ""
    numa: str = ""
    problems: int = 0


A100_HCAS = " ".join(f"mlx5_{number}" for number in range(10))
NDV4_HCAS = "mlx5_an ?1 ?2 ?3 ?4 ?5 ?6 ?7 ?8"
EXPECTED = {
    "a800_8gpu_2nic_glued_affinity.txt": Expected(
        gpus=8,
        hcas="mlx5_0 mlx5_1",
        rows={
            "GPU0": "NV8 NV8 NV8 NV8 NV8 NV8 NV8 PXB SYS",
            "GPU6": "NV8 NV8 NV8 NV8 NV8 NV8 NV8 SYS NODE",
            "mlx5_1": "SYS SYS SYS SYS PXB PXB NODE NODE SYS",
        },
        cpu="- - - - 32-63,96-127 32-63,96-127 32-63,96-127 32-63,96-127",
        numa="- - - - 1 1 1 1",
        problems=4,
    ),
    "h200_1gpu_virtual.txt": Expected(gpus=1, hcas="", rows={"GPU0": ""}, cpu="0-15", numa="0"),
    "litgpt_a100_8gpu_10nic_numa_id.txt": Expected(
        gpus=8,
        hcas=A100_HCAS,
        rows={
            "GPU0": "NV12 NV12 NV12 NV12 NV12 NV12 NV12 SYS SYS PXB PXB SYS SYS SYS SYS SYS SYS",
            "mlx5_3": "PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS PXB SYS SYS SYS SYS SYS SYS",
            "mlx5_9": "SYS SYS SYS SYS PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS SYS SYS PXB",
        },
        cpu=" ".join(["0-63,128-191"] * 4 + ["64-127,192-254"] * 4),
        numa="0 0 0 0 1 1 1 1",
    ),
    "p100_2gpu_1mlx5_phb_oldlegend.txt": Expected(
        gpus=2,
        hcas="mlx5_0",
        rows={"GPU0": "NV1 PHB", "GPU1": "NV1 PHB", "mlx5_0": "PHB PHB"},
        cpu="0-7 0-7",
    ),
    "power9_v100_4gpu_nv3_4mlx5.txt": Expected(
        gpus=4,
        hcas="mlx5_0 mlx5_1 mlx5_2 mlx5_3",
        rows={
            "GPU1": "NV3 SYS SYS NODE NODE SYS SYS",
            "mlx5_2": "SYS SYS NODE NODE SYS SYS PIX",
        },
        cpu="0-63 0-63 64-127 64-127",
    ),
    "rtx_8gpu_no_nic_phb_node.txt": Expected(
        gpus=8,
        hcas="",
        rows={
            "GPU1": "NODE PHB NODE NODE NODE SYS SYS",
            "GPU7": "SYS SYS SYS SYS SYS SYS PHB",
        },
        cpu=" ".join(["0-15,32-47"] * 6 + ["16-31,48-63"] * 2),
        numa="0 0 0 0 0 0 1 1",
    ),
    "stas00_network_1.txt": Expected(
        gpus=2, hcas="", rows={"GPU0": "PHB", "GPU1": "PHB"}, cpu="0-11 0-11", numa="- -"
    ),
    "superbench_ndv4_a100_9nics.txt": Expected(
        gpus=8,
        hcas=NDV4_HCAS,
        rows={
            "GPU0": "NV12 NV12 NV12 NV12 NV12 NV12 NV12 SYS NODE SYS SYS SYS NODE SYS SYS SYS",
            "mlx5_an": "SYS SYS NODE NODE SYS SYS SYS SYS SYS NODE SYS SYS SYS NODE SYS SYS",
            "?8": "SYS SYS SYS SYS SYS SYS NODE NODE SYS SYS SYS SYS NODE SYS SYS SYS",
        },
        cpu="24-47 24-47 0-23 0-23 72-95 72-95 48-71 48-71",
        numa="1 1 0 0 3 3 2 2",
        problems=1,
    ),
    "superbench_v100pcie_2gpu.txt": Expected(
        gpus=2,
        hcas="mlx5_0 mlx5_1",
        rows={"GPU0": "PIX SYS SYS", "mlx5_1": "SYS SYS PIX"},
        cpu="0-11,24-35 0-11,24-35",
    ),
    "sysuest_v100_4gpu_4mlx5_node.txt": Expected(
        gpus=4,
        hcas="mlx5_0 mlx5_1 mlx5_2 mlx5_3",
        rows={
            "GPU0": "NV2 NV1 NODE PIX PIX NODE NODE",
            "mlx5_3": "NODE NODE PIX PIX NODE NODE PIX",
        },
        cpu="14-27 14-27 14-27 14-27",
    ),
    "ucxpy_dgx1v_8gpu_4mlx5.txt": Expected(
        gpus=8,
        hcas="mlx5_0 mlx5_1 mlx5_2 mlx5_3",
        rows={
            "GPU3": "NV2 NV1 NV2 SYS SYS SYS NV1 PHB PIX SYS SYS",
            "mlx5_2": "SYS SYS SYS SYS PIX PIX PHB PHB SYS SYS PHB",
        },
        cpu=" ".join(["0-19,40-59"] * 4 + ["20-39,60-79"] * 4),
    ),
}


def by_gpu(cells: str) -> dict[str, str | None]:
    """Affinity by GPU from words in order, ``-`` where it is unknown."""
    return {
        f"GPU{number}": None if word == "-" else word for number, word in enumerate(cells.split())
    }


def test_every_sample_has_an_expectation() -> None:
    """A sample that is added without its values fails here."""
    assert {path.name for path in SAMPLES.glob("*.txt")} == EXPECTED.keys()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_sample_says_what_is_printed(name: str) -> None:
    """Every sample gives the names, the links and the affinities that a person reads in it."""
    fact, expected = topology.parse((SAMPLES / name).read_text()), EXPECTED[name]
    assert fact.gpus == tuple(f"GPU{number}" for number in range(expected.gpus))
    assert fact.hcas == tuple(expected.hcas.split())
    devices = [*fact.gpus, *fact.hcas]
    assert list(fact.links) == devices
    for row, words in expected.rows.items():
        others = [device for device in devices if device != row]
        assert fact.links[row] == dict(zip(others, words.split(), strict=True))
    assert fact.cpu_affinity == by_gpu(expected.cpu)
    assert fact.numa_affinity == by_gpu(expected.numa)
    assert [problem.code for problem in fact.problems] == ["UNREADABLE"] * expected.problems


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_table_on_a_terminal_says_the_same(name: str) -> None:
    """Tabs as blanks, other line ends and a prompt change no value but the numbers of lines."""
    text = (SAMPLES / name).read_text()
    whole = topology.parse(text)
    assert topology.parse(text.expandtabs(8)) == whole
    assert topology.parse(text.replace("\n", "\r\n")) == whole
    assert topology.parse(f"root@vs002:~# nvidia-smi topo -m\n{text}").links == whole.links


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_cut_sample_never_gives_another_value(name: str) -> None:
    """Wherever a text ends, a link or an affinity is right, or not there, with a problem."""
    text = (SAMPLES / name).read_text()
    whole = topology.parse(text)
    real = dict(zip([f"NIC{at}" for at in range(10)], whole.hcas, strict=False))
    for end in range(0, len(text), 3):
        try:
            fact = topology.parse(text[:end])
        except errors.LogError:
            continue
        assert fact == whole or fact.problems
        for name_of_row, row in fact.links.items():
            full = whole.links[real.get(name_of_row, name_of_row)]
            assert {real.get(at, at): word for at, word in row.items()} == full
        for gpu in fact.gpus:
            assert fact.cpu_affinity.get(gpu) in (None, whole.cpu_affinity.get(gpu))
            assert fact.numa_affinity.get(gpu) in (None, whole.numa_affinity.get(gpu))


def test_the_document_has_the_promised_keys() -> None:
    """`inspect topology` prints these keys, as JSON."""
    fact = topology.parse(OLD_TABLE.replace("8-15,24-31", "N/A"))
    assert json.loads(json.dumps(asdict(fact))) == {
        "gpus": ["GPU0", "GPU1"],
        "hcas": ["mlx5_0", "mlx5_1"],
        "links": {
            "GPU0": {"GPU1": "NV2", "mlx5_0": "PIX", "mlx5_1": "SYS"},
            "GPU1": {"GPU0": "NV2", "mlx5_0": "SYS", "mlx5_1": "PIX"},
            "mlx5_0": {"GPU0": "PIX", "GPU1": "SYS", "mlx5_1": "SYS"},
            "mlx5_1": {"GPU0": "SYS", "GPU1": "PIX", "mlx5_0": "SYS"},
        },
        "cpu_affinity": {"GPU0": "0-7,16-23", "GPU1": None},
        "numa_affinity": {},
        "problems": [],
        "digest": "e5f492a0b08b718339c63fc9e4401de43955a5c3353c4c0592faf87d344ab9c8",
    }


def test_a_blank_cpu_list_does_not_take_the_numa_node() -> None:
    """Under a cgroup without CPUs of the GPU's node, CPU affinity is null and NUMA stays."""
    fact = topology.parse(TABLE.replace("0-7,16-23", ""))
    assert fact.cpu_affinity == {"GPU0": None, "GPU1": "8-15,24-31"}
    assert fact.numa_affinity == {"GPU0": "0", "GPU1": "1"}
    assert fact.problems == ()


@pytest.mark.parametrize(
    "becomes", ["0-7,16-230\t\tN/A", "0-7,16-230", "0-7,16-23", "7-0\t0x0\t\tN/A"]
)
def test_affinity_that_may_be_glued_is_null(becomes: str) -> None:
    """A row whose affinity words cannot be told apart keeps its links and loses its affinity."""
    fact = topology.parse(TABLE.replace("0-7,16-23\t0\t\tN/A", becomes))
    assert fact.links == topology.parse(TABLE).links
    assert fact.cpu_affinity == {"GPU0": None, "GPU1": "8-15,24-31"}
    assert fact.numa_affinity == {"GPU0": None, "GPU1": "1"}
    (problem,) = fact.problems
    assert problem.code == "UNREADABLE"
    assert problem.message.startswith("nvidia-smi topo -m, line 2: GPU0 has affinities ")


def test_one_tab_before_the_gpu_numa_id_is_read_as_well() -> None:
    """A driver that prints as many tabs in the rows as in the titles gives the same facts."""
    assert topology.parse(TABLE.replace("\t\tN/A", "\t0")) == topology.parse(TABLE)


@pytest.mark.parametrize("word", ["SOC", "NV4", "C2C"])
def test_a_link_of_another_generation_is_kept_as_printed(word: str) -> None:
    """Old drivers call SYS SOC; Grace has a link of its own."""
    fact = topology.parse(TABLE.replace("NV18", word))
    assert fact.links["GPU0"]["GPU1"] == fact.links["GPU1"]["GPU0"] == word
    assert fact.problems == ()


def test_a_table_without_affinity_has_none() -> None:
    """Without the columns, both affinities are empty."""
    text = re.sub(r"\t(CPU Affinity|0-7,16-23|8-15,24-31)", "", OLD_TABLE)
    fact = topology.parse(text)
    assert fact.links == topology.parse(OLD_TABLE).links
    assert (fact.cpu_affinity, fact.numa_affinity) == ({}, {})


def test_a_single_gpu_is_a_table() -> None:
    """A table of one GPU has a row without links."""
    fact = topology.parse("\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n")
    assert (fact.links, fact.cpu_affinity) == ({"GPU0": {}}, {"GPU0": "0-7"})
    assert (fact.gpus, fact.hcas, fact.problems) == (("GPU0",), (), ())


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
    """The driver cuts long names, so a name that has no number may be that of another."""
    fact = topology.parse(TABLE.replace(found, becomes))
    assert fact.hcas == hcas
    (problem,) = fact.problems
    said = "nvidia-smi topo -m, line 1: adapters without a whole name: "
    assert (problem.code, problem.message[: len(said)]) == ("UNREADABLE", said)
    assert fact.digest is None


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
    """Links of a row that is short, long, shifted, glued, cut or absent are not given."""
    fact = topology.parse(OLD_TABLE.replace(found, becomes))
    assert list(fact.links) == [
        name for name in ("GPU0", "GPU1", "mlx5_0", "mlx5_1") if name != row
    ]
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
        (tests.SAMPLES / "topo-p2p" / "club3090_p2p.txt").read_text(),
    ],
)
def test_a_text_that_is_no_table_of_wiring_is_refused(text: str) -> None:
    """As what peers can do, or the distances that another maker's tool prints."""
    with pytest.raises(errors.LogError) as caught:
        topology.parse(text)
    assert caught.value.code == "UNREADABLE"
    assert "record it on the node itself with `nvidia-smi topo -m > FILE`" in caught.value.fix
