"""The playbook: what the shipped ones measure, and the borders of what one may contain."""

import json

import pytest

from orchestrator.files import yaml_reader
from orchestrator.model.experiment import Experiment
from orchestrator.planning import matrix
from tests import ROOT

METHOD = {"repeats": 5, "iterations": 121, "window": [20, 120]}
GRID = {"placement": ["1x1"], "precision": ["fp32"], "micro_batch_size": [128]}


def experiment(**said: object) -> Experiment:
    """Return a playbook with these keys beside workload and image."""
    plain = {"workload": "ngc_pytorch_rn50", "image": "ngc-pytorch-20.03"}
    return Experiment.model_validate_json(json.dumps({**plain, **said}))


# Upstream: --prof 121 and iterations 20 to 120 for FP32 (seed 003 and the extraction script of
# September 2020); iterations 25 to 125 for AMP (today's script).
@pytest.mark.parametrize(
    ("name", "iterations", "window"),
    [
        ("rn50-fp32", 121, (20, 120)),
        ("rn50-amp", 151, (25, 125)),
        ("rn50-amp-static", 151, (25, 125)),
    ],
)
def test_a_shipped_playbook_measures_as_the_seed_did(
    name: str, iterations: int, window: tuple[int, int]
) -> None:
    method = yaml_reader.validated(
        yaml_reader.read(ROOT / f"playbooks/{name}.yaml"), Experiment
    ).method
    assert (method.repeats, method.iterations, method.window) == (5, iterations, window)


@pytest.mark.parametrize("window", [[1, 2], [1, 120], [119, 120]])
def test_a_window_may_reach_from_the_first_to_the_last_logged_iteration(window: list[int]) -> None:
    """Of --prof 121 the iterations 1 to 120 are logged."""
    found = experiment(method={**METHOD, "window": window}, grid=GRID)
    assert found.method.window == (*window,)


def test_a_reported_result_needs_no_window() -> None:
    bare = {name: value for name, value in METHOD.items() if name != "window"}
    assert experiment(method={**bare, "rule": "reported"}, grid=GRID).method.window is None


@pytest.mark.parametrize(
    ("placement", "expected"), [("1x1", (1, 1)), ("4x8", (4, 8)), ("99999x999", (99999, 999))]
)
def test_a_placement_is_nodes_by_gpus(placement: str, expected: tuple[int, int]) -> None:
    case, *_ = matrix.cases(experiment(method=METHOD, grid={**GRID, "placement": [placement]}))
    assert (case.nodes, case.gpus_per_node) == expected
