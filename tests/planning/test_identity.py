"""Which plans belong to one sweep."""

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.model.attempt import Allocation
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat
from orchestrator.planning import bind, plan
from orchestrator.planning.plan import Recipe
from tests.planning.recipes import AMP, ON_NODE, TWICE, recipe, seats

TWO = {**AMP, "placement": ["1x1", "2x4"]}
NODES = [{"name": f"n{n}", "address": f"10.0.0.{n}"} for n in (1, 2)]
FOUR: dict[str, Any] = {"gpus": {"count": 4}}


def on(ours: Recipe, **said: object) -> Recipe:
    """Return the recipe on another inventory."""
    text = json.dumps({"name": "testers", "nodes": NODES, **said})
    return replace(ours, cluster=Cluster.model_validate_json(text))


def test_more_repeats_extend_a_sweep_and_keep_its_trials() -> None:
    """The first trials keep name, port and command line, so that what was measured still counts."""
    two = recipe(grid=TWO)
    five = plan.repeated(two, 5)
    assert plan.build(five).trials[:4] == plan.build(two).trials
    assert len(plan.build(five).trials) == 10
    assert bind.identity(five)["tasks"] == bind.identity(two)["tasks"]


def test_an_identity_is_plain_data() -> None:
    said = bind.identity(recipe(grid=AMP))
    document = json.loads(json.dumps(said, allow_nan=False))
    assert document == said
    assert document["hardware"]["nodes"][0]["gpus"] == {"count": 4}


@pytest.mark.parametrize(
    "said",
    [
        {"grid": {**TWO, "micro_batch_size": [128]}},
        {"params": {"loss_scale": 128}},
        {"env": {"NCCL_ALGO": "Ring"}},
        *(
            {"method": {**TWICE, key: value}}
            for key, value in (("iterations", 31), ("repeats", 3), ("pack", "disjoint"))
        ),
    ],
)
def test_another_playbook_is_another_sweep(said: dict[str, object]) -> None:
    """What was measured under other settings must not be mixed with new trials."""
    assert bind.identity(recipe(**{"grid": TWO, **said})) != bind.identity(recipe(grid=TWO))


@pytest.mark.parametrize(
    "said",
    [
        {"name": "elsewhere"},
        {"defaults": {"gpus": {"count": 8}}},
        {"defaults": {**FOUR, "interface": "ib1"}},
        {"defaults": {**FOUR, "hcas": [{"name": "mlx5_1", "rate_gbps": 100}]}},
        {"container": {"shm_size": "1g"}},
    ],
)
def test_another_cluster_or_program_is_another_sweep(said: dict[str, object]) -> None:
    ours = recipe(grid=TWO)
    other = replace(ours, program=replace(ON_NODE, digest="sha256:" + "00" * 32))
    assert bind.identity(on(ours, **{"defaults": FOUR, **said})) != bind.identity(ours)
    assert bind.identity(other) != bind.identity(ours)


MOVED = [
    {"name": name, "address": address, "user": "perf", "folder": "/scratch"}
    for name, address in (("b2", "10.9.0.7"), ("b1", "10.9.0.3"), ("b3", "10.9.0.1"))
]


@pytest.mark.parametrize(
    "nodes", [NODES, MOVED[:1], MOVED[:2], MOVED], ids=["renamed", "fewer", "others", "more"]
)
def test_the_same_hardware_under_other_names_and_addresses_is_the_same_sweep(
    nodes: list[dict[str, str]],
) -> None:
    ours = recipe(grid=TWO, method={**TWICE, "pack": "none"})
    there = on(ours, defaults=FOUR | {"port": 2222}, nodes=nodes)
    moved = replace(there, program=replace(ON_NODE, code="/moved", python="py3"))
    assert bind.identity(moved) == bind.identity(recipe(grid=TWO))


def test_what_a_gang_starts_is_the_same_wherever_it_runs() -> None:
    """Nodes and ports do not count for provenance, but GPUs and interfaces do."""
    found = recipe(grid={**AMP, "placement": ["2x4"]})
    two = plan.build(found).trials[0]
    here = tuple(replace(seat, interface="ib0") for seat in seats(found))

    def start(given: tuple[Seat, ...], port: int, **said: Any) -> str:
        changed = tuple(replace(seat, **said) for seat in given)
        return bind.fingerprint(bind.anonymize(found, two, Allocation(changed, port)))

    there = tuple(replace(seat, node=f"x{seat.node}", address=f"1{seat.address}") for seat in here)
    assert start(here, 20_000) == start(there, 20_777)
    assert start(here, 20_000) != start(here, 20_000, interface="ib1")
    assert start(here, 20_000) != start(here, 20_000, gpus=(3, 2, 1, 0))
