"""GIDs of adapters on Ethernet, and the check that looks for the one that NCCL is told."""

import json
import subprocess
from pathlib import Path

import pytest

from orchestrator.checks import fabric as fabric_checks
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import Gid, Silent
from orchestrator.model.node import Node
from orchestrator.probes import infiniband
from orchestrator.probes import node as node_probe

# Of a node of eight H100: for each adapter link-local and IPv4, each as RoCE v1 and v2.
TABLE = Path(__file__).parents[1] / "samples" / "roce" / "show_gids.txt"


def sysfs(folder: Path) -> Path:
    """The kernel's files for that table, with the empty places that it has too."""
    for line in TABLE.read_text().splitlines()[2:]:
        words = line.split()
        if len(words) < 6:
            continue
        (hca, port, index, gid), kind, interface = words[:4], words[-2], words[-1]
        at = folder / hca / "ports" / port
        for name, text in (
            (f"gids/{index}", gid),
            ("gids/9", "0000:0000:0000:0000:0000:0000:0000:0000"),
            (f"gid_attrs/types/{index}", {"v1": "IB/RoCE v1", "v2": "RoCE v2"}[kind]),
            (f"gid_attrs/ndevs/{index}", interface),
        ):
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            (at / name).write_text(f"{text}\n")
    return folder


def read(folder: Path) -> tuple[Gid, ...]:
    """What the question brings from such a folder."""
    done = subprocess.run(
        infiniband.gids_argv(str(folder)), capture_output=True, text=True, check=True, timeout=60
    )
    return infiniband.parse_gids(done.stdout)


def node(roce_said: object = None, layer: str = "Ethernet") -> Node:
    """A node with one adapter on Ethernet."""
    hcas = [{"name": "mlx5_0", "rate_gbps": 100, "link_layer": layer}]
    defaults = {"hcas": hcas, **({"roce": roce_said} if roce_said else {})}
    nodes = [{"name": "n1", "address": "10.0.0.1"}]
    text = json.dumps({"name": "lab", "defaults": defaults, "nodes": nodes})
    return Cluster.model_validate_json(text).members[0]


def test_gids_are_read_with_place_type_and_interface(tmp_path: Path) -> None:
    """Empty places are left out."""
    found = [gid for gid in read(sysfs(tmp_path)) if gid.hca == "mlx5_0"]
    assert [(gid.index, gid.kind) for gid in found] == [
        (0, "IB/RoCE v1"),
        (1, "RoCE v2"),
        (2, "IB/RoCE v1"),
        (3, "RoCE v2"),
    ]
    assert found[3].address == "0000:0000:0000:0000:0000:ffff:0b00:0048"
    assert {(gid.hca, gid.port) for gid in found} == {("mlx5_0", 1)}


def test_adapters_on_ethernet_alone_are_asked() -> None:
    """InfiniBand has GIDs that nobody has to choose from."""
    names = [
        question.name for question in node_probe.questions(node(), python="python3", folder="/x")
    ]
    assert "gids" in names
    plain = node(layer="InfiniBand")
    assert "gids" not in [
        question.name for question in node_probe.questions(plain, python="python3", folder="/x")
    ]


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        (None, None),
        ({"traffic_class": 106}, None),
        ({"gid_index": 3}, None),
        (
            {"gid_index": 2},
            "no routable GID of RoCE v2 at gid_index 2; there are 0 IB/RoCE v1 fe80",
        ),
        ({"gid_index": 1}, "no routable GID of RoCE v2 at gid_index 1; there are"),
        ({"gid_index": 5}, "no routable GID of RoCE v2 at gid_index 5; there are"),
    ],
)
def test_the_index_must_hold_a_routable_gid(tmp_path: Path, said: object, seen: str | None) -> None:
    """A wrong one makes NCCL hang or fail; the finding lists what there is."""
    found = list(fabric_checks.gids(node(said), read(sysfs(tmp_path))))
    assert [finding.code for finding in found] == (["ROCE-GID"] if seen else [])
    assert all(seen and seen in finding.seen for finding in found)


def test_an_adapter_without_gids_cannot_speak() -> None:
    """No address on its interface, or no answer at all."""
    (none,) = fabric_checks.gids(node(), ())
    assert none.seen == "mlx5_0 has no routable GID of RoCE v2; there are none"
    (hung,) = fabric_checks.gids(node(), Silent("HUNG", ""))
    assert "no list of GIDs" in hung.seen
    assert list(fabric_checks.gids(node(layer="InfiniBand"), ())) == []
    assert list(fabric_checks.gids(node(), None)) == []
