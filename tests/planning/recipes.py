"""Playbooks, inventories and plans that tests of planning share."""

import json

from orchestrator import workloads
from orchestrator.files import yaml_reader
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Program
from orchestrator.model.plan import Plan, Seat, Trial
from orchestrator.planning import bind, plan
from orchestrator.planning.plan import Recipe
from orchestrator.workloads import reference_rn50
from tests import ROOT

RN50 = reference_rn50.WORKLOAD
DIGEST = "sha256:" + "5e" * 32
IN_IMAGE = Program("/workspace/rn50", "python", DIGEST)
ON_NODE = Program("/opt/reference-rn50", "/usr/bin/python3", DIGEST)
METHOD = {"repeats": 1, "iterations": 21, "window": [5, 20]}
TWICE = {**METHOD, "repeats": 2}
CASE = {"placement": "1x1", "precision": "fp32", "micro_batch_size": 4}
AMP = {"placement": ["1x1"], "precision": ["amp"], "micro_batch_size": [256]}


def experiment(**said: object) -> Experiment:
    """Return a playbook with these keys; ``None`` leaves a key out."""
    plain = {"workload": "reference_rn50", "image": "reference-rn50", "method": METHOD}
    kept = {key: value for key, value in {**plain, **said}.items() if value is not None}
    return Experiment.model_validate_json(json.dumps(kept))


def cluster(nodes: int, **defaults: object) -> Cluster:
    """Return a cluster of so many nodes, n1 first."""
    entries = [{"name": f"n{n}", "address": f"10.0.0.{n}"} for n in range(1, nodes + 1)]
    said = {"name": "testers", "defaults": defaults, "nodes": entries}
    return Cluster.model_validate_json(json.dumps(said))


def recipe(**said: object) -> Recipe:
    """Return a playbook of two repeats on two nodes of four GPUs."""
    two = cluster(2, gpus={"count": 4})
    return Recipe("ours", experiment(**{"method": TWICE, **said}), RN50, two, ON_NODE)


def shipped(playbook: str, inventory: str, program: Program) -> Recipe:
    """Return a shipped playbook on a shipped inventory, its program at a fixed place."""
    said = yaml_reader.validated(
        yaml_reader.read(ROOT / "playbooks" / f"{playbook}.yaml"), Experiment
    )
    where = yaml_reader.validated(
        yaml_reader.read(ROOT / "inventory" / f"{inventory}.yaml"), Cluster
    )
    workload = workloads.find(said.workload)
    assert workload is not None
    return Recipe(playbook, said, workload, where, program)


def trial(built: Plan, name: str) -> Trial:
    """Return the trial of that name."""
    return next(planned for planned in built.trials if planned.name == name)


def first(found: Recipe, name: str = "") -> Attempt:
    """Return the first attempt at a trial, by default the first one, on the inventory's nodes."""
    built = plan.build(found)
    return bind.first(found, trial(built, name) if name else built.trials[0], seats(found))


def seats(found: Recipe) -> list[Seat]:
    return [node.seat("/var/tmp/sweeps") for node in found.cluster.members]
