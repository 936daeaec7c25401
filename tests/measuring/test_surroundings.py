"""What reports say beyond measured numbers: the nodes, and what a workload knows of its cases."""

from dataclasses import replace

from orchestrator import workloads
from orchestrator.collecting import package
from orchestrator.measuring import published
from orchestrator.model.case import Case
from orchestrator.model.report import Report
from orchestrator.model.site import (
    GpuSummary,
    HcaPort,
    NodeFacts,
    Site,
    Topology,
)
from orchestrator.report import node_facts
from tests.checks import facts
from tests.reported import results, sweep

# The nodes of the documents, as far as they say it.
HOST = replace(facts.HOST, hostname="VS002", memory_mib=393216)
V100 = GpuSummary("440.33.01", "10.2", ("Tesla V100-SXM2-16GB",) * 8)
HCA = HcaPort("mlx5_0", 1, "MT4115", "12.27.1016", "Active", 100, "InfiniBand")
WIRES = Topology({"GPU0": {"GPU1": "NV1"}, "GPU1": {"GPU0": "NV1"}}, "d")
NODE = NodeFacts(HOST, gpu=V100, topology=WIRES, infiniband=(HCA,), ofed="4.9-0.1.7.0")


def site(**nodes: NodeFacts) -> Site:
    """What provisioning kept of these nodes."""
    return Site(1, "v100x4", "d", "v100x4.yaml", "2020-09-15", nodes, ())


def gpt(report: Report, workload: str = "oneflow_gpt") -> Report:
    """The report with all that a workload knows of its cases."""
    found = workloads.find(workload)
    assert found is not None
    return published.complete_report(report, found, package.published_results())


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


def test_more_than_a_gpu_can_give_is_marked() -> None:
    """The report of May 2021 has 49.43 TFLOP/s for 4.92 samples/s: 30 times that is no result."""
    shape = (("hidden_size", 1536), ("num_attention_heads", 16), ("num_layers", 16))
    (one,) = results({"1x1": (4.92,)})
    own = replace(one.case, micro_batch_size=2, precision="amp", params=shape)
    for factor, marks in ((1, []), (2.5, []), (30, ["IMPLAUSIBLE"])):
        (measured,) = results({"1x1": (4.92 * factor,)})
        report = replace(sweep((replace(measured, case=own),)), gpus=("Tesla V100-SXM2-16GB",))
        (found,) = gpt(report).results
        assert [mark.code for mark in found.marks] == marks


def test_published_results_are_of_the_same_program_only() -> None:
    """The folder that a log lies in does not matter; another model or a stray value does."""
    found = gpt(sweep(results({"1x8": (6154.66,)})), "ngc_pytorch_rn50")
    (rows,) = found.published.values()
    assert rows[0].throughput == 6154.66
    for params, count in (
        ((("folder", "monday"),), 1),
        ((("named", "rn101"),), 0),
        ((("loss_scale", "odd"),), 0),
    ):
        found = gpt(sweep(results({"1x8": (6154.66,)}, params=params)), "ngc_pytorch_rn50")
        assert len(found.published) == count
    assert gpt(sweep(results({"1x8": (1.0,)})), "reference_rn50").published == {}


def test_names_of_a_plan_come_before_those_of_a_workload() -> None:
    """And a case that lacks what its name is made of has none, and no operations either."""
    shape = (("num_layers", 16), ("hidden_size", 1536), ("num_attention_heads", 16))
    whole, bare = (
        Case(
            nodes=1,
            gpus_per_node=1,
            micro_batch_size=2,
            precision="amp",
            device="cuda",
            params=params,
        )
        for params in (shape, ())
    )
    (one,) = results({"1x1": (4.92,)})
    found = gpt(sweep((replace(one, case=whole), replace(one, case=bare))))
    assert found.names == {whole: "DP_1x1x1_2_1536x16"}
    assert found.step_flops.keys() == {whole}
    assert found.layout.kind == "groups"
    again = gpt(replace(found, names={whole: "as planned"}))
    assert again.names == {whole: "as planned"}
