"""Where a canary's trials stand in a plan, and what they are called."""

import pytest

from orchestrator.model.plan import Plan
from orchestrator.planning import bind, matrix, plan
from orchestrator.workloads import oneflow_gpt
from tests.planning.playbooks import experiment, mistakes
from tests.planning.recipes import recipe, seats

GRID = {"placement": ["1x2", "1x1"], "precision": ["fp32", "amp"], "micro_batch_size": [256]}


def built(repeats: object, watch: object) -> Plan:
    """Four cases and a canary."""
    method = {"repeats": repeats, "iterations": 21, "window": [5, 20], "canary": watch}
    return plan.build(recipe(grid=GRID, method=method))


def places(whole: Plan) -> dict[int, str]:
    """When the canary is measured, by how many other trials come before it."""
    order = [trial.canary for trial in whole.trials]
    return {
        sum(not before for before in order[:place]): canary
        for place, canary in enumerate(order)
        if canary
    }


def test_the_smallest_case_is_measured_at_start_middle_and_end() -> None:
    """With names and logs of their own, out of the way of scripts that read logs/*/*.log."""
    whole = built(5, True)
    assert places(whole) == {0: "start", 10: "middle", 20: "end"}
    canaries = [trial for trial in whole.trials if trial.canary]
    assert [trial.case.placement for trial in canaries] == ["1x1"] * 3
    assert canaries[1].name == "canary-1n1g-r50_b256_fp32_2"
    assert canaries[1].log == "canary/1n1g/r50_b256_fp32_2.log"
    assert [trial.ordinal for trial in whole.trials] == list(range(23))
    assert all(not trial.canary for trials in whole.by_case.values() for trial in trials)


def test_the_middle_comes_where_every_case_settles_early() -> None:
    """After half of the trials that run for certain: 3 of each case, not 9."""
    whole = built({"min": 3, "max": 9, "until_interval": "1%"}, {"at": ["middle"]})
    assert places(whole) == {6: "middle"}


@pytest.mark.parametrize(("pattern", "placement"), [("1x2", "1x2"), ("1x*", "1x1")])
def test_a_playbook_may_name_the_case(pattern: str, placement: str) -> None:
    """The smallest that fits the pattern."""
    canaries = [trial for trial in built(2, {"case": pattern}).trials if trial.canary]
    assert {trial.case.placement for trial in canaries} == {placement}


def test_plans_without_a_canary_say_nothing_of_one() -> None:
    """Its trials alone name their place."""
    for watch, shown in ((True, 3), (False, 0)):
        method = {"repeats": 2, "iterations": 21, "window": [5, 20], "canary": watch}
        found = recipe(grid=GRID, method=method)
        whole = plan.build(found)
        bound = [bind.first(found, trial, seats(found)) for trial in whole.trials]
        assert str(bind.describe(whole, bound)).count("'canary': '") == shown


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        (
            {"canary": {"case": "4x8"}},
            ("method", "canary", "case"),
            "'4x8' is no case; needed a placement or name of one, maybe with `*`",
        ),
    ],
)
def test_what_cannot_hold_together_is_refused(
    method: dict[str, object], path: tuple[str | int, ...], text: str
) -> None:
    """Each with its place in the playbook."""
    plain = {"repeats": 1, "iterations": 21, "window": [5, 20]}
    assert mistakes(experiment(grid=GRID, method={**plain, **method})) == [(path, text)]


def test_a_case_that_cannot_be_named_is_refused_for_what_it_lacks() -> None:
    """GPT's names are made of parameters: without them the conflict is theirs, not the canary's."""
    case = {"placement": "1x1", "precision": "amp", "micro_batch_size": 2}
    method = {"repeats": 1, "iterations": 100, "window": [20, 60], "canary": {"case": "1x1"}}
    found = experiment(workload="oneflow_gpt", cases=[case], method=method)
    texts = [conflict.text for conflict in matrix.conflicts(found, oneflow_gpt.WORKLOAD, None)]
    assert any("params.num_layers" in text for text in texts)
    assert not any("is no case" in text for text in texts)
