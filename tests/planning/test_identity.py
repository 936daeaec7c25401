"""Which sweep a plan belongs to: what makes it another one, and what does not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.model.attempt import Allocation
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Seat
from orchestrator.planning import bind, plan
from tests.planning.recipes import GRID, ON_NODE, recipe, seats


def seats_with(given: tuple[Seat, ...], **said: Any) -> tuple[Seat, ...]:
    """The same seats with something else about each."""
    return tuple(replace(seat, **said) for seat in given)


def test_more_repeats_extend_a_sweep_and_keep_its_trials() -> None:
    """The first trials keep name, port and command line, so that what was measured still counts."""
    two = recipe(grid={**GRID, "placement": ["1x1", "2x4"]})
    five = plan.repeated(two, 5)
    assert plan.build(five).trials[:4] == plan.build(two).trials
    assert len(plan.build(five).trials) == 10
    assert bind.identity(five)["tasks"] == bind.identity(two)["tasks"]


@pytest.mark.parametrize(
    "said",
    [
        {"grid": {**GRID, "micro_batch_size": [128]}},
        {"grid": GRID, "params": {"loss_scale": 128}},
        {"grid": GRID, "method": {"repeats": 2, "iterations": 31, "window": [5, 20]}},
        {"grid": GRID, "method": {"repeats": 3, "iterations": 21, "window": [5, 20]}},
    ],
)
def test_edited_playbook_is_another_sweep(said: dict[str, object]) -> None:
    """What was measured under other words must not be mixed with what comes."""
    assert bind.identity(recipe(**said)) != bind.identity(recipe(grid=GRID))


def test_trials_side_by_side_are_another_sweep_and_the_default_is_not() -> None:
    method = {"repeats": 2, "iterations": 21, "window": [5, 20]}
    before = bind.identity(recipe(grid=GRID, method=method))
    packed = bind.identity(recipe(grid=GRID, method={**method, "pack": "disjoint"}))
    assert bind.identity(recipe(grid=GRID, method={**method, "pack": "none"})) == before != packed


def test_other_program_or_cluster_is_another_sweep() -> None:
    """The image's digest and the inventory are part of what a sweep is."""
    ours = recipe(grid=GRID)
    other = replace(ours, program=replace(ON_NODE, digest="sha256:" + "00" * 32))
    moved = ours.cluster.model_copy(update={"name": "elsewhere"})
    assert bind.identity(ours) == bind.identity(recipe(grid=GRID))
    assert bind.identity(other) != bind.identity(ours)
    assert bind.identity(replace(ours, cluster=moved)) != bind.identity(ours)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_same_hardware_under_other_names_and_addresses_is_the_same_sweep(count: int) -> None:
    """Moved, renamed, in another order, with another login, or with more or fewer of the nodes."""
    ours = recipe(grid={**GRID, "placement": ["1x1", "2x4"]})
    nodes = [
        {"name": name, "address": address, "user": "perf", "folder": "/scratch"}
        for name, address in (("b2", "10.9.0.7"), ("b1", "10.9.0.3"), ("b3", "10.9.0.1"))
    ]
    said = {"name": "two", "defaults": {"gpus": {"count": 4}, "port": 2222}}
    moved = Cluster.model_validate_json(json.dumps({**said, "nodes": nodes[:count]}))
    other = replace(ours, cluster=moved, program=replace(ON_NODE, code="/moved", python="py3"))
    assert bind.identity(other) == bind.identity(ours)


@pytest.mark.parametrize(
    "said",
    [
        {"defaults": {"gpus": {"count": 8}}},
        {"defaults": {"gpus": {"count": 4}, "interface": "ib1"}},
        {"defaults": {"gpus": {"count": 4}, "hcas": [{"name": "mlx5_1", "rate_gbps": 100}]}},
        {"defaults": {"gpus": {"count": 4}}, "container": {"shm_size": "1g"}},
    ],
)
def test_other_declared_hardware_is_another_sweep(said: dict[str, object]) -> None:
    """GPUs, interface, HCAs, and how containers are started."""
    ours = recipe(grid={**GRID, "placement": ["1x1", "2x4"]})
    nodes = [{"name": f"n{n}", "address": f"10.0.0.{n}"} for n in (1, 2)]
    text = json.dumps({"name": "two", "nodes": nodes, **said})
    other = replace(ours, cluster=Cluster.model_validate_json(text))
    assert bind.identity(other) != bind.identity(ours)


def test_what_a_gang_starts_is_the_same_wherever_it_runs() -> None:
    """Provenance tells neither nodes nor ports apart, but GPUs and interfaces."""
    found = recipe(grid={**GRID, "placement": ["2x4"]})
    two = plan.build(found).trials[0]
    here = tuple(replace(seat, interface="ib0") for seat in seats(found))
    there = tuple(replace(seat, node=f"x{seat.node}", address=f"1{seat.address}") for seat in here)

    def started(given: tuple[Seat, ...], port: int) -> str:
        return bind.fingerprint(bind.anonymize(found, two, Allocation(given, port)))

    assert started(here, 20_000) == started(there, 20_777)
    assert started(here, 20_000) != started(seats_with(here, interface="ib1"), 20_000)
    assert started(here, 20_000) != started(seats_with(here, gpus=(3, 2, 1, 0)), 20_000)
