"""YAML files that users write: read strictly, with the place of each value, and made models."""

import json
import math
import os
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
    r"|(?=.*[^\x00-\x7f])[-+]?\d[\d.,:_]*"  # digits of another script
    r"|[-+]?\.(?i:inf|nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \n]+)[0-9].*)?|=|<<"
)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}

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
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
            raise _unusable(path, f"{kind}; needed a regular file")
        # A pipe may have taken the file's place since; without O_NONBLOCK it would hang here.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        seen = f"cannot be read: {error.strerror}"
        raise _unusable(path, f"{seen}; needed a file that can be read") from error
    except ValueError as error:
        raise _unusable(path, f"not a file name ({error}); needed a file") from error
    if len(content) > _MOST_BYTES:
        raise _unusable(path, f"more than {_MOST_BYTES} bytes; needed at most that (1 MiB)")
    problems = []
    if status.st_mode & stat.S_IWOTH:
        seen = f"everyone may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
        problems = [mistake(str(path), (1, 1), (), f"{seen}; needed chmod o-w")]
    return document(content.decode("utf-8", "surrogateescape"), str(path), problems)


def _unusable(path: Path, text: str) -> errors.ConfigError:
    return errors.ConfigError([mistake(str(path), (1, 1), (), text)])


def document(text: str, file: str, problems: Sequence[errors.Mistake] = ()) -> Document:
    """Return the mapping in a text.

    Args:
        file: its name in messages.
        problems: what is wrong with the file already.

    Raises:
        ConfigError: as ``read``.
    """
    problems = list(problems)
    is_text = True
    for number, line in enumerate(re.split(r"(?<=\n)", text), 1):
        before, tab, _ = line.partition("\t")
        if unfit := _UNFIT.search(line):
            is_text, column, point = False, unfit.start() + 1, ord(unfit[0])
            is_byte = 0xDC80 <= point <= 0xDCFF  # as surrogateescape has it
            seen = f"byte 0x{point - 0xDC00:02x}" if is_byte else f"control character U+{point:04X}"
            what = f"{seen}; needed text in UTF-8 without control characters"
        elif tab and not re.search(r"(^|\s)#", before):
            column, what = len(before) + 1, "a tab; needed spaces"
        elif line.startswith("%"):
            column, what = 1, "a YAML directive; needed no line that begins with %"
        else:
            continue
        problems.append(mistake(file, (number, column), (), what))
    composer = _Composer(file, problems)
    data = composer.compose(text) if is_text else None
    if problems:
        raise errors.ConfigError(problems)
    return Document(file, data, composer.starts, composer.key_starts)


def validated(document: Document, model: type[M]) -> M:
    """Return the document as ``model``.

    Raises:
        ConfigError: all that does not fit the model, or keys without a value, each with its place.
    """
    try:
        instance = model.model_validate_json(json.dumps(document.data), strict=True)
    except ValidationError as error:
        found = misfits(error, document.data, model)
        raise errors.ConfigError(
            [document.mistake(path, text, key=key) for path, text, key in found]
        ) from error
    needed = "got nothing; needed a value, or no key at all"
    if empty := [document.mistake(path, needed) for path in _empty(document.data, ())]:
        raise errors.ConfigError(empty)
    return instance


def _empty(value: Tree, path: Where) -> Iterator[Where]:
    """Yield the paths of keys and items without a value."""
    if value is None:
        yield path
    elif isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for step, item in pairs:
            yield from _empty(item, (*path, step))


class _Composer:
    """Builds plain data from YAML events, and collects problems."""

    def __init__(self, file: str, problems: list[errors.Mistake]) -> None:
        self.starts: dict[Where, Position] = {}
        self.key_starts: dict[Where, Position] = {}
        self._problems = problems
        self._file = file
        self._events: Iterator[Any] = iter(())

    def compose(self, text: str) -> Tree:
        """Return the text's one mapping, as far as its syntax holds."""
        explained = {problem.line for problem in self._problems}
        data: Tree = None
        try:
            self._events = yaml.parse(text, Loader=_LOADER)
            for event in self._events:
                if isinstance(event, yaml.DocumentStartEvent) and self.starts:
                    self._complain(event, (), "a second document; needed one in the file")
                    return None
                if isinstance(event, yaml.NodeEvent):
                    data = self._value(event, ())
        except yaml.MarkedYAMLError as error:
            is_exact = not error.context or "block" in error.context
            mark = error.problem_mark if is_exact else error.context_mark
            # A tab breaks the syntax and was named already.
            if mark and not (error.problem_mark and error.problem_mark.line + 1 in explained):
                line = min(mark.line + 1, text.rstrip().count("\n") + 1)
                seen = " ".join(filter(None, (error.problem, error.context)))
                needed = "needed YAML; put text with its signs in quotes"
                self._add((line, mark.column + 1), (), f"{seen}; {needed}")
            return None
        # PyYAML's own parser lets chr() fail on "\UFFFFFFFF" and "\U00110000".
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            self._add((1, 1), (), f"cannot be read as YAML: {error}")
            return None
        if not isinstance(data, dict):
            seen = "nothing in the file" if data in ("", None) else f"got {words.shown(data)}"
            self._add(self.starts.get((), (1, 1)), (), f"{seen}; needed `key: value` lines")
        return data

    def _complain(self, event: Any, path: Where, text: str) -> None:
        self._add(_position(event), path, text)

    def _add(self, position: Position, path: Where, text: str) -> None:
        self._problems.append(mistake(self._file, position, path, text))

    def _value(self, event: Any, path: Where) -> Tree:
        self.starts[path] = _position(event)
        self._refuse_properties(event, path)
        if isinstance(event, yaml.AliasEvent):
            return None
        if isinstance(event, yaml.ScalarEvent):
            try:
                return _scalar(event)
            except ValueError as error:
                hidden = f"a value that is not shown; {words.NO_SECRETS}"
                self._complain(event, path, hidden if words.is_secret(path) else str(error))
                return None
        if len(path) >= _DEEPEST:
            seen = f"more than {_DEEPEST} lists and mappings inside each other"
            self._complain(event, path[:3], f"{seen}; needed fewer")
            raise errors.ConfigError(self._problems)
        if isinstance(event, yaml.SequenceStartEvent):
            return [self._value(inner, (*path, n)) for n, inner in enumerate(self._inside())]
        return {
            key: self._value(next(self._events), (*path, key))
            for key in (self._key(inner, path) for inner in self._inside())
        }

    def _inside(self) -> Iterator[Any]:
        """Yield the events that begin what is directly inside the list or mapping just begun."""
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            yield event

    def _key(self, event: Any, path: Where) -> str:
        self._refuse_properties(event, path)
        if not isinstance(event, yaml.ScalarEvent):
            self._complain(event, path, "a list, mapping or alias as a key; needed text")
            raise errors.ConfigError(self._problems)
        key, here = str(event.value), (*path, event.value)
        try:
            if not isinstance(_scalar(event), str):
                seen = f"got {words.cut(key) or 'nothing'} as a key"
                self._complain(event, here, f"{seen}; needed text: quote it")
        except ValueError as error:
            self._complain(event, here, str(error))
        if here in self.key_starts:
            first = f"first in line {self.key_starts[here][0]}"
            self._complain(event, here, f"a key for the second time ({first}); needed it once")
        self.key_starts.setdefault(here, _position(event))
        return key

    def _refuse_properties(self, event: Any, path: Where) -> None:
        is_alias = isinstance(event, yaml.AliasEvent)
        seen = ["an alias (*)" if is_alias else "an anchor (&)"] if event.anchor else []
        if not is_alias and event.tag is not None:
            seen.append("a tag (!)")
        for what in seen:  # without its name: `password: *1234` is an alias to YAML only
            needed = "needed the value itself; quote it if it is text"
            self._complain(event, path, f"{what}; {needed}")


def _position(event: Any) -> Position:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _scalar(event: Any) -> bool | int | float | str | None:
    """Return the value of a scalar, if YAML 1.1 and 1.2 agree on it.

    Raises:
        ValueError: they differ, the number is beyond 64 bits, or the text has control characters.

    Source:
        YAML 1.2.2, 10.3.2, core schema; YAML 1.1's type repository for what to refuse.
    """
    text = str(event.value)
    if not event.implicit[0]:  # in quotes, where escapes may stand for more than the line shows
        if unfit := _UNFIT.search(text) or re.search(r"[\t\r]", text):
            raise ValueError(f"control character U+{ord(unfit[0]):04X} in a text; needed none")
        return text
    if _SURPRISE.fullmatch(text):
        needed = "needed true, false or a plain decimal number; quote it if it is text"
        raise ValueError(f"got {words.cut(text)}, which readers of YAML read differently; {needed}")
    if text.lower() in _WORDS and text in (text.lower(), text.upper(), text.capitalize()):
        return _WORDS[text.lower()]
    if not _FLOAT.fullmatch(text):
        return text
    if _INTEGER.fullmatch(text):
        # Python refuses to convert thousands of digits; twenty hold every 64-bit number.
        if len(text) <= 20 and -(2**63) <= int(text) < 2**63:
            return int(text)
    elif math.isfinite(float(text)):
        return float(text)
    raise ValueError(f"got {words.cut(text)}; needed a number of 64 bits; quote it if it is text")
