"""docs/inventory.md and docs/playbook.md name every field, and none that is not there."""

import json
from pathlib import Path

import pytest

from orchestrator import workloads
from orchestrator.inputs import json_schema
from orchestrator.verbs import check
from tests.docs.fields import PAGES, TABLE, written
from tests.docs.pages import called


@pytest.mark.parametrize("path", PAGES, ids=called)
def test_tables_of_fields_are_those_of_the_models(path: Path) -> None:
    """Names, what they take, defaults and meanings; `python -m tests.docs.fields` writes them."""
    assert path.read_text(encoding="utf-8") == written(path)


@pytest.mark.parametrize("path", PAGES, ids=called)
def test_every_model_of_a_file_has_its_table(path: Path) -> None:
    """And every workload that ships has one of its parameters."""
    tables = {(kind, name) for _, kind, name, _ in TABLE.findall(path.read_text(encoding="utf-8"))}
    kind = path.stem
    wanted = {(kind, name) for name in (kind, *json.loads(check.build_schema(kind))["$defs"])}
    if kind == "playbook":
        wanted |= {("params", name) for name in workloads.names()}
    assert tables == wanted


def test_workloads_describe_their_parameters() -> None:
    """Each in a sentence, for the page and for editors."""
    for name in workloads.names():
        found = workloads.find(name)
        assert found is not None
        assert set(json_schema.meanings(found.params)) == set(found.params.model_fields), name
