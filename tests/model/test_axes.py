"""Each axis of ``Case`` is known to playbooks, reports and ``verify``."""

from dataclasses import fields, replace
from typing import Any

import pytest

from orchestrator.model.case import AXES, Case
from orchestrator.model.experiment import Axes, CaseEntry, Exclusion
from orchestrator.verifying import formulas

ONE = Case(nodes=2, gpus_per_node=8, micro_batch_size=4, precision="fp32", device="cuda")


def test_no_axis_is_forgotten() -> None:
    """Each field of a case that is 1 by default is listed."""
    assert tuple(field.name for field in fields(Case) if field.default == 1) == AXES


@pytest.mark.parametrize("name", AXES)
def test_an_axis_is_known_everywhere(name: str) -> None:
    """Grids, cases, exclusions, documents and comparisons of cases have it."""
    changed: dict[str, Any] = {name: 2}
    other = replace(ONE, **changed)
    assert all(name in model.model_fields for model in (Axes, CaseEntry, Exclusion))
    assert other.document()[name] == 2
    assert other.comparable != ONE.comparable


@pytest.mark.parametrize("name", AXES)
def test_verify_counts_the_samples_of_a_step_by_itself(name: str) -> None:
    """Its own formula, which shares no code with the case's, agrees for each axis."""
    changed: dict[str, Any] = {name: 2}
    other = replace(ONE, **changed)
    assert formulas.global_batch(other.document()) == other.global_batch_size
