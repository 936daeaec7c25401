"""The playbook: what it may say, and what of it cannot hold together."""

import json
import re

import pytest
from pydantic import ValidationError

from orchestrator.files import yaml_reader
from orchestrator.model.experiment import Experiment
from orchestrator.model.text import is_name
from orchestrator.planning import matrix
from tests import ROOT

PLAYBOOKS = ROOT / "playbooks"
METHOD = {"repeats": 5, "iterations": 121, "window": [20, 120]}
GRID = {"placement": ["1x1"], "precision": ["fp32"], "micro_batch_size": [128]}
PLAIN = {"workload": "ngc_pytorch_rn50", "image": "ngc-pytorch-20.03", "method": METHOD}


def experiment(**said: object) -> Experiment:
    """A playbook that says these things beside workload, image and method."""
    return Experiment.model_validate_json(json.dumps({**PLAIN, **said}))


@pytest.mark.parametrize(
    ("name", "iterations", "window"),
    [
        # Upstream: --prof 121 and iterations 20 to 120 for FP32 (seed 003 and the extraction
        # script of September 2020); iterations 25 to 125 for AMP (today's script).
        ("rn50-fp32", 121, (20, 120)),
        ("rn50-amp", 151, (25, 125)),
        ("rn50-amp-static", 151, (25, 125)),
    ],
)
def test_shipped_playbook_measures_as_the_seed_did(
    name: str, iterations: int, window: tuple[int, int]
) -> None:
    """Five repeats over upstream's own window, which the iterations asked for just cover."""
    found = yaml_reader.validated(yaml_reader.read(PLAYBOOKS / f"{name}.yaml"), Experiment)
    assert (found.method.repeats, found.method.iterations, found.method.window) == (
        5,
        iterations,
        window,
    )


@pytest.mark.parametrize("window", [[1, 2], [1, 120], [119, 120]])
def test_window_up_to_the_last_logged_iteration_is_fine(window: list[int]) -> None:
    """Of --prof 121 the iterations 1 to 120 are logged, and both ends may be measured."""
    assert experiment(method={**METHOD, "window": window}, grid=GRID).method.window == (*window,)


@pytest.mark.parametrize("window", [[0, 100], [-5, 100], [100, 100], [100, 20]])
def test_window_that_runs_nowhere_is_refused(window: list[int]) -> None:
    """A window begins at iteration 1 or later, and its end comes after its beginning."""
    needed = f"{window}; needed two iterations from 1 on, the first before the last"
    with pytest.raises(ValidationError, match=re.escape(needed)):
        experiment(method={**METHOD, "window": window}, grid=GRID)


def test_window_is_needed_unless_the_program_reports_its_own_result() -> None:
    """`rule: reported` takes what the program says of its whole run; a window would mislead."""
    bare = {name: value for name, value in METHOD.items() if name != "window"}
    with pytest.raises(ValidationError, match=r"no window; needed `window: \[FIRST, LAST\]`"):
        experiment(method=bare, grid=GRID)
    assert experiment(method={**bare, "rule": "reported"}, grid=GRID).method.window is None
    with pytest.raises(ValidationError, match="needed one of them"):
        experiment(method={**METHOD, "rule": "reported"}, grid=GRID)


def test_playbook_without_cases_or_with_both_kinds_is_refused() -> None:
    """Cases come from a grid or from a list; two sources would hide what is run."""
    case = {"placement": "1x1", "precision": "fp32", "micro_batch_size": 128}
    with pytest.raises(ValidationError, match="neither `grid` nor `cases`; needed exactly one"):
        experiment()
    with pytest.raises(ValidationError, match="both `grid` and `cases`; needed exactly one"):
        experiment(grid=GRID, cases=[case])
    assert experiment(cases=[case]).grid is None


def test_the_most_trials_are_not_fewer_than_the_least() -> None:
    """The limits are refused where an interval decides the number of trials between them."""
    repeats = {"min": 3, "max": 2, "until_interval": "1%"}
    with pytest.raises(ValidationError, match="2 with min: 3; needed at least as many"):
        experiment(method={**METHOD, "repeats": repeats}, grid=GRID)


@pytest.mark.parametrize(
    ("placement", "expected"), [("1x1", (1, 1)), ("4x8", (4, 8)), ("99999x999", (99999, 999))]
)
def test_placement_is_nodes_by_gpus(placement: str, expected: tuple[int, int]) -> None:
    """4x8 is 4 nodes of 8 GPUs, in this order."""
    case, *_ = matrix.cases(experiment(grid={**GRID, "placement": [placement]}))
    assert (case.nodes, case.gpus_per_node) == expected


@pytest.mark.parametrize(
    "placement", ["0x8", "4x0", "4x", "x8", "4 x 8", "4X8", "04x8", "4x8x2", "-1x8", "٤x٨", "4x8\n"]
)
def test_what_is_no_placement_is_refused(placement: str) -> None:
    """Only whole numbers from 1 on, in ASCII digits, with an x between them."""
    with pytest.raises(ValidationError, match="needed nodes x GPUs per node, such as 4x8"):
        experiment(grid={**GRID, "placement": [placement]})


@pytest.mark.parametrize(
    ("placement", "fits"), [("4x8", True), ("04x8", False), ("4x8x2", False), ("a 4x8", False)]
)
def test_editors_and_the_program_agree_on_placements(placement: str, *, fits: bool) -> None:
    """The published JSON Schema has the program's own pattern and its words."""
    axes = Experiment.model_json_schema()["$defs"]["Axes"]["properties"]
    items = axes["placement"]["items"]
    assert bool(re.search(items["pattern"], placement)) == fits
    assert items["patternErrorMessage"] == "needed nodes x GPUs per node, such as 4x8"


@pytest.mark.parametrize(
    ("name", "fits"),
    [("rn50-amp", True), ("a1", True), ("a", False), ("-a", False), ("a/b", False)],
)
def test_what_can_be_a_name_can_be_told(name: str, *, fits: bool) -> None:
    """By the rule that the files' own names keep to."""
    assert is_name(name) == fits


@pytest.mark.parametrize(
    ("method", "needed"),
    [
        ({"repeats": 0}, "greater than or equal to 1"),
        ({"repeats": 5.0}, "should be a valid integer"),
        ({"repeats": True}, "should be a valid integer"),
        ({"iterations": 2}, "greater than or equal to 3"),
        ({"window": [20]}, "Field required"),
        ({"time_limit_s": 0}, "greater than 0"),
        ({"stall_limit_s": -1}, "greater than 0"),
        ({"time_limit_s": float("nan")}, "should be a finite number"),
        ({"time_limit_s": float("inf")}, "should be a finite number"),
        ({"time_limit_s": 2592001}, "less than or equal to 2592000"),
        ({"repeat": 5}, "Extra inputs are not permitted"),
    ],
)
def test_method_that_cannot_be_meant_is_refused(method: dict[str, object], needed: str) -> None:
    """Counts are whole and positive, times finite and at most a month."""
    with pytest.raises(ValidationError, match=needed):
        experiment(method={**METHOD, **method}, grid=GRID)


@pytest.mark.parametrize(
    ("axes", "needed"),
    [
        ({"placement": []}, "at least 1 item"),
        ({"precision": ["fp16"]}, "should be 'fp32', 'amp' or 'bf16'"),
        ({"micro_batch_size": [0]}, "greater than or equal to 1"),
        ({"micro_batch_size": 128}, "should be a valid array"),
        ({"tensor_parallel": [0]}, "greater than or equal to 1"),
    ],
)
def test_axis_that_cannot_be_meant_is_refused(axes: dict[str, object], needed: str) -> None:
    """Every axis is a list of at least one value of its kind."""
    with pytest.raises(ValidationError, match=needed):
        experiment(grid={**GRID, **axes})
