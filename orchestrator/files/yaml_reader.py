"""YAML files that users write: read strictly, with starts, and brought into models."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from orchestrator import errors, words
from orchestrator.documents import field_errors
from orchestrator.documents.document import START, Document, Position, Tree, Where, mistake
from orchestrator.files import scalars, source

M = TypeVar("M", bound=BaseModel)

_DEEPEST = 32
_EMPTY = "got nothing; needed a value, or no key at all"

_SIGN = "a text that begins with a sign of YAML's; needed quotes around it"
# What libyaml and PyYAML say, what it means, and whether the problem lies where its context began.
_SYNTAX = (
    (r"expected ',' or '\]'", "a list that begins here; needed ',' between items and ']'", True),
    (r"expected ',' or '}'", "a mapping that begins here; needed ',' between keys and '}'", True),
    (r"unexpected (end|doc)", "a quote that is never closed; needed its other end", True),
    (r"expected ':'", "a line that is neither `key: value` nor `- item`", True),
    (r"mapping values are not", "a colon that ends no key; needed quotes around ': '", False),
    (r"sequence entries are not", "a list on its key's line; needed it below, or [ ]", False),
    (r"expected (the )?node content", "no value; needed one, or a bracket's other end", False),
    (r"block collection", "no item of the list that it is in; needed '- '", False),
    (r"block mapping", "no key of the mapping that it is in; needed the same indent", False),
    (r"escape", r"an escape that YAML does not know; needed \\ or single quotes", False),
    (r"an alias|an anchor|a tag|tag handle|block scalar", _SIGN, True),
    (r"document start", "text after the document's end; needed one document", False),
)

# libyaml's parser is many times faster than the one in Python and gives the same marks.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path) -> Document:
    """Return the one mapping that the file holds.

    Raises:
        ConfigError: not a regular file, not readable, or not the strict YAML of these
            files; with every problem up to the first that breaks the syntax.
    """
    text, problems = source.read(path)
    return document(text, str(path), problems)


def document(text: str, file: str, problems: Sequence[errors.Mistake] = ()) -> Document:
    """Return the mapping in a text.

    Args:
        file: its name in messages.
        problems: what is wrong with the file already.

    Raises:
        ConfigError: as ``read``.
    """
    problems = list(problems)
    composer = _Composer(file, text, problems)
    data = composer.compose()
    if problems:
        raise errors.ConfigError(problems)
    return Document(file, data, composer.starts, composer.key_starts)


def validated(document: Document, model: type[M], at: Where = ()) -> M:
    """Return the part of the document at ``at`` as ``model``.

    Raises:
        ConfigError: all that does not fit the model, or keys without a value, each with its place.
    """
    if at not in document.starts:
        text = f"key {words.shown(at[-1])} is missing; needed a mapping"
        raise errors.ConfigError([document.mistake(at[:-1], text)])
    value = document.value(at)
    try:
        instance = model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as err:
        misfits = field_errors.messages(err, value, model, at)
        mistakes = [document.mistake(at + path, text, key=key) for path, text, key in misfits]
        raise errors.ConfigError(mistakes) from err
    inside = [path for path in document.starts if path[: len(at)] == at]
    if empty := [path for path in inside if document.value(path) is None]:
        raise errors.ConfigError([document.mistake(path, _EMPTY) for path in empty])
    return instance


class _Composer:
    """Builds plain data from YAML events, and collects problems."""

    def __init__(self, file: str, text: str, problems: list[errors.Mistake]) -> None:
        self.starts: dict[Where, Position] = {}
        self.key_starts: dict[Where, Position] = {}
        self._file = file
        self._text = text
        self._problems = problems
        self._explained = {problem.line for problem in problems}
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)

    def compose(self) -> Tree:
        """Return the text's one mapping, as far as its syntax holds."""
        try:
            return self._document()
        # PyYAML's own parser lets chr() fail on "\UFFFFFFFF" and "\U00110000".
        except (yaml.YAMLError, ValueError, OverflowError) as err:
            mark, text = _syntax(err, self._text)
            if mark.line not in self._explained:  # a tab breaks the syntax, which is no news
                self._complain(mark, (), text)
        return None

    def _document(self) -> Tree:
        next(self._events)  # the stream's start
        if not isinstance(next(self._events), yaml.DocumentStartEvent):
            self._complain(START, (), "nothing in the file; needed `key: value` lines")
            return None
        root = next(self._events)
        if isinstance(root, yaml.ScalarEvent):
            seen = "got a single value" if root.value else "nothing in the file"
            self._complain(_position(root), (), f"{seen}; needed `key: value` lines")
        elif isinstance(root, yaml.SequenceStartEvent):
            self._complain(_position(root), (), "got a list; needed `key: value` lines")
        data = self._value(root, ())
        next(self._events)  # the document's end
        again = next(self._events)
        if isinstance(again, yaml.DocumentStartEvent):
            self._complain(
                _position(again), (), "a second document; needed one document in the file"
            )
        return data

    def _complain(self, position: Position, path: Where, text: str) -> None:
        self._problems.append(mistake(self._file, position, path, text))

    def _value(self, event: Any, path: Where) -> Tree:
        self.starts[path] = _position(event)
        self._refuse_properties(event, path)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if isinstance(event, yaml.AliasEvent):
            return None
        if len(path) >= _DEEPEST:
            seen = f"more than {_DEEPEST} lists and mappings inside each other"
            self._complain(_position(event), path[:3], f"{seen}; needed fewer")
            raise errors.ConfigError(self._problems)
        if isinstance(event, yaml.SequenceStartEvent):
            return [self._value(inner, (*path, n)) for n, inner in enumerate(self._inside())]
        return {key: self._value(inner, (*path, key)) for key, inner in self._pairs(path)}

    def _inside(self) -> Iterator[Any]:
        """Yield the events that begin what is directly inside the list or mapping just begun."""
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            yield event

    def _pairs(self, path: Where) -> Iterator[tuple[str, Any]]:
        for event in self._inside():
            key = self._key(event, path)
            value = next(self._events)
            is_empty = isinstance(value, yaml.ScalarEvent) and not value.value
            if is_empty and value.end_mark.index == event.end_mark.index:
                needed = "needed `key: value`, with a blank after the colon"
                self._complain(_position(value), (*path, key), f"a key without a value; {needed}")
            yield key, value

    def _key(self, event: Any, path: Where) -> str:
        """Return the key that the event is; one that is none of ours gets a stand-in."""
        self._refuse_properties(event, path)
        if isinstance(event, yaml.AliasEvent):
            return "?"
        if not isinstance(event, yaml.ScalarEvent):
            self._complain(_position(event), path, "a list or mapping as a key; needed text")
            self._value(event, (*path, "?"))
            return "?"
        key, position, here = str(event.value), _position(event), (*path, event.value)
        if unfit := _unfit_as_key(event):
            self._complain(position, here, unfit)
        if here in self.key_starts:
            text = f"a key for the second time (first in line {self.key_starts[here].line})"
            self._complain(position, here, f"{text}; needed each key once")
        self.key_starts.setdefault(here, position)
        return key

    def _scalar(self, event: Any, path: Where) -> Tree:
        try:
            return _meaning(event)
        except ValueError as err:
            hidden = f"a value that is not shown; {words.NO_SECRETS}"
            self._complain(_position(event), path, hidden if words.is_secret(path) else str(err))
            return None

    def _refuse_properties(self, event: Any, path: Where) -> None:
        is_alias = isinstance(event, yaml.AliasEvent)
        if event.anchor is not None:
            self._refuse(event, path, "an alias (*)" if is_alias else "an anchor (&)")
        if not is_alias and event.tag is not None:
            self._refuse(event, path, "a tag (!)")

    def _refuse(self, event: Any, path: Where, seen: str) -> None:
        # Their names are not shown: `password: *1234` is an alias to YAML only.
        text = f"{seen}; needed the value itself; quote it if it is text"
        self._complain(_position(event), path, text)


def _position(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _meaning(event: Any) -> bool | int | float | str | None:
    return scalars.plain(event.value) if event.implicit[0] else scalars.quoted(event.value)


def _unfit_as_key(event: Any) -> str:
    """Return why the scalar cannot be a key; empty when it can."""
    if event.implicit[0] and event.value == "<<":
        return "a merge key; needed the keys written out"
    try:
        if isinstance(_meaning(event), str):
            return ""
    except ValueError as err:
        if not event.implicit[0]:
            return str(err)
    return f"got {words.cut(event.value) or 'nothing'} as a key; needed text: quote it"


def _syntax(error: Exception, text: str) -> tuple[Position, str]:
    """Return where and how the text breaks YAML's syntax."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return START, f"cannot be read as YAML: {error}"
    problem = f"{error.context or ''}; {error.problem or ''}"
    meaning, at_start = next(
        (row[1:] for row in _SYNTAX if re.search(row[0], problem)),
        (f"not YAML: {problem.removeprefix('; ')}", False),
    )
    mark = _inside(error.context_mark if at_start else error.problem_mark, text)
    if "cannot start any token" in problem:
        char = text.split("\n")[mark.line - 1][mark.column - 1 : mark.column]
        return mark, f"got {char!r} where a value begins; needed quotes around it"
    return mark, meaning


def _inside(mark: yaml.Mark | None, text: str) -> Position:
    """Return the mark, or the end of the last line with text where the parser stood behind it."""
    lines = text.rstrip().split("\n")
    if mark is None or mark.line >= len(lines):
        return Position(len(lines), len(lines[-1]) + 1)
    return Position(mark.line + 1, mark.column + 1)
