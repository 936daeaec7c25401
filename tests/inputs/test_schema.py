"""The JSON Schemas that ship for editors: current, complete, and true to what is accepted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator import errors
from orchestrator.documents import Document
from orchestrator.files import yaml_reader
from orchestrator.verbs import check
from tests import ROOT
from tests.cli.bad_files import BAD, INVENTORY, PLAYBOOK

FOLDERS = {"inventory": "inventory", "playbook": "playbooks"}
FILES = sorted(path for folder in FOLDERS.values() for path in (ROOT / folder).glob("*.yaml"))
# What no word of JSON Schema's draft 7 can say: paths that leave, numbers that are no address.
BEYOND_SCHEMAS = (
    *("without '..'", "needed a folder that holds data", "needed an IP address"),
    *(
        "needed two iterations",
        "needed `reason:`",
        "needed each index once",
        "needed each value once",
        "an absolute path",
    ),
)
CASE = "cases: [{placement: 1x1, precision: fp32, micro_batch_size: 4}]\n"
GRID = PLAYBOOK.partition("grid:")[0]


def schema(kind: str) -> dict[str, Any]:
    """Return the schema that ships for a kind of file."""
    path = ROOT / FOLDERS[kind] / f"{kind}.schema.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _matches_as_in_javascript(
    _: object, pattern: str, value: object, __: object
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error if a text does not match: $ does not match before a line's end."""
    ends = pattern.removesuffix("$") + r"\Z"
    if isinstance(value, str) and not re.search(ends, value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern}")


# To JSON Schema 22.0 is an integer; the program is stricter there.
Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # in its stubs
    jsonschema.Draft7Validator,
    {"pattern": _matches_as_in_javascript},
    type_checker=jsonschema.Draft7Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


def accepts(kind: str, document: Document) -> bool:
    """Return True if an editor has nothing to complain about."""
    return bool(Validator(schema(kind)).is_valid(document.data))


def fits(kind: str, document: Document) -> bool:
    """Return True if the document is a model, whatever else may be wrong with it."""
    try:
        yaml_reader.validated(document, check.SCHEMAS[kind])
    except errors.ConfigError:
        return False
    return True


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_shipped_schema_is_current_and_of_draft_7(kind: str) -> None:
    """`dlperf-orch schema KIND` prints it; yaml-language-server reads that draft as a whole."""
    found = schema(kind)
    text = (ROOT / FOLDERS[kind] / f"{kind}.schema.json").read_text()
    assert text == check.build_schema(kind)
    assert found["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert found["title"] == f"dlperf-orch {kind}"
    jsonschema.Draft7Validator.check_schema(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_shipped_file_names_its_schema_and_passes_it(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    named = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    Validator(json.loads(named.read_text())).validate(yaml_reader.read(path).data)


@pytest.mark.parametrize(
    ("kind", "text", "good"),
    [
        ("inventory", INVENTORY, True),
        ("playbook", PLAYBOOK, True),
        ("playbook", GRID + CASE, True),
        ("playbook", GRID, False),
        ("playbook", PLAYBOOK + CASE, False),
        *(
            ("playbook", PLAYBOOK.replace("1x1", f"'{placement}'"), placement == "4x8")
            for placement in ("4x8", "04x8", "4x8x2", "a 4x8")
        ),
    ],
)
def test_editors_and_the_program_agree(kind: str, text: str, good: bool) -> None:
    """A playbook has either a grid or cases; placements have one pattern."""
    document = yaml_reader.document(text, "it")
    assert accepts(kind, document) == fits(kind, document) == good


def test_editors_refuse_what_the_models_refuse() -> None:
    """Of each bad file that is YAML at all."""
    judged = {"inventory": 0, "playbook": 0}
    for bad in BAD:
        kind = bad.name.rpartition("-")[2]
        try:
            document = yaml_reader.document(bad.content, bad.name)
        except errors.ConfigError:
            continue
        if kind in judged and not any(words in bad.words for words in BEYOND_SCHEMAS):
            accepted = accepts(kind, document)
            assert accepted == fits(kind, document), f"{bad.name}: {bad.words}"
            judged[kind] += not accepted
    assert min(judged.values()) > 15


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_key_is_described_and_every_mapping_closed(kind: str) -> None:
    """An editor shows what a key means, and marks what is no key; only params are open."""

    def list_parts(part: object) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            yield part
        if isinstance(part, dict | list):
            for inside in part.values() if isinstance(part, dict) else part:
                yield from list_parts(inside)

    found = [part for part in list_parts(schema(kind)) if "properties" in part]
    assert len(found) > 5
    for part in found:
        assert part["additionalProperties"] is False
        for key, inside in part["properties"].items():
            assert inside["description"], key
            assert inside.get("additionalProperties") is not True or inside["type"] != "object", key
