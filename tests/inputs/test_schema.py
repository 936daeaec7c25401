"""The JSON Schemas that ship for editors: current, complete, and true to what the program takes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from orchestrator import errors
from orchestrator.documents import Document, Tree
from orchestrator.files import yaml_reader
from orchestrator.verbs import check
from tests import ROOT
from tests.cli.bad_files import BAD, INVENTORY, PLAYBOOK

FOLDERS = {"inventory": "inventory", "playbook": "playbooks"}
FILES = sorted(path for folder in FOLDERS.values() for path in (ROOT / folder).glob("*.yaml"))
GOOD = {"inventory": INVENTORY, "playbook": PLAYBOOK}
# What no word of JSON Schema's draft 7 can say: paths that leave, numbers that are no address.
BEYOND_SCHEMAS = (
    *("without '..'", "needed a folder that holds data", "needed an IP address"),
    *("needed two iterations", "needed `reason:`", "needed each index once", "an absolute path"),
)


class Schema(BaseModel):
    """The part of JSON Schema, draft 7, that our schemas use; any other word is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)

    draft: str = Field(default="", alias="$schema")
    ref: str = Field(default="", alias="$ref")
    defs: dict[str, "Schema"] = Field(default={}, alias="$defs")
    title: str = ""
    description: str = ""
    default: object = None
    type: str = ""
    enum: list[str] | None = None
    pattern: str = ""
    pattern_error: str = Field(default="", alias="patternErrorMessage")
    minimum: float = float("-inf")
    above: float = Field(default=float("-inf"), alias="exclusiveMinimum")
    maximum: float = float("inf")
    items: "Schema | None" = None
    least: int = Field(default=0, alias="minItems")
    most: float = Field(default=float("inf"), alias="maxItems")
    properties: dict[str, "Schema"] = {}
    patterns: dict[str, "Schema"] = Field(default={}, alias="patternProperties")
    others: "bool | Schema" = Field(default=True, alias="additionalProperties")
    names: "Schema | None" = Field(default=None, alias="propertyNames")
    required: list[str] = []
    any_of: list["Schema"] = Field(default=[], alias="anyOf")
    one_of: list["Schema"] = Field(default=[], alias="oneOf")


def shipped(kind: str) -> Path:
    """Where the schema of a kind of file lies."""
    return ROOT / FOLDERS[kind] / f"{kind}.schema.json"


def schema(kind: str) -> Schema:
    """The schema that ships for a kind of file."""
    return Schema.model_validate_json(shipped(kind).read_text())


def faults(value: Tree, by: Schema, root: Schema) -> Iterator[str]:
    """What a validator would complain about."""
    if by.ref:
        yield from faults(value, root.defs[by.ref.removeprefix("#/$defs/")], root)
    yield from faults_of_choice(value, by, root)
    if by.type and not has_type(value, by.type):
        yield f"{value!r} is no {by.type}"
    elif isinstance(value, str):
        yield from faults_of_text(value, by)
    elif isinstance(value, int | float):
        if not by.minimum <= value <= by.maximum or value <= by.above:
            yield f"{value} is not between {by.minimum}, {by.above} and {by.maximum}"
    elif isinstance(value, list):
        yield from faults_of_list(value, by, root)
    elif isinstance(value, dict):
        yield from faults_of_mapping(value, by, root)


def faults_of_choice(value: Tree, by: Schema, root: Schema) -> Iterator[str]:
    """Of what must fit any, or exactly one, of several schemas."""
    if by.any_of and not any(not any(faults(value, choice, root)) for choice in by.any_of):
        yield f"{value!r} is none of the choices"
    if by.one_of and sum(not any(faults(value, choice, root)) for choice in by.one_of) != 1:
        yield f"{value!r} is none or several of the choices"


def has_type(value: Tree, name: str) -> bool:
    """Whether JSON Schema calls the value so."""
    kinds = {"string": str, "boolean": bool, "array": list, "object": dict, "integer": int}
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kinds[name]) and isinstance(value, bool) == (name == "boolean")


def faults_of_text(value: str, by: Schema) -> Iterator[str]:
    """Of a text: whether it is listed, and its pattern."""
    if by.enum is not None and value not in by.enum:
        yield f"{value!r} is not in {by.enum}"
    if by.pattern and not matches(by.pattern, value):
        yield f"{value!r} does not match {by.pattern}"


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of ours matches, as in JavaScript, whose $ takes no line's end."""
    return re.search(pattern.removesuffix("$") + r"\Z", text) is not None


def faults_of_list(value: list[Tree], by: Schema, root: Schema) -> Iterator[str]:
    """Of a list: its length, and each item."""
    if not by.least <= len(value) <= by.most:
        yield f"{len(value)} items"
    for item in value:
        if by.items:
            yield from faults(item, by.items, root)


def faults_of_mapping(value: dict[str, Tree], by: Schema, root: Schema) -> Iterator[str]:
    """Of a mapping: keys that lack, keys that are too many, and each value."""
    yield from (f"{key} is missing" for key in by.required if key not in value)
    for key, inside in value.items():
        if by.names:
            yield from faults(key, by.names, root)
        matching = [fitting for pattern, fitting in by.patterns.items() if matches(pattern, key)]
        named = [by.properties[key]] if key in by.properties else matching
        if not named and isinstance(by.others, Schema):
            named = [by.others]
        if not named and by.others is False:
            yield f"{key} is not known"
        for fitting in named:
            yield from faults(inside, fitting, root)


def parts(of: Schema) -> Iterator[Schema]:
    """The schema and every schema inside it."""
    yield of
    inside = [*of.defs.values(), *of.properties.values(), *of.patterns.values(), *of.any_of]
    for part in (*inside, of.items, of.others, of.names):
        if isinstance(part, Schema):
            yield from parts(part)


@pytest.mark.parametrize("kind", FOLDERS)
def test_shipped_schema_is_current(kind: str) -> None:
    """`dlperf-orch schema KIND` prints what ships; written anew after every change of a model."""
    assert shipped(kind).read_text() == check.build_schema(kind)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shipped_file_names_its_schema_and_passes_it(path: Path) -> None:
    """An editor that reads the first line finds the schema, and has nothing to complain about."""
    first = path.read_text().splitlines()[0]
    named = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    by = Schema.model_validate_json(named.read_text())
    assert list(faults(yaml_reader.read(path).data, by, by)) == []


@pytest.mark.parametrize("kind", FOLDERS)
def test_good_file_passes_its_schema(tmp_path: Path, kind: str) -> None:
    """A file with nearly every key, and the values that the program takes for good."""
    (tmp_path / "good.yaml").write_text(GOOD[kind])
    by = schema(kind)
    assert list(faults(yaml_reader.read(tmp_path / "good.yaml").data, by, by)) == []


def test_editors_refuse_what_the_models_refuse(tmp_path: Path) -> None:
    """Of each bad file that is YAML at all, program and schema say the same."""
    judged = {"inventory": 0, "playbook": 0}
    for bad in BAD:
        kind = bad.name.rpartition("-")[2]
        path = tmp_path / f"{bad.name}.yaml"
        path.write_bytes(bad.content.encode())
        try:
            document = yaml_reader.read(path)
        except errors.ConfigError:
            continue
        if kind in judged and not any(words in bad.words for words in BEYOND_SCHEMAS):
            by = schema(kind)
            refused = any(faults(document.data, by, by))
            assert refused == (not fits(document, kind)), f"{bad.name}: {bad.words}"
            judged[kind] += refused
    assert min(judged.values()) > 15


def fits(document: Document, kind: str) -> bool:
    """Whether the document is a model, whatever else may be wrong with it."""
    try:
        yaml_reader.validated(document, check.SCHEMAS[kind])
    except errors.ConfigError:
        return False
    return True


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_key_is_described_and_every_mapping_closed(kind: str) -> None:
    """An editor shows what a key means, and marks what is no key; only params are open."""
    for part in parts(schema(kind)):
        for key, inside in part.properties.items():
            assert inside.description, key
            assert inside.others is not True or inside.type != "object", key
        assert part.others is False or not part.properties


def test_playbook_has_either_a_grid_or_cases(tmp_path: Path) -> None:
    """With both or with neither of them, the editor complains as the program does."""
    by = schema("playbook")
    grid, rest = PLAYBOOK.partition("grid:")[::2]
    case = "cases: [{placement: 1x1, precision: fp32, micro_batch_size: 4}]\n"
    path = tmp_path / "pb.yaml"
    for content, good in ((grid, False), (PLAYBOOK + case, False), (grid + case, True)):
        path.write_text(content)
        assert (not any(faults(yaml_reader.read(path).data, by, by))) == good, rest


def test_schema_is_json_of_the_draft_that_editors_know() -> None:
    """Draft 7, which yaml-language-server reads as a whole."""
    for kind in FOLDERS:
        document = json.loads(shipped(kind).read_text())
        assert document["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert document["title"] == f"dlperf-orch {kind}"
