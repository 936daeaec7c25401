"""What reports say of nodes: facts by their names, and how devices are connected."""

from dataclasses import replace

from orchestrator.model.site import GpuSummary, HcaPort, NodeFacts, Site, Topology
from orchestrator.report import node_facts
from tests.checks import facts

# The nodes of the documents, as far as they say it.
HOST = replace(facts.HOST, hostname="VS002", memory_mib=393216)
V100 = GpuSummary("440.33.01", "10.2", ("Tesla V100-SXM2-16GB",) * 8)
HCA = HcaPort("mlx5_0", 1, "MT4115", "12.27.1016", "Active", 100, "InfiniBand")
WIRES = Topology({"GPU0": {"GPU1": "NV1"}, "GPU1": {"GPU0": "NV1"}}, "d")
NODE = NodeFacts(HOST, gpu=V100, topology=WIRES, infiniband=(HCA,), ofed="4.9-0.1.7.0")


def site(**nodes: NodeFacts) -> Site:
    """Return what provisioning recorded of these nodes."""
    return Site(2, "v100x4", "d", "v100x4.yaml", "2020-09-15", nodes, ())


def test_nodes_are_said_as_in_the_documents() -> None:
    """GPUs with their number, the adapter with its rate, then the rest in the documents' order."""
    assert node_facts.rows(NODE) == {
        "hostname": "VS002",
        "GPUs": "Tesla V100-SXM2-16GB x 8",
        "HCA mlx5_0:1": "100 Gb/s InfiniBand, MT4115, 12.27.1016",
        "CPU": "Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz",
        "usable CPUs": "48",
        "memory": "393216 MiB",
        "system": "Ubuntu 16.04.4 LTS",
        "kernel": "Linux 4.4.0-116-generic",
        "driver": "440.33.01",
        "CUDA": "10.2",
        "OFED": "4.9-0.1.7.0",
    }


def test_what_a_node_does_not_say_is_left_out() -> None:
    """No None among the facts; an adapter keeps its row with what is known of it."""
    down = HcaPort("mlx5_1", 1, None, None, "Down", None, None)
    bare = replace(NODE, gpu=GpuSummary(None, None, ()), infiniband=(down,), ofed=None)
    rows = node_facts.rows(bare)
    assert not {"GPUs", "driver", "CUDA", "OFED", "HCA mlx5_1:1"} & rows.keys()
    assert not any("None" in value for value in rows.values())


def test_topologies_are_those_that_provisioning_kept() -> None:
    """A node without one is not mentioned."""
    found = node_facts.topologies(site(vs001=NODE, vs002=replace(NODE, topology=None)))
    assert found == {"vs001": "        GPU0    GPU1\nGPU0     X      NV1\nGPU1    NV1      X"}


def test_topology_with_long_names_and_gaps_stays_a_table() -> None:
    """A name of ten letters widens all columns; a row that was not read is a question mark."""
    links = {"GPU0": {"mlx5_gdr_0": "PIX"}, "mlx5_gdr_0": {"GPU0": "PIX", "GPU1": "SYS"}}
    assert node_facts.matrix(links, {"GPU0": None}).splitlines() == [
        "            GPU0        mlx5_gdr_0  GPU1        CPU Affinity",
        "GPU0         X          PIX         ?",
        "mlx5_gdr_0  PIX          X          SYS",
    ]
    assert node_facts.matrix({}, {}) == ""
