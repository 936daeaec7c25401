"""A YAML document in memory with the place of each value, its ranges, and errors of pydantic."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator import errors, nodeset, words

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"
Where: TypeAlias = tuple[str | int, ...]
Position: TypeAlias = tuple[int, int]  # line and column, both from 1, the column in characters

MOST = 4096  # entries that one range stands for
# Keys in which a range may stand, by the list whose entries have them.
_RANGED: Mapping[str, tuple[str, ...]] = {"nodes": ("name", "address"), "hcas": ("name",)}
# In pydantic's messages, such as "List should have at most 2 items after validation, not 3".
_NEEDED = re.compile(r" should (?:be |have |match )?(.*?)(?: after validation.*|, got .*)?$")
_PLAIN = {
    "an object": "a mapping",
    "a valid array": "a list",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A file's content as plain data, with the line and column of every value.

    Args:
        file: as the user gave it.
        starts: where each value starts, by its path; the root's is ``()``.
        key_starts: where each key starts, by the path of its value.
        written: after ranges were expanded, the path in the file of each item of a list.
    """

    file: str
    data: Tree
    starts: Mapping[Where, Position]
    key_starts: Mapping[Where, Position]
    written: Mapping[Where, Where] = field(default_factory=dict)

    def mistake(self, path: Where, text: str, *, key: bool = False) -> errors.Mistake:
        """Return the mistake ``text`` about the value at ``path``, or about its key.

        A value that the file lacks is placed where the nearest thing around it starts.
        """
        if moved := next((above for above in _around(path) if above in self.written), None):
            path = (*self.written[moved], *path[len(moved) :])
        nearest = next((self.starts[step] for step in _around(path) if step in self.starts), (1, 1))
        position = self.key_starts.get(path, nearest) if key else nearest
        return mistake(self.file, position, path, text)


def _around(path: Where) -> Iterator[Where]:
    return (path[:length] for length in range(len(path), -1, -1))


def mistake(file: str, position: Position, path: Where, text: str) -> errors.Mistake:
    """Return a problem of a file, its text safe to print."""
    return errors.Mistake(file, *position, words.path(path), words.printable(text))


def expand_ranges(document: Document) -> Document:
    """Return the inventory with an entry per name of a range such as ``vs[001-128]``.

    Raises:
        ConfigError: the first range that cannot be expanded.
    """
    written: dict[Where, Where] = {}

    def expand(value: Tree, at: Where, to: Where) -> Tree:
        if isinstance(value, dict):
            return {key: expand(item, (*at, key), (*to, key)) for key, item in value.items()}
        if not isinstance(value, list):
            return value
        items: list[Tree] = []
        keys = _RANGED.get(str(at[-1]), ()) if at[0] in ("nodes", "defaults") else ()
        for place, item in enumerate(value):
            here, copies = (*at, place), [item]
            if isinstance(item, dict):
                try:
                    copies = [{**item, **names} for names in _unfold(item, keys)]
                except ValueError as error:
                    key, text = error.args
                    raise errors.ConfigError([document.mistake((*here, key), text)]) from error
            for copy in copies:
                written[(*to, len(items))] = here
                items.append(expand(copy, here, (*to, len(items))))
        return items

    return replace(document, data=expand(document.data, (), ()), written=written)


def _unfold(item: Mapping[str, Tree], keys: Iterable[str]) -> list[dict[str, str]]:
    """Return the values of these keys for each entry that an item stands for.

    Raises:
        ValueError: the key of a range that cannot be expanded, and why.
    """
    names: dict[str, Sequence[str]] = {}
    for key in keys:
        if isinstance(text := item.get(key), str):
            try:
                names[key] = nodeset.unfold(text, MOST)
            except ValueError as error:
                raise ValueError(key, f"{words.shown(text)}: {error}") from error
    (first, some), *others = names.items() or [("", [""])]
    for key, values in others:
        if len(values) != len(some):
            seen = f"{key} stands for {len(values)}, {first} for {len(some)}"
            raise ValueError(key, f"{seen}; needed as many of both")
    return [dict(zip(names, row, strict=True)) for row in zip(*names.values(), strict=True)] or [{}]


def misfits(
    error: ValidationError, data: Tree, model: type[BaseModel], at: Where = ()
) -> Iterator[tuple[Where, str, bool]]:
    """Yield for each misfit its path in the data, a message, and True if it is about the key.

    Args:
        at: where the data lies in the file; a key on that way may be named like a secret.
    """
    groups: dict[tuple[Where, bool], list[ErrorDetails]] = {}
    values: dict[Where, Tree] = {}
    for detail in error.errors(include_url=False):
        path, value = _follow(detail["loc"], data)
        kind, last = detail["type"], detail["loc"][-1] if detail["loc"] else ""
        if kind == "missing" and isinstance(last, str):
            yield path, f"key {words.shown(last)} is missing", False
        elif kind == "extra_forbidden":
            yield path, _describe_unknown(str(last), _list_keys(model, path[:-1])), True
        # A list is too short only without the items that pydantic refused.
        elif not (
            kind == "too_short"
            and isinstance(value, list)
            and len(value) >= detail["ctx"]["min_length"]
        ):
            is_key = last == "[key]"
            values[path] = str(path[-1]) if is_key else value
            groups.setdefault((path, is_key), []).append(detail)
    for (path, is_key), group in groups.items():
        yield path, _describe_misfit((*at, *path), values[path], group), is_key


def _follow(location: Where, data: Tree) -> tuple[Where, Tree]:
    """Return the path and the value at a location, without the names of branches of unions."""
    path: Where = ()
    for step in location:
        if isinstance(data, dict) and step in data:
            path, data = (*path, step), data[str(step)]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            path, data = (*path, step), data[step]
    return path, data


def _list_keys(model: type[BaseModel], path: Where) -> list[str]:
    models = [model]
    for step in path:
        fields = [one.model_fields[step] for one in models if step in one.model_fields]
        if fields:
            models = [found for field in fields for found in _find_models(field.annotation)]
    return [name for model in models for name in model.model_fields]


def _find_models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _find_models(inner)]


def _describe_unknown(key: str, names: Sequence[str]) -> str:
    if words.is_secret([key]):
        return f"unknown key {words.shown(words.bare(key))}; {words.NO_SECRETS}"
    needed = f"needed one of {', '.join(names)}" if names else "needed none here"
    return f"unknown key {words.shown(key)}; {words.did_you_mean(key, names) or needed}"


def _describe_misfit(path: Where, value: Tree, group: Sequence[ErrorDetails]) -> str:
    """Return what is wrong with a value; the group has an error for each branch of a union."""
    if words.is_secret(path):
        return f"got a value that is not shown; {words.NO_SECRETS}"
    options, needed = list[str](), list[str]()
    for detail in group:
        if detail["type"] == "value_error":  # of a validator of ours, whose message is whole
            return str(detail["ctx"]["error"])
        if detail["type"] == "missing":  # of [20] in a pair
            needed = [f"{int(detail['loc'][-1]) + 1} in it"]
        else:
            match = _NEEDED.search(detail["msg"])
            needed.append(match[1] if match else detail["msg"])
        options += re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))
    wanted = words.any_of(needed)
    for pydantic, plain in _PLAIN.items():
        wanted = wanted.replace(pydantic, plain)
    question = words.did_you_mean(value, options) if isinstance(value, str) else ""
    return f"got {words.shown(value)}; needed {wanted}; {question}".removesuffix("; ")
