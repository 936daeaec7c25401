"""How many trials may run at once on the nodes of an inventory."""

from pathlib import Path

import pytest

from orchestrator.fleet import Fleet
from orchestrator.model.cluster import Cluster
from orchestrator.schedulers.fanout import Fanout


@pytest.mark.parametrize(("transport", "lanes"), [("ssh", 3), ("local", 1)])
def test_each_machine_is_a_lane(tmp_path: Path, transport: str, lanes: int) -> None:
    """Nodes that are this machine share one: their trials would share what is measured."""
    nodes = tuple({"name": f"n{at}", "address": f"10.0.0.{at}"} for at in range(1, 4))
    defaults = {"transport": transport, "runtime": "process"}
    inventory = {"name": "three", "defaults": defaults, "nodes": nodes}
    with Fanout(Fleet.of(Cluster.model_validate(inventory)), tmp_path, lambda: False) as scheduler:
        assert scheduler.lanes == lanes
