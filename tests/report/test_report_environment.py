"""What report.md says of the nodes: facts that are alike once, and how devices are connected."""

from orchestrator import report
from orchestrator.report import node_facts
from tests.reported import SEED_AMP, results, section, sweep, tables


def test_nodes_that_are_alike_are_said_once() -> None:
    """A column for all of them, hostnames folded; another one for a node that differs."""
    alike = {"GPUs": "Tesla V100-SXM2-16GB x 8", "memory": "386000 MiB"}
    nodes = {f"vs00{n}": {"hostname": f"VS00{n}", **alike} for n in range(1, 5)}
    text = section(report.markdown(sweep(results(SEED_AMP), environment=nodes)), "Environment")
    assert tables(text)[0] == [
        ["", "vs\\[001-004\\]"],
        ["hostname", "VS\\[001-004\\]"],
        ["GPUs", "Tesla V100-SXM2-16GB x 8"],
        ["memory", "377 GiB"],
    ]
    nodes["vs003"] |= {"memory": "257000 MiB"}
    text = section(report.markdown(sweep(results(SEED_AMP), environment=nodes)), "Environment")
    assert tables(text)[0] == [
        ["", "vs\\[001-002,004\\]", "vs003"],
        ["hostname", "VS\\[001-002,004\\]", "VS003"],
        ["GPUs", *["Tesla V100-SXM2-16GB x 8"] * 2],
        ["memory", "377 GiB", "251 GiB"],
    ]


def test_topologies_that_are_alike_are_shown_once() -> None:
    """Each with the nodes that have it."""
    near = node_facts.matrix({"GPU0": {"GPU1": "NV2"}, "GPU1": {"GPU0": "NV2"}}, {})
    far = node_facts.matrix({"GPU0": {"GPU1": "SYS"}, "GPU1": {"GPU0": "SYS"}}, {})
    wired = {"vs001": near, "vs002": far, "vs003": near, "vs004": ""}
    text = section(report.markdown(sweep(results(SEED_AMP), topologies=wired)), "Environment")
    one, other = text.split("`nvidia-smi topo -m`")[1:]
    assert one.startswith(
        " on vs\\[001,003\\]:\n\n```\n        GPU0    GPU1\nGPU0     X      NV2\n"
    )
    assert "SYS" not in one
    assert other.startswith(" on vs002:")
    assert "vs004" not in text


def test_topology_with_long_names_and_gaps_stays_a_table() -> None:
    """A name of ten letters widens all columns; a row that could not be read is a question mark."""
    links = {"GPU0": {"mlx5_gdr_0": "PIX"}, "mlx5_gdr_0": {"GPU0": "PIX", "GPU1": "SYS"}}
    assert node_facts.matrix(links, {"GPU0": None}).splitlines() == [
        "            GPU0        mlx5_gdr_0  GPU1        CPU Affinity",
        "GPU0         X          PIX         ?",
        "mlx5_gdr_0  PIX          X          SYS",
    ]
    assert node_facts.matrix({}, {}) == ""
