"""Parameters, exclusions and doubles of a playbook's cases."""

from dataclasses import replace

import pytest

from orchestrator.model.text import Noun
from orchestrator.planning import matrix
from orchestrator.workloads import ngc_pytorch_rn50
from tests.planning.playbooks import CASE, GRID, RN50, experiment, mistakes


def test_exclude_leaves_out_what_agrees_with_every_value() -> None:
    """Two values in one entry mean both; two entries mean either."""
    grid = {
        "placement": ["1x1", "1x2", "2x2"],
        "precision": ["fp32", "amp"],
        "micro_batch_size": [4],
    }
    exclude = [{"placement": "2x2", "precision": "amp"}, {"placement": "1x2"}]
    found = experiment(grid=grid, exclude=exclude)
    assert mistakes(found) == []
    assert [(case.placement, case.precision) for case in matrix.cases(found)] == [
        ("1x1", "fp32"),
        ("2x2", "fp32"),
        ("1x1", "amp"),
    ]


def test_exclude_knows_parameters_of_the_grid_and_of_the_playbook() -> None:
    """A parameter counts wherever it was given."""
    grid = {**GRID, "placement": ["1x1"], "params": {"threads": [1, 2]}}
    found = experiment(
        grid=grid, params={"image_size": 64}, exclude=[{"params": {"threads": 2, "image_size": 64}}]
    )
    assert mistakes(found) == []
    assert [case.given["threads"] for case in matrix.cases(found)] == [1]


def test_exclude_that_matches_nothing_is_refused() -> None:
    """It was meant to leave something out, and what it meant would run."""
    exclude = [{"placement": "1x2"}, {"placement": "4x8"}, {"params": {"threads": 9}}]
    assert mistakes(experiment(grid=GRID, exclude=exclude)) == [
        (("exclude", 1), "no case matches it; needed one that does"),
        (("exclude", 2), "no case matches it; needed one that does"),
    ]


def test_exclude_that_leaves_nothing_is_refused() -> None:
    """A sweep of no case would end well and say nothing."""
    assert mistakes(experiment(grid=GRID, exclude=[{"precision": "fp32"}])) == [
        (("exclude",), "every case is left out; needed at least one")
    ]


def test_case_that_is_there_twice_is_refused() -> None:
    """A value twice in an axis, or 128 beside 128.0, is one case under two trials."""
    twice = {**GRID, "placement": ["1x1", "1x2", "1x1"], "params": {"threads": [2, 2]}}
    assert mistakes(experiment(grid=twice)) == [
        (("grid", "placement", 2), "'1x1' is there twice; needed each value once"),
        (("grid", "params", "threads", 1), "2 is there twice; needed each value once"),
    ]
    cases = [{**CASE, "params": {"loss_scale": scale}} for scale in (128, 128.0, 64)]
    assert mistakes(experiment(cases=cases)) == [
        (("cases", 1), "the case 1x1 is there twice; needed each case once")
    ]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("loss_scale", "static", "got 'static'; needed 'dynamic' or a valid number"),
        ("loss_scale", 0, "got 0; needed 'dynamic' or greater than 0"),
        ("image_size", 8, "got 8; needed at least 32"),
        ("image_size", "64", "got '64'; needed a valid integer"),
        ("memory_format", "nhwC", "got 'nhwC'; needed 'nhwc' or 'nchw'; did you mean 'nhwc'?"),
        ("threads", 1.0, "got 1.0; needed a valid integer"),
    ],
)
def test_wrong_parameter_is_found_wherever_it_is_given(name: str, value: object, text: str) -> None:
    """For all cases, for one case, and as an axis of the grid, each at its own place."""
    grid = {**GRID, "params": {name: [value]}}
    cases = [{**CASE, "params": {name: value}}]
    assert mistakes(experiment(grid=GRID, params={name: value})) == [(("params", name), text)]
    assert mistakes(experiment(cases=cases)) == [(("cases", 0, "params", name), text)]
    assert mistakes(experiment(grid=grid)) == [(("grid", "params", name, 0), text)]


def test_unknown_parameter_is_found_wherever_it_is_given() -> None:
    """The workload's own parameters are named beside it."""
    text = "unknown key 'epochs'; needed one of loss_scale, data_backend"
    found = experiment(grid={**GRID, "params": {"epochs": [1, 2]}}, params={"epochs": 1})
    judged = matrix.conflicts(found, ngc_pytorch_rn50.WORKLOAD, None)
    assert [(conflict.path, conflict.text) for conflict in judged] == [
        (("params", "epochs"), text),
        (("grid", "params", "epochs", 0), text),
        (("grid", "params", "epochs", 1), text),
    ]


def test_secret_among_the_parameters_is_refused_as_one() -> None:
    """Playbooks are shown, copied and kept; a password in one is not a misspelt parameter."""
    (found,) = mistakes(experiment(grid=GRID, params={"password": "x"}))
    assert found[0] == ("params", "password")
    assert "secrets do not belong" in found[1]


def test_axis_of_parameters_without_a_value_is_refused() -> None:
    """An empty list would make the whole grid empty."""
    found = experiment(grid={**GRID, "params": {"threads": []}})
    assert mistakes(found) == [(("grid", "params", "threads"), "an empty list; needed a value")]


class Required(Noun):
    """Parameters of which one must be given."""

    layers: int


def test_parameter_that_the_workload_needs_may_come_from_anywhere_but_must_come() -> None:
    """Half of the cases give it themselves; the others have it from nowhere."""
    workload = replace(RN50, params=Required)
    cases = [CASE, {**CASE, "placement": "1x2", "params": {"layers": 2}}]
    found = matrix.conflicts(experiment(cases=cases), workload, None)
    assert [(conflict.path, conflict.text) for conflict in found] == [
        (("cases", 0), "1x1: the workload needs params.layers")
    ]
    given = experiment(cases=[CASE], params={"layers": 2})
    assert matrix.conflicts(given, workload, None) == ()
