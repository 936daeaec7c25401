"""check and schema: validate files without changing anything; JSON Schemas for editors."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.inputs.user_files import Playbook
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image
from orchestrator.model.text import Noun

KINDS = {"nodes": "inventory", "slurm": "inventory", "workload": "playbook", "base": "image"}
SCHEMAS: dict[str, type[Noun]] = {"inventory": Cluster, "playbook": Experiment}


class _ForEditors(GenerateJsonSchema):
    """JSON Schema of draft 7, which editors know, without pydantic's titles and nulls."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """With the meaning of each key."""
        generated = super().model_schema(schema)
        for key, meaning in meanings(schema["cls"]).items():
            generated["properties"][key]["description"] = meaning
        return generated

    def field_title_should_be_set(self, _: object) -> bool:
        """Never: a key made into a title says nothing that the key does not."""
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """The value itself: a key without a value is left out, not null."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """With the default, unless it is to be absent."""
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        """A list of one kind: draft 7 cannot type each place."""
        generated = super().tuple_schema(schema)
        places = generated.pop("prefixItems", None)
        return {**generated, "items": places[0]} if places else generated

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """With no other keys than those that match."""
        generated = super().dict_schema(schema)
        return (
            {**generated, "additionalProperties": False}
            if "patternProperties" in generated
            else generated
        )


def check(paths: list[str], voice: Voice) -> int:
    """Validate every file; exit code.

    Raises:
        ConfigError: with the problems of all files.
    """
    mistakes: list[errors.Mistake] = []
    kinds: dict[str, str] = {}
    valid: dict[str, Cluster | Playbook | Image] = {}
    for path in paths:
        try:
            kinds[path], valid[path] = _check(Path(path))
        except errors.ConfigError as error:
            mistakes += error.mistakes
    for path, kind in kinds.items():
        voice.line(f"{path}: a valid {kind}")
    for line in _unprepared(valid):
        voice.line(line)
    if mistakes:
        raise errors.ConfigError(mistakes)
    voice.document({"exit_code": 0, "files": kinds})
    return 0


def schema(kind: str) -> str:
    """The JSON Schema of a kind of file, as text.

    Raises:
        UsageError: there is no such kind.
    """
    model = SCHEMAS.get(kind)
    if model is None:
        raise errors.UsageError(
            f"there is no schema {kind!r}", code="NO-SCHEMA", fix=f"one of {', '.join(SCHEMAS)}"
        )
    generated = schema_of(model)
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    return json.dumps({**draft, **generated, "title": f"dlperf-orch {kind}"}, indent=2) + "\n"


def schema_of(model: type[BaseModel]) -> JsonSchemaValue:
    """The JSON Schema of a model."""
    return model.model_json_schema(schema_generator=_ForEditors)


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """What the source says below each field of a model.

    pydantic's ``use_attribute_docstrings`` would read every model's source at every start.
    """
    said: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            said |= _below_fields(kind)
    return said


def _below_fields(kind: type[BaseModel]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(str(text.value.value))
        for field, text in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _unprepared(valid: Mapping[str, Cluster | Playbook | Image]) -> Iterator[str]:
    """Lines about playbooks whose image the one inventory beside them does not have prepared."""
    clusters = [(path, noun) for path, noun in valid.items() if isinstance(noun, Cluster)]
    if len(clusters) != 1 or not clusters[0][1].nodes or not clusters[0][1].in_containers:
        return
    ((path, cluster),) = clusters
    prepared = {user_files.image(choice)[0].name for choice in cluster.images}
    for other, noun in valid.items():
        if isinstance(noun, Playbook) and noun.image.name not in prepared:
            needed = f"`images:` of {path} with {noun.image.name}"
            yield f"{other}: its image is not prepared there; needed {needed}"


def _check(path: Path) -> tuple[str, Cluster | Playbook | Image]:
    document = yaml_reader.draft(path)
    keys = document.data if isinstance(document.data, dict) else {}
    kinds = list({kind: key for key, kind in KINDS.items() if key in keys})
    if len(kinds) != 1:
        text = "cannot tell what this file is; needed one of the keys nodes (inventory), workload"
        unclear = document.mistake((), f"{text} (playbook) or base (image)")
        raise errors.ConfigError(document.problems or [unclear])
    if kinds[0] == "inventory":
        return kinds[0], user_files.judged_cluster(document)
    if kinds[0] == "playbook":
        return kinds[0], user_files.judged_playbook(document, path.stem)
    return kinds[0], user_files.judged_image(document)
