"""The three commands on the virtual cluster: provision, sweep, collect, as a person types them."""

import json
import subprocess
from typing import Any

import pytest

from tests.people import Desk, holds

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]

PLACEMENTS = ["1x1", "1x4", "1x8", "2x8", "4x8"]


@pytest.fixture(scope="module")
def first(
    provisioned: tuple[Desk, "subprocess.CompletedProcess[str]"],
) -> tuple[Desk, Any]:
    """The first provisioning and what it said."""
    desk, done = provisioned
    assert done.returncode == 0, done.stderr
    return desk, json.loads(done.stdout)


def test_the_first_provisioning_builds_once_and_carries(first: tuple[Desk, Any]) -> None:
    """One node builds the image, the others are given it, and all have one id."""
    desk, said = first
    kinds = [(action["kind"], action["node"]) for action in said["actions"]]
    assert kinds == [("build", "vs001"), *(("carry", f"vs00{n}") for n in (2, 3, 4))]
    record = said["site"]["images"]["ngc-pytorch-20.03"]
    assert all(holds(node, record) for node in desk.cluster.nodes)
    assert record["locked"]


def test_the_second_provisioning_changes_nothing_and_says_so(first: tuple[Desk, Any]) -> None:
    """No action, no pull, no container left, and the lock as it was."""
    desk, _ = first
    lock = desk.cluster.inventory.with_name("virtual.lock.json")
    before = lock.read_bytes()
    done = desk.must("provision", str(desk.cluster.inventory))
    assert "Nothing to do: every node has every image." in done.stdout
    assert "build" not in done.stderr
    assert lock.read_bytes() == before
    assert not desk.left()


@pytest.mark.parametrize(
    "playbook", ["rn50-amp", pytest.param("rn50-fp32", marks=pytest.mark.long)]
)
def test_a_playbook_of_the_documents_runs_on_four_nodes(desk: Desk, playbook: str) -> None:
    """Every case is measured, each rank was there once, and nothing is left on any node."""
    said = desk.json(
        "sweep", playbook, "--repeats", "1", "--inventory", str(desk.cluster.inventory)
    )
    rows = {case["case"]["placement"]: case for case in said["cases"]}
    assert list(rows) == PLACEMENTS
    assert all(rows[placement]["median"] > 0 for placement in PLACEMENTS)
    assert rows["1x1"]["speedup"] == 1.0
    assert {rows[placement]["transport"] for placement in ("2x8", "4x8")} == {"IB mlx5_0"}
    for trial, outcome in desk.outcomes().items():
        assert outcome["state"] == "valid", trial
        ends = [(end["node"], end["node_rank"], end["status"]) for end in outcome["tasks"]]
        assert ends == [(f"vs00{rank + 1}", rank, 0) for rank in range(len(ends))]
        assert outcome["provenance"]["image"].startswith("sha256:")
        assert outcome["provenance"]["driver"] == "440.33.01"
    assert not desk.left()
    again = desk.must("collect")
    assert "have not been run" not in again.stderr
    assert all(placement in again.stdout for placement in PLACEMENTS)


REFERENCE = """\
workload: reference_rn50
image: reference-rn50
device: cpu
method: {repeats: 1, iterations: 9, window: [2, 8]}
grid:
  placement: [1x1, 4x1]
  precision: [fp32]
  micro_batch_size: [2]
params: {image_size: 64, num_classes: 10}
"""


@pytest.mark.long
def test_pytorch_trains_over_four_nodes(desk: Desk) -> None:
    """The reference program with real PyTorch on one node and on four, over gloo between them."""
    inventory = str(desk.cluster.cpu_inventory)
    desk.must("provision", inventory)
    name = desk.playbook("trains", REFERENCE)
    said = desk.json("sweep", name, "--inventory", inventory)
    rows = {case["case"]["placement"]: case for case in said["cases"]}
    assert list(rows) == ["1x1", "4x1"]
    assert all(row["median"] > 0 for row in rows.values())
    assert not desk.left()
