"""Experiments as playbooks say them, and what contradicts itself in one."""

import json

from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.planning import matrix
from orchestrator.workloads import reference_rn50

RN50 = reference_rn50.WORKLOAD
GRID = {"placement": ["1x1", "1x2"], "precision": ["fp32"], "micro_batch_size": [4]}
CASE = {"placement": "1x1", "precision": "fp32", "micro_batch_size": 4}


def experiment(**said: object) -> Experiment:
    """A playbook of one repeat that says these things; ``None`` leaves a key out."""
    plain: dict[str, object] = {
        "workload": "reference_rn50",
        "image": "reference-rn50",
        "device": "cuda",
        "method": {"repeats": 1, "iterations": 21, "window": [5, 20]},
    }
    kept = {key: value for key, value in {**plain, **said}.items() if value is not None}
    return Experiment.model_validate_json(json.dumps(kept))


def cluster(nodes: int, **defaults: object) -> Cluster:
    """A cluster of so many nodes, n1 first."""
    entries = [{"name": f"n{n}", "address": f"10.0.0.{n}"} for n in range(1, nodes + 1)]
    said = {"name": "testers", "defaults": defaults, "nodes": entries}
    return Cluster.model_validate_json(json.dumps(said))


def mistakes(
    found: Experiment, where: Cluster | None = None
) -> list[tuple[tuple[str | int, ...], str]]:
    """Path and text of every conflict."""
    return [(conflict.path, conflict.text) for conflict in matrix.conflicts(found, RN50, where)]
