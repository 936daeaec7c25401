"""YAML files that users write: read strictly, with the place of each value, and made models."""

import json
import math
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from orchestrator import errors, words
from orchestrator.documents import Document, Position, Tree, Where, misfits, mistake

M = TypeVar("M", bound=BaseModel)

_MOST_BYTES = 1 << 20
_DEEPEST = 32
_UNFIT = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters
    r"\u2028\u2029"  # line breaks in YAML 1.1, text in YAML 1.2
    r"\u202a-\u202e\u2066-\u2069"  # show a text in another order than it has
    r"\ufeff\ufffe\uffff"
    r"\ud800-\udfff]"  # half a character, or a byte that is not UTF-8
    r"|\r(?!\n)"
)
# Unquoted text that YAML 1.1, YAML 1.2 and people read differently.
_SURPRISE = re.compile(
    r"(?i:yes|no|on|off|y|n)"
    r"|[-+]?0[0-9_]+(\.[0-9_]*)?([eE][-+]?[0-9]+)?"  # 010, 05.5
    r"|[-+]?[0-9][0-9_]*(:[0-9_]+)+(\.[0-9_]*)?"  # 22:22, which is a number to base 60
    r"|[-+]?0[xXoObB][0-9a-fA-F_]+"  # 0x16
    r"|(?=.*_)[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?"  # 1_000
    r"|[-+]?\.(?i:inf|nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \n]+)[0-9].*)?|=|<<"
)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {
    form(word): value
    for word, value in {"": None, "~": None, "null": None, "true": True, "false": False}.items()
    for form in (str.lower, str.upper, str.capitalize)
}

# libyaml's parser is many times faster than the one in Python and gives the same marks.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path) -> Document:
    """Return the one mapping that the file holds.

    Raises:
        ConfigError: not a regular file of at most 1 MiB, not readable, or not the strict YAML
            of these files; with every problem up to the first that breaks the syntax.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise OSError(f"more than {_MOST_BYTES} bytes (1 MiB)")
    except (OSError, ValueError) as error:  # ValueError: a name with NUL
        text = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        needed = "needed a file of at most 1 MiB that can be read"
        raise errors.ConfigError([mistake(str(path), (1, 1), (), f"{text}; {needed}")]) from error
    problems = []
    if status.st_mode & stat.S_IWOTH:
        seen = f"everyone may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
        problems = [mistake(str(path), (1, 1), (), f"{seen}; needed chmod o-w")]
    return document(content.decode("utf-8", "surrogateescape"), str(path), problems)


def document(text: str, file: str, problems: Sequence[errors.Mistake] = ()) -> Document:
    """Return the mapping in a text.

    Args:
        file: its name in messages.
        problems: what is wrong with the file already.

    Raises:
        ConfigError: as ``read``.
    """
    composer = _Composer(file, problems)
    if unfit := _UNFIT.search(text):
        start, point = unfit.start(), ord(unfit[0])
        is_byte = 0xDC80 <= point <= 0xDCFF  # as surrogateescape has it
        seen = f"byte 0x{point - 0xDC00:02x}" if is_byte else f"control character U+{point:04X}"
        place = (text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
        composer.add(place, (), f"{seen}; needed text in UTF-8 without control characters")
        raise errors.ConfigError(composer.problems)
    data: Tree = None
    try:
        data = composer.compose(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        is_exact = not error.context or "block" in error.context or "tab" in str(error.problem)
        mark = error.problem_mark if is_exact else error.context_mark
        line = min(mark.line + 1, text.rstrip().count("\n") + 1) if mark else 1
        seen = " ".join(filter(None, (error.problem, error.context)))
        needed = "needed YAML, indented by spaces; put text with its signs in quotes"
        composer.add((line, mark.column + 1 if mark else 1), (), f"{seen}; {needed}")
    # PyYAML's own parser lets chr() fail on "\UFFFFFFFF" and "\U00110000".
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        composer.add((1, 1), (), f"cannot be read as YAML: {error}")
    if composer.problems:
        raise errors.ConfigError(composer.problems)
    return Document(file, data, composer.starts, composer.key_starts)


def validated(document: Document, model: type[M]) -> M:
    """Return the document as ``model``.

    Raises:
        ConfigError: all that does not fit the model, each with its place.
    """
    try:
        return model.model_validate_json(json.dumps(document.data), strict=True)
    except ValidationError as error:
        found = misfits(error, document.data, model)
        raise errors.ConfigError(
            [document.mistake(path, text, key=key) for path, text, key in found]
        ) from error


class _Composer:
    """Builds plain data from YAML events, and collects problems."""

    def __init__(self, file: str, problems: Sequence[errors.Mistake]) -> None:
        self.starts: dict[Where, Position] = {}
        self.key_starts: dict[Where, Position] = {}
        self.problems = [*problems]
        self._file = file
        self._events: Iterator[Any] = iter(())

    def add(self, position: Position, path: Where, text: str) -> None:
        self.problems.append(mistake(self._file, position, path, text))

    def compose(self, events: Iterator[Any]) -> Tree:
        """Return the one mapping among the events."""
        data: Tree = None
        self._events = events
        for event in events:
            if self.starts and isinstance(event, yaml.DocumentStartEvent):
                self.add(_position(event), (), "a second document; needed one in the file")
                break
            if isinstance(event, yaml.NodeEvent):
                data = self._value(event, ())
        if not isinstance(data, dict) and not self.problems:
            seen = "nothing in the file" if data is None else f"got {words.shown(data)}"
            self.add(self.starts.get((), (1, 1)), (), f"{seen}; needed `key: value` lines")
        return data

    def _value(self, event: Any, path: Where) -> Tree:
        self.starts[path] = _position(event)
        self._refuse_properties(event, path)
        if isinstance(event, yaml.ScalarEvent):
            try:
                return _scalar(event)
            except ValueError as error:
                hidden = f"a value that is not shown; {words.NO_SECRETS}"
                self.add(_position(event), path, hidden if words.is_secret(path) else str(error))
        elif len(path) >= _DEEPEST:
            text = f"more than {_DEEPEST} lists and mappings inside each other; needed fewer"
            self.add(_position(event), path[:3], text)
            raise errors.ConfigError(self.problems)
        elif isinstance(event, yaml.SequenceStartEvent):
            return [self._value(inner, (*path, n)) for n, inner in enumerate(self._inside())]
        elif isinstance(event, yaml.MappingStartEvent):
            return {
                key: self._value(next(self._events), (*path, key))
                for key in (self._key(inner, path) for inner in self._inside())
            }
        return None

    def _inside(self) -> Iterator[Any]:
        """Yield the events that begin what is directly inside the list or mapping just begun."""
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            yield event

    def _key(self, event: Any, path: Where) -> str:
        """Return a key, which is text as it is written."""
        self._refuse_properties(event, path)
        if not isinstance(event, yaml.ScalarEvent):
            self.add(_position(event), path, "a list, mapping or alias as a key; needed text")
            raise errors.ConfigError(self.problems)
        key, here = str(event.value), (*path, event.value)
        if here in self.key_starts:
            first = f"first in line {self.key_starts[here][0]}"
            text = f"a key for the second time ({first}); needed it once"
            self.add(_position(event), here, text)
        self.key_starts.setdefault(here, _position(event))
        return key

    def _refuse_properties(self, event: Any, path: Where) -> None:
        # An alias's name is not shown: `password: *1234` is an alias to YAML only.
        if event.anchor or getattr(event, "tag", None) is not None:
            needed = "needed the value itself; quote it if it is text"
            text = f"an anchor (&), an alias (*) or a tag (!); {needed}"
            self.add(_position(event), path, text)


def _position(event: Any) -> Position:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _scalar(event: Any) -> bool | int | float | str:
    """Return the value of a scalar, if YAML 1.1 and 1.2 agree on it.

    Raises:
        ValueError: they differ, the number is beyond 64 bits, there is no value, or the text has
            control characters.

    Source:
        YAML 1.2.2, 10.3.2, core schema; YAML 1.1's type repository for what to refuse.
    """
    text = str(event.value)
    if unfit := _UNFIT.search(text) or re.search(r"[\t\r]", text):  # such as by an escape
        raise ValueError(f"control character U+{ord(unfit[0]):04X} in a text; needed none")
    if not event.implicit[0]:  # in quotes
        return text
    if _SURPRISE.fullmatch(text):
        needed = "needed true, false or a plain decimal number; quote it if it is text"
        raise ValueError(f"got {words.cut(text)}, which readers of YAML read differently; {needed}")
    if text in _WORDS:
        if (value := _WORDS[text]) is None:
            raise ValueError("got nothing; needed a value, or no key at all")
        return value
    if not _FLOAT.fullmatch(text):
        return text
    if _INTEGER.fullmatch(text):
        # Python refuses to convert thousands of digits; twenty hold every 64-bit number.
        if len(text) <= 20 and -(2**63) <= int(text) < 2**63:
            return int(text)
    elif math.isfinite(float(text)):
        return float(text)
    raise ValueError(f"got {words.cut(text)}; needed a number of 64 bits; quote it if it is text")
