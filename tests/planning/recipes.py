"""Plans of shipped and of small playbooks, bound to the seats of their own inventory."""

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

DIGEST = "sha256:" + "5e" * 32
IN_IMAGE = Program("/workspace/rn50", "python", DIGEST)
ON_NODE = Program("/opt/reference-rn50", "/usr/bin/python3", DIGEST)
GRID = {"placement": ["1x1"], "precision": ["amp"], "micro_batch_size": [256]}


def shipped(playbook: str, inventory: str, program: Program) -> Recipe:
    """A shipped playbook on a shipped inventory, its program at a fixed place."""
    experiment = yaml_reader.validated(
        yaml_reader.read(ROOT / "playbooks" / f"{playbook}.yaml"), Experiment
    )
    cluster = yaml_reader.validated(
        yaml_reader.read(ROOT / "inventory" / f"{inventory}.yaml"), Cluster
    )
    workload = workloads.find(experiment.workload)
    assert workload is not None
    return Recipe(playbook, experiment, workload, cluster, program)


def recipe(**said: object) -> Recipe:
    """A playbook of ours on two nodes of four GPUs."""
    plain = {
        "workload": "reference_rn50",
        "image": "reference-rn50",
        "method": {"repeats": 2, "iterations": 21, "window": [5, 20]},
    }
    nodes = [{"name": f"n{n}", "address": f"10.0.0.{n}"} for n in (1, 2)]
    where = {"name": "two", "defaults": {"gpus": {"count": 4}}, "nodes": nodes}
    return Recipe(
        "ours",
        Experiment.model_validate_json(json.dumps({**plain, **said})),
        reference_rn50.WORKLOAD,
        Cluster.model_validate_json(json.dumps(where)),
        ON_NODE,
    )


def trial(built: Plan, name: str) -> Trial:
    """The trial of that name."""
    return next(planned for planned in built.trials if planned.name == name)


def first(found: Recipe, name: str = "") -> Attempt:
    """The first attempt at a trial on the inventory's nodes; without a name, at the first."""
    built = plan.build(found)
    return bind.first(found, trial(built, name) if name else built.trials[0], seats(found))


def seats(found: Recipe) -> list[Seat]:
    """The inventory's nodes."""
    return [node.seat("/var/tmp/sweeps") for node in found.cluster.members]
