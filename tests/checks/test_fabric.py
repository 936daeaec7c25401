"""Findings about RDMA adapters, their GIDs and their distance to GPUs."""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.checks import fabric
from orchestrator.model.facts import Gid, InfinibandFacts, Silent, VerbsFacts
from orchestrator.model.problem import Problem
from orchestrator.model.site import Finding, Topology
from orchestrator.probes import infiniband
from tests import SAMPLES
from tests.checks.facts import SEED, WIRES, changed, hca, node, table

SOME_DOWN = infiniband.parse((SAMPLES / "ibstat/gpud_ibstat.47.0.some.down.0.txt").read_text())
NO_IBSTAT = Silent("ABSENT", "sh: 1: ibstat: not found")
UNREADABLE = Problem("UNREADABLE", "ibstat, line 12: cannot read 'Rate: fast'")
ONE = node(hcas=[hca()], runtime="process")
INSIDE = node(hcas=[hca()], runtime="docker")


def adapters(
    facts: InfinibandFacts | Silent | None, *declared: dict[str, object]
) -> Iterator[Finding]:
    return fabric.adapters(node(hcas=declared or [hca()]), facts)


def port(**change: object) -> InfinibandFacts:
    """Return the seeds' adapter with a change."""
    return InfinibandFacts((changed(SEED.ports[0], **change),), ())


test_adapters = table(
    fit=(adapters(SEED), ""),
    layer_by_its_other_name=(adapters(port(link_layer="IB")), ""),
    none_declared=(fabric.adapters(node(), SOME_DOWN), ""),
    not_asked=(adapters(None), ""),
    down=(adapters(SOME_DOWN, hca("mlx5_2", 40)), "error IB-PORT"),
    rate=(adapters(SOME_DOWN, hca("mlx5_0", 200)), "error IB-RATE"),
    layer=(adapters(SOME_DOWN, hca("mlx5_1", 100)), "error IB-LAYER"),
    missing=(adapters(SEED, *(hca(f"mlx5_{number}") for number in range(8))), "error IB-PORT"),
    # Inventories have whole numbers: 2 stands for the 2.5 of software adapters
    one_lane=(adapters(port(rate_gbps=2.5), hca(rate_gbps=2)), ""),
    one_lane_of_many=(adapters(port(rate_gbps=2.5)), "error IB-RATE"),
    unreadable=(
        adapters(replace(port(rate_gbps=None), problems=(UNREADABLE,))),
        "warning UNREADABLE, error IB-RATE",
    ),
    # Where containers bring the program, the node itself may lack it
    absent=(fabric.adapters(ONE, NO_IBSTAT), "error IB-TOOLS"),
    absent_outside=(fabric.adapters(INSIDE, NO_IBSTAT), "warning IB-TOOLS"),
    hung=(fabric.adapters(INSIDE, Silent("HUNG", "")), "error IB-QUERY-HUNG"),
    no_answer=(fabric.adapters(INSIDE, Silent("UNREADABLE", "no line")), "error IB-PORT"),
)


WARNING = "no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0"


test_adapters_that_programs_can_open = table(
    not_asked=(fabric.openable(ONE, None), ""),
    fit=(fabric.openable(ONE, VerbsFacts(("mlx5_0",), ("oh",))), ""),
    no_driver=(fabric.openable(ONE, VerbsFacts((), (WARNING,))), "error IB-NO-DRIVER"),
    no_driver_outside=(
        fabric.openable(INSIDE, VerbsFacts(("mlx4_0",), ())),
        "warning IB-NO-DRIVER",
    ),
    hung=(fabric.openable(ONE, Silent("HUNG", "")), "error IB-NO-DRIVER"),
    absent=(fabric.openable(ONE, NO_IBSTAT), "error IB-NO-DRIVER"),
    absent_outside=(fabric.openable(INSIDE, NO_IBSTAT), ""),
)


def far(
    *use: int, name: str = "mlx5_0", facts: Topology | Silent | None = WIRES
) -> Iterator[Finding]:
    """Judge an adapter that is PIX to GPU 0 and SYS to GPU 1."""
    gpus = {"gpus": {"use": use}} if use else {}
    return fabric.distances(node(hcas=[hca(name)], **gpus), facts)


test_distances = table(
    far=(far(1), "warning HCA-FAR"),
    one_is_near=(far(0, 1), ""),
    near=(far(0), ""),
    any_gpu=(far(), ""),
    unknown_adapter=(far(1, name="mlx5_9"), ""),
    not_asked=(far(1, facts=None), ""),
    no_table=(far(1, facts=Topology({}, None)), ""),
    hung=(far(facts=Silent("HUNG", "")), "warning TOPO-UNREADABLE"),
    unreadable=(
        far(facts=replace(WIRES, problems=(Problem("UNREADABLE", "line 2: GPU0"),))),
        "warning TOPO-UNREADABLE",
    ),
)


LINK_LOCAL = "fe80:0000:0000:0000:a288:c2ff:fe5b:03ec"
IPV4 = "0000:0000:0000:0000:0000:ffff:0b00:0048"
# Of an adapter of a node of eight H100
GIDS = tuple(
    Gid("mlx5_0", 1, index, address, "ens3np0", kind)
    for index, (address, kind) in enumerate(
        (address, kind) for address in (LINK_LOCAL, IPV4) for kind in ("IB/RoCE v1", "RoCE v2")
    )
)


def gids(
    facts: tuple[Gid, ...] | Silent | None = GIDS, layer: str = "Ethernet", **roce: int
) -> Iterator[Finding]:
    settings = {"roce": roce} if roce else {}
    return fabric.gids(node(hcas=[hca(link_layer=layer)], **settings), facts)


# A wrong index makes NCCL hang or fail; the finding lists the GIDs.
test_gids = table(
    any_index=(gids(), ""),
    other_setting=(gids(traffic_class=106), ""),
    routable=(gids(gid_index=3), ""),
    version_1=(gids(gid_index=2), "error ROCE-GID"),
    link_local=(gids(gid_index=1), "error ROCE-GID"),
    no_such_index=(gids(gid_index=5), "error ROCE-GID"),
    link_local_alone=(gids(GIDS[:2]), "error ROCE-GID"),
    none=(gids(()), "error ROCE-GID"),
    hung=(gids(Silent("HUNG", "")), "error ROCE-GID"),
    infiniband=(gids((), "InfiniBand"), ""),
    not_asked=(gids(None), ""),
)
