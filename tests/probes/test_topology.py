"""The topology parser: what it makes of real `nvidia-smi topo -m` outputs and of broken ones."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pytest

import tests
from orchestrator import errors
from orchestrator.model.facts import Topology
from orchestrator.model.problem import Problem
from orchestrator.probes import topology
from tests.probes.topo import OLD_TABLE, TABLE, by_gpu, codes

SAMPLES = tests.SAMPLES / "topo"


@dataclass(frozen=True)
class Expected:
    """What a person reads in a sample; ``rows`` are copied from its lines without the X."""

    gpus: int
    hcas: str
    rows: Mapping[str, str]
    cpu: str = ""
    numa: str = ""
    problems: tuple[str, ...] = ()


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
        problems=("AFFINITY",) * 4,
    ),
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
        problems=("HCA-NAME", "HCA-NAME"),
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
    assert tuple(codes(fact)) == expected.problems


@pytest.mark.parametrize("name", sorted(EXPECTED))
@pytest.mark.parametrize(
    ("found", "becomes"),
    [
        (r"[ \t]*\t[ \t]*", "  "),
        (r"[ \t]+", " "),
        (r"\n", "\r\n"),
        (r"\A", "root@vs002:~# nvidia-smi topo -m\n```\n"),
    ],
)
def test_a_paste_says_the_same(name: str, found: str, becomes: str) -> None:
    """Tabs as blanks, prompts and fences change no value."""
    text = (SAMPLES / name).read_text()
    assert topology.parse(re.sub(found, becomes, text)) == topology.parse(text)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_tabs_as_eight_blanks_say_the_same(name: str) -> None:
    """What a terminal shows reads as what the driver wrote."""
    text = (SAMPLES / name).read_text()
    assert topology.parse(text.expandtabs(8)) == topology.parse(text)


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
    """`inspect topology` prints these keys in this order, as JSON."""
    text = OLD_TABLE.replace("8-15,24-31", "N/A")
    assert json.dumps(asdict(topology.parse(text))) == json.dumps(
        {
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
        }
    )
    assert topology.parse(TABLE.replace("NV18\t X", "NV17\t X")).problems == (
        Problem("ASYMMETRIC", "GPU0 to GPU1 is NV18, but back it is NV17"),
    )


def test_the_probe_asks_for_the_matrix() -> None:
    """The probe runs the command whose output the parser reads."""
    assert topology.PROBE.argv == ("nvidia-smi", "topo", "-m")
    assert topology.PROBE.parse(TABLE) == topology.parse(TABLE)


def test_a_blank_cpu_list_under_tabs_does_not_take_the_numa_node() -> None:
    """Under a cgroup without CPUs of the GPU's node, CPU affinity is null and NUMA stays."""
    fact = topology.parse(TABLE.replace("0-7,16-23", ""))
    assert fact.cpu_affinity == {"GPU0": None, "GPU1": "8-15,24-31"}
    assert fact.numa_affinity == {"GPU0": "0", "GPU1": "1"}
    assert codes(fact) == []


def test_a_blank_cpu_list_under_blanks_leaves_both_unknown() -> None:
    """Where the empty cell cannot be seen, the NUMA node cannot be told from a CPU list."""
    fact = topology.parse(TABLE.replace("0-7,16-23", "").expandtabs(8))
    assert fact.cpu_affinity == {"GPU0": None, "GPU1": "8-15,24-31"}
    assert fact.numa_affinity == {"GPU0": None, "GPU1": "1"}
    assert codes(fact) == ["AFFINITY"]


@pytest.mark.parametrize(
    ("cells", "becomes"),
    [
        ("0-7,16-23\t0\t\tN/A", "0-7,16-230\t\tN/A"),
        ("0-7,16-23\t0\t\tN/A", "0-7,16-230"),
        ("0-7,16-23\t0\t\tN/A", "0-7,16-23"),
        ("0-7,16-23\t0\t\tN/A", "0-7,16-23\t0\t3\tN/A"),
        ("0-7,16-23\t0\t\tN/A", "0-7,16-23\t0\tN/A\t0"),
        ("0-7,16-23\t0\t\tN/A", "7-0\t0x0\t\tN/A"),
    ],
)
def test_affinity_that_may_be_shifted_or_glued_is_null(cells: str, becomes: str) -> None:
    """A row whose affinity words cannot be told apart keeps its links and loses its affinity."""
    fact = topology.parse(TABLE.replace(cells, becomes))
    assert fact.links == topology.parse(TABLE).links
    assert fact.cpu_affinity == {"GPU0": None, "GPU1": "8-15,24-31"}
    assert fact.numa_affinity == {"GPU0": None, "GPU1": "1"}
    assert codes(fact) == ["AFFINITY"]


def test_one_tab_before_the_gpu_numa_id_is_read_as_well() -> None:
    """A driver that prints as many tabs in the rows as in the titles gives the same facts."""
    fixed = TABLE.replace("\t\tN/A", "\t0")
    assert topology.parse(fixed) == topology.parse(TABLE)


def test_swapped_affinity_titles_swap_the_values() -> None:
    """Columns go by their titles."""
    text = OLD_TABLE.replace("CPU Affinity", "NUMA Affinity\tCPU Affinity")
    text = text.replace("0-7,16-23", "0\t0-7,16-23").replace("8-15,24-31", "1\t8-15,24-31")
    fact = topology.parse(text)
    assert fact.cpu_affinity == {"GPU0": "0-7,16-23", "GPU1": "8-15,24-31"}
    assert fact.numa_affinity == {"GPU0": "0", "GPU1": "1"}
    assert codes(fact) == []


@pytest.mark.parametrize("word", ["SOC", "NV4", "C2C"])
def test_a_link_of_another_generation_is_kept_as_printed(word: str) -> None:
    """Old drivers call SYS SOC; Grace has a link of its own."""
    fact = topology.parse(TABLE.replace("NV18", word))
    assert fact.links["GPU0"]["GPU1"] == fact.links["GPU1"]["GPU0"] == word
    assert codes(fact) == []


def test_what_peers_can_do_is_no_wiring() -> None:
    """The recorded table of `topo -p2p` has words that tell nothing of links."""
    fact = topology.parse((tests.SAMPLES / "topo-p2p" / "club3090_p2p.txt").read_text())
    assert fact.links == {"GPU0": {"GPU1": "GNS"}, "GPU1": {"GPU0": "GNS"}}
    (problem,) = fact.problems
    assert problem.code == "UNKNOWN-LINK"
    assert problem.message == (
        "GNS: no kind of link between devices; this is `nvidia-smi topo -p2p`:"
        " record `nvidia-smi topo -m`"
    )


@pytest.mark.parametrize("word", ["OK", "CNS", "TNS", "NS", "DR", "U"])
def test_each_word_about_peers_is_told(word: str) -> None:
    """Also beside real links."""
    (problem,) = topology.parse(TABLE.replace("NV18", word)).problems
    assert problem.code == "UNKNOWN-LINK"
    assert problem.message.startswith(f"{word}: ")
    assert "record `nvidia-smi topo -m`" in problem.message


@pytest.mark.parametrize("word", ["HT", "XGMI", "MX"])
def test_a_link_of_another_maker_is_unknown(word: str) -> None:
    """It is kept as printed and compared with nothing."""
    fact = topology.parse(TABLE.replace("NV18", word))
    assert fact.links["GPU0"]["GPU1"] == word
    assert fact.problems == (Problem("UNKNOWN-LINK", f"{word}: no kind of link between devices"),)


def test_a_table_without_affinity_has_none() -> None:
    """Without the columns, both affinities are empty."""
    text = re.sub(r"\t(CPU Affinity|0-7,16-23|8-15,24-31)", "", OLD_TABLE)
    fact = topology.parse(text)
    assert fact.links == topology.parse(OLD_TABLE).links
    assert (fact.cpu_affinity, fact.numa_affinity) == ({}, {})


def test_a_single_gpu_is_a_table() -> None:
    """A table of one GPU has a row without links."""
    fact = topology.parse("\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n")
    assert fact == Topology(("GPU0",), (), {"GPU0": {}}, {"GPU0": "0-7"}, {}, ())


def test_hcas_without_names_are_called_by_their_place() -> None:
    """Blank titles and row names give ?0 and ?1, by the X in their row."""
    text = OLD_TABLE.replace("mlx5_0", "").replace("mlx5_1", "")
    fact, named = topology.parse(text), topology.parse(OLD_TABLE)
    assert fact.hcas == ("?0", "?1")
    assert fact.links["?1"] == {"GPU0": "SYS", "GPU1": "PIX", "?0": "SYS"}
    assert fact.cpu_affinity == named.cpu_affinity
    assert codes(fact) == ["HCA-NAME"]


def test_an_hca_before_a_gpu_keeps_its_column() -> None:
    """Links go by the order of the titles, whatever it is."""
    text = "\tGPU0\tmlx5_0\tGPU1\nGPU0\tX\tPIX\tNV1\nmlx5_0\tPIX\tX\tSYS\nGPU1\tNV1\tSYS\tX\n"
    fact = topology.parse(text)
    assert fact.links["GPU1"] == {"GPU0": "NV1", "mlx5_0": "SYS"}
    assert (fact.gpus, fact.hcas, codes(fact)) == (("GPU0", "GPU1"), ("mlx5_0",), [])
