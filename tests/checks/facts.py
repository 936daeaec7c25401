"""Facts of nodes, inventories, and tests by tables of findings."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import DriverFacts, GpuFacts
from orchestrator.model.findings import describe
from orchestrator.model.node import Node
from orchestrator.model.problem import Problem
from orchestrator.model.site import Finding, GpuSummary, HcaPort, HostFacts, NodeFacts, Topology
from orchestrator.probes import infiniband, topology
from tests import SAMPLES
from tests.probes.answers import DEBIAN

HOST = HostFacts(
    hostname="vs001",
    boot_id="b1",
    kernel="Linux 4.4.0-116-generic",
    system="Ubuntu 16.04.4 LTS",
    cpu_model="Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz",
    cpus=48,
    memory_mib=386_000,
    free_disk_mib=1024,
    shm_mib=193_000,
    open_files=256,
    load=24.0,
    clock_s=1000.0,
    interfaces=("ib0", "lo"),
    missing_modules=(),
    torch="",
)
V100 = GpuFacts(
    index=0,
    uuid=None,
    bus_id=None,
    model="Tesla V100-SXM2-16GB",
    memory_mib=16160,
    ecc_uncorrected=0,
    ecc_volatile_uncorrected=0,
    ecc_sram_uncorrected=0,
    row_remap_pending=None,
    row_remap_failed=None,
    page_retirement_pending=False,
    persistence=True,
    mig=False,
    power_limit_w=300.0,
    sm_clock_mhz=135,
    throttle_reasons=("gpu_idle",),
    processes=(),
)
# The seeds' table, cut to its GPUs 3 and 4: PIX to one of them, SYS to the other.
TABLE = "\tGPU0\tGPU1\tmlx5_0\nGPU0\tX\tSYS\tPIX\nGPU1\tSYS\tX\tSYS\nmlx5_0\tPIX\tSYS\tX\n"
WIRES = topology.parse(TABLE)
V100S = GpuSummary("440.33.01", "10.2", ("V100", "V100"), ("0:1", "0:2"), (16160,), (300.0, 300.0))
PORT = HcaPort("mlx5_0", 1, "MT4115", "12.27.1016", "Active", 100, "InfiniBand")
FACTS = NodeFacts(
    host=HOST,
    gpu=V100S,
    topology=Topology({}, "a" * 64),
    infiniband=(PORT,),
    docker=DEBIAN,
)
SEED = infiniband.parse((SAMPLES / "ibstat/dlperf_seed_vs002_mt4115.txt").read_text())


def driver(*gpus: GpuFacts, problems: tuple[Problem, ...] = ()) -> DriverFacts:
    """Return the driver's facts of these GPUs, counted from 0."""
    placed = tuple(replace(gpu, index=index) for index, gpu in enumerate(gpus))
    return DriverFacts("440.33.01", "10.2", placed, problems)


def cluster(*own: dict[str, object], **defaults: object) -> Cluster:
    """Return nodes n1, n2, ... with these settings of their own, and defaults."""
    nodes = [{"name": f"n{n}", "address": f"10.0.0.{n}", **entry} for n, entry in enumerate(own, 1)]
    said = {"name": "testers", "defaults": defaults, "nodes": nodes}
    return Cluster.model_validate_json(json.dumps(said))


def node(**defaults: object) -> Node:
    """Return n1, the only node of such a cluster."""
    return cluster({}, **defaults).members[0]


def hca(name: str = "mlx5_0", rate_gbps: int = 100, **more: object) -> dict[str, object]:
    return {"name": name, "rate_gbps": rate_gbps, **more}


def changed(fact: Any, **values: object) -> Any:
    """Return the fact with other values, whatever their types."""
    return replace(fact, **values)


def table(**cases: tuple[Iterable[Finding], str]) -> Callable[..., None]:
    """Return a test of cases, each with findings and what is expected of them.

    Severity, code and node are expected in the table, such as ``error GPU-ECC, warning SWAP n2``;
    n1 is not named. The words of the findings are in the snapshot.
    """

    @pytest.mark.parametrize(("findings", "expected"), cases.values(), ids=cases)
    def judge(findings: Iterable[Finding], expected: str, snapshot: SnapshotAssertion) -> None:
        found = list(findings)
        where = [f"{it.severity} {it.code} {it.node}".removesuffix(" n1") for it in found]
        assert ", ".join(where) == expected
        if found:
            assert "\n".join(map(own_words, found)) == snapshot

    return judge


def own_words(finding: Finding) -> str:
    """Return what a check says by itself, without the words of the table of findings."""
    kind = describe(finding.code)
    said = [finding.seen]
    said += [finding.expected] if finding.expected != kind.expected else []
    said += [f"fix: {finding.fix}"] if finding.fix != kind.fix else []
    return f"{finding.code} {finding.node}: {'; '.join(said)}"
