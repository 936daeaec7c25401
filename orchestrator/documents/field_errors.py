"""Errors of pydantic, traced to values in the file and put into plain messages."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator import words
from orchestrator.documents.document import Tree, Where, child

_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_LIMITS = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} in it",
    "too_long": "at most {max_length} in it",
}
_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def messages(
    error: ValidationError, data: Tree, model: type[BaseModel], at: Where
) -> Iterator[tuple[Where, str, bool]]:
    """Yield for each value its path in the data, words, and whether they are about its key.

    Args:
        at: where the data lies in the file; a key on that way may be named like a secret.
    """
    groups: dict[tuple[Where, str, bool], list[ErrorDetails]] = {}
    values: dict[Where, Tree] = {}
    for detail in error.errors(include_url=False):
        path, value = _follow(detail["loc"], data)
        if _is_echo(detail, value):
            continue
        last = detail["loc"][-1] if detail["loc"] else ""
        missing = last if detail["type"] == "missing" and isinstance(last, str) else ""
        about_key = detail["type"] == "extra_forbidden" or last == "[key]"
        values[path] = str(path[-1]) if about_key else value
        groups.setdefault((path, missing, about_key), []).append(detail)
    for (path, missing, about_key), group in groups.items():
        if missing:
            text = _missing(missing, _models_at(model, path))
        elif group[0]["type"] == "extra_forbidden":
            text = _unknown(str(path[-1]), _models_at(model, path[:-1]))
        else:
            text = _misfit((*at, *path), values[path], group)
        yield path, text, about_key


def _follow(location: Where, data: Tree) -> tuple[Where, Tree]:
    """Return the path and the value at a location of pydantic's.

    That also has steps that are in no file: the names of union branches and of validators.
    """
    path: Where = ()
    for step in location:
        try:
            data, path = child(data, step), (*path, step)
        except LookupError:
            continue
    return path, data


def _is_echo(detail: ErrorDetails, value: Tree) -> bool:
    """Return True for a list that is too short only without the items that pydantic refused."""
    if detail["type"] != "too_short" or not isinstance(value, list | dict):
        return False
    return len(value) >= int(detail["ctx"]["min_length"])


def _models_at(model: type[BaseModel], path: Where) -> Sequence[type[BaseModel]]:
    """Return the models that the value at a path may be."""
    models = [model]
    for step in path:
        fields = [one.model_fields[step] for one in models if step in one.model_fields]
        if fields:
            models = [found for field in fields for found in _models(field.annotation)]
    return models


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _models(inner)]


def _missing(key: str, models: Sequence[type[BaseModel]]) -> str:
    kinds = [_kind(one.model_fields[key].annotation) for one in models if key in one.model_fields]
    return f"key {words.shown(key)} is missing; needed: {words.any_of(kinds)}"


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return words.one_of([words.shown(option) for option in get_args(annotation)])
    is_list = get_origin(annotation) in (tuple, list)
    return _PLAIN.get(annotation, "a list" if is_list else "a mapping")


def _unknown(key: str, models: Sequence[type[BaseModel]]) -> str:
    seen, names = f"unknown key {words.shown(key)}", [n for one in models for n in one.model_fields]
    if words.is_secret([key]):
        return f"{seen}; {words.NO_SECRETS}"
    if question := words.did_you_mean(key, names):
        return f"{seen}; {question}"
    return f"{seen}; needed one of {', '.join(names)}" if names else f"{seen}; needed none here"


def _misfit(path: Where, value: Tree, group: Sequence[ErrorDetails]) -> str:
    own = [str(detail["ctx"]["error"]) for detail in group if detail["type"] == "value_error"]
    places = [detail for detail in group if detail["type"] == "missing"]  # of [20] in two
    needed = words.any_of(map(_needed, places[-1:] or group))
    if words.is_secret(path):
        hidden = f"got a value that is not shown; {words.NO_SECRETS}"
        return hidden if own else f"{hidden}; needed {needed}"
    if own:
        return own[0]
    is_type = any(detail["type"] in _KINDS for detail in group)
    hint = _hint(value, needed, [option for detail in group for option in _options(detail)])
    return f"{_describe(value, needed, is_type=is_type)}; needed {needed}{hint}"


def _needed(detail: ErrorDetails) -> str:
    kind, limits = detail["type"], detail.get("ctx", {}).items()
    if kind == "missing":
        return f"{int(detail['loc'][-1]) + 1} in it"
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _LIMITS:
        # Limits of a float come as 0.0, and are shown as they were written: 0.
        return _LIMITS[kind].format(
            **{
                name: int(limit) if isinstance(limit, float) and limit.is_integer() else limit
                for name, limit in limits
            }
        )
    if options := _options(detail):
        return words.one_of([words.shown(option) for option in options])
    return detail["msg"].partition(" should ")[2].removeprefix("be ") or detail["msg"]


def _options(detail: ErrorDetails) -> list[str]:
    """Return the words that pydantic would have taken, where there are only some."""
    return re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))


def _describe(value: Tree, needed: str, *, is_type: bool) -> str:
    if needed == "a list" and not isinstance(value, dict | None):
        return "got a single value"
    kind = "" if isinstance(value, bool) else _PLAIN.get(type(value), "")
    return f"got {words.shown(value)}" + (f" ({kind})" if kind and is_type else "")


def _hint(value: Tree, needed: str, options: Iterable[str]) -> str:
    """Return what may have been meant, where it can be guessed."""
    if needed == "a list" and not isinstance(value, dict | list | None):
        return f", such as [{words.shown(value)}]"
    if needed == "text" and isinstance(value, int | float):
        return "; quote it"
    question = words.did_you_mean(value, options) if isinstance(value, str) else ""
    return f"; {question}" if question else ""
