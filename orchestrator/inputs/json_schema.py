"""JSON Schemas of models, for editors: with what the source says of each field."""

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


def of(model: type[BaseModel]) -> JsonSchemaValue:
    """Return the JSON Schema of a model."""
    return model.model_json_schema(schema_generator=_ForEditors)


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Map each field of a model to the docstring below it in the source.

    pydantic's ``use_attribute_docstrings`` would read every model's source at every start.
    """
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if not issubclass(kind, BaseModel) or kind is BaseModel:
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                found[ast.unparse(field.target)] = inspect.cleandoc(ast.literal_eval(text.value))
    return found


class _ForEditors(GenerateJsonSchema):
    """JSON Schema of draft 7, which editors know, without pydantic's titles and nulls."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Describe each key by the docstring of its field."""
        generated = super().model_schema(schema)
        for key, meaning in meanings(schema["cls"]).items():
            generated["properties"][key]["description"] = meaning
        return generated

    def field_title_should_be_set(self, _: object) -> bool:
        """Omit titles, which only repeat the key."""
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Return the value's own schema: a key without a value is left out, not null."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Include the default, unless it is None."""
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        """Describe a tuple as a list of one type: draft 7 cannot type each place."""
        generated = super().tuple_schema(schema)
        places = generated.pop("prefixItems", None)
        return {**generated, "items": places[0]} if places else generated

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Forbid all keys that match none of the patterns."""
        generated = super().dict_schema(schema)
        closed = {"additionalProperties": False} if "patternProperties" in generated else {}
        return {**generated, **closed}
