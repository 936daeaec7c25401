"""Errors of pydantic, traced to values in the file and put into plain messages."""

import itertools
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator import words
from orchestrator.documents.document import Tree, Where, child

_Types: TypeAlias = tuple[object, ...]

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


@dataclass(frozen=True, slots=True)
class _FieldError:
    """One of pydantic's errors, brought to its place in the file.

    Args:
        path: of the value, or of the mapping that lacks ``missing``.
        value: what is there.
        candidates: the types that it may have.
    """

    path: Where
    value: Tree
    candidates: _Types
    error: ErrorDetails
    missing: str = ""
    about_key: bool = False

    @property
    def kind(self) -> str:
        return self.error["type"]


def messages(
    error: ValidationError, data: Tree, model: type[BaseModel], at: Where
) -> Iterator[tuple[Where, str, bool]]:
    """For each field_error: its path in the data, words, and whether they are about the key.

    Args:
        at: where the data lies in the file; a key on that way may be named like a secret.
    """
    groups: dict[tuple[Where, str, bool], list[_FieldError]] = {}
    for detail in error.errors(include_url=False):
        field_error = _placed(detail, data, model)
        if not _is_echo(field_error):
            subject = (field_error.path, field_error.missing, field_error.about_key)
            groups.setdefault(subject, []).append(field_error)
    for (path, _, about_key), group in groups.items():
        yield path, _message((*at, *path), group), about_key


def _placed(error: ErrorDetails, data: Tree, model: type[BaseModel]) -> _FieldError:
    location, kind = error["loc"], error["type"]
    names_key = kind in ("missing", "extra_forbidden")
    start = _FieldError((), data, (model,), error)
    field_error = _traced(start, location[:-1] if names_key else location)
    if kind == "missing" and isinstance(location[-1], str):
        return replace(field_error, missing=location[-1])
    if kind == "extra_forbidden":
        return replace(field_error, path=(*field_error.path, location[-1]), about_key=True)
    if location[-1:] == ("[key]",):
        return replace(field_error, value=str(field_error.path[-1]), about_key=True)
    return field_error


def _traced(field_error: _FieldError, location: Where) -> _FieldError:
    """The field_error at the end of its location, followed through data and types at once.

    A location also has elements that are in no file: the names of union branches and of
    validators. Data alone cannot tell them from keys; the types can.
    """
    in_branch = False
    for step in location:
        if len(field_error.candidates) > 1 and not in_branch:
            in_branch = True
            continue
        try:
            value = child(field_error.value, step)
        except LookupError:
            continue
        candidates = _flat(_inside(candidate, step) for candidate in field_error.candidates)
        field_error = replace(
            field_error, path=(*field_error.path, step), value=value, candidates=candidates
        )
        in_branch = False
    return field_error


def _is_echo(field_error: _FieldError) -> bool:
    """Whether a list is only too short for pydantic, which does not count the items it refused."""
    if field_error.kind != "too_short" or not isinstance(field_error.value, list | dict):
        return False
    return len(field_error.value) >= int(field_error.error["ctx"]["min_length"])


def _choices(annotation: object) -> _Types:
    """The types that an annotation stands for: unions taken apart, without None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _choices(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return _flat(map(_choices, get_args(annotation)))
    return () if annotation in (None, types.NoneType) else (annotation,)


def _inside(candidate: object, step: str | int) -> _Types:
    """The types of what lies inside a value of the type ``candidate``."""
    arguments = get_args(candidate)
    if isinstance(step, str):
        return _choices(_fields(candidate).get(step)) or _flat(map(_choices, arguments[1:2]))
    is_fixed = get_origin(candidate) is tuple and arguments[-1:] != (Ellipsis,)
    return _flat(map(_choices, arguments[step : step + 1] if is_fixed else arguments[:1]))


def _fields(candidate: object) -> Mapping[str, object]:
    """The types of a model's fields; of anything else none."""
    if isinstance(candidate, type) and issubclass(candidate, BaseModel):
        return {name: info.annotation for name, info in candidate.model_fields.items()}
    return {}


def _flat(groups: Iterable[_Types]) -> _Types:
    return tuple(itertools.chain.from_iterable(groups))


def _message(path: Where, group: list[_FieldError]) -> str:
    first = group[0]
    if first.kind == "extra_forbidden":
        return _unknown(str(path[-1]), _flat(map(tuple, map(_fields, first.candidates))))
    if first.missing:
        kinds = _flat(_inside(candidate, first.missing) for candidate in first.candidates)
        return f"key {words.shown(first.missing)} is missing; needed: {_any_kind(kinds)}"
    own = next(filter(None, map(_own_words, group)), "")
    needed = words.any_of(map(_needed, group))
    if words.is_secret(path):
        hidden = f"got a value that is not shown; {words.NO_SECRETS}"
        return hidden if own else f"{hidden}; needed {needed}"
    return own or f"{_seen(group, needed)}; needed {needed}{_hint(group, needed)}"


def _unknown(key: str, fields: _Types) -> str:
    seen, names = f"unknown key {words.shown(key)}", [str(name) for name in fields]
    if words.is_secret([key]):
        return f"{seen}; {words.NO_SECRETS}"
    if question := words.did_you_mean(key, names):
        return f"{seen}; {question}"
    return f"{seen}; needed one of {', '.join(names)}" if names else f"{seen}; needed none here"


def _any_kind(candidates: _Types) -> str:
    return words.any_of(map(_kind, candidates))


def _kind(candidate: object) -> str:
    plain = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if get_origin(candidate) is Literal:
        return words.one_of([words.shown(option) for option in get_args(candidate)])
    if _fields(candidate) or get_origin(candidate) in (dict, Mapping):
        return "a mapping"
    return next((word for kind, word in plain.items() if kind is candidate), "a list")


def _own_words(field_error: _FieldError) -> str:
    """The message of a validator of ours; empty for pydantic's own messages."""
    return str(field_error.error["ctx"]["error"]) if field_error.kind == "value_error" else ""


def _needed(field_error: _FieldError) -> str:
    error, kind = field_error.error, field_error.kind
    if kind == "missing":  # of a list with a fixed number of places
        return f"{len(get_args(field_error.candidates[0]))} in it"
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _LIMITS:
        limits = error.get("ctx", {}).items()
        return _LIMITS[kind].format(**{name: _number(limit) for name, limit in limits})
    if options := _options(field_error):
        return words.one_of([words.shown(option) for option in options])
    return error["msg"].partition(" should ")[2].removeprefix("be ") or error["msg"]


def _options(field_error: _FieldError) -> list[str]:
    """The words that pydantic would have taken, where there are only some."""
    return re.findall(r"'([^']*)'", str(field_error.error.get("ctx", {}).get("expected", "")))


def _number(limit: object) -> object:
    """The limit without the ``.0`` that pydantic gives to the limits of a float."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _seen(group: list[_FieldError], needed: str) -> str:
    value = group[0].value
    kinds = {str: "text", int: "a whole number", float: "a number"}
    if needed == "a list" and not isinstance(value, dict | None):
        return "got a single value"
    if type(value) in kinds and any(field_error.kind in _KINDS for field_error in group):
        return f"got {words.shown(value)} ({kinds[type(value)]})"
    return f"got {words.shown(value)}"


def _hint(group: list[_FieldError], needed: str) -> str:
    """What may have been meant, where it can be guessed."""
    value = group[0].value
    if needed == "a list" and not isinstance(value, dict | list | None):
        return f", such as [{words.shown(value)}]"
    if needed == "text" and isinstance(value, int | float):
        return "; quote it"
    options = itertools.chain.from_iterable(map(_options, group))
    question = words.did_you_mean(value, options) if isinstance(value, str) else ""
    return f"; {question}" if question else ""
