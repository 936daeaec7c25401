"""YAML files that users write: read strictly, with positions, and brought into models."""

import difflib
import enum
import itertools
import json
import os
import re
import stat
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import AliasChoices, BaseModel, RootModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from orchestrator import errors

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"
Where: TypeAlias = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)

_MOST_BYTES = 1 << 20
_DEEPEST = 32
_LONGEST_SHOWN = 60
_NO_SECRETS = "secrets do not belong into these files"

# libyaml's parser is many times faster than the one in Python and gives the same marks. What
# only one of the two accepts (tabs, directives, lone surrogates) is refused here for both.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; line and column count from 1, the column in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """A file's content as plain data, with the place of everything in it.

    Args:
        file: as the user gave it.
        marks: where each value starts, by its path; the root's is ``()``.
        key_marks: where each key starts, by the path of its value.
    """

    file: str
    data: Tree
    marks: Mapping[Where, Mark]
    key_marks: Mapping[Where, Mark]

    def complaint(self, path: Where, text: str, *, key: bool = False) -> errors.Complaint:
        """``text`` about the value at ``path``, or about its key.

        What the file lacks is complained about where the nearest thing around it starts.
        """
        around = (path[:length] for length in range(len(path), -1, -1))
        mark = self.key_marks.get(path) if key else None
        nearest = mark or next((self.marks[step] for step in around if step in self.marks), None)
        return _complaint(self.file, nearest or Mark(1, 1), path, text)


def read(path: Path) -> Document:
    """The one mapping that the file holds.

    Raises:
        ConfigError: not a regular file, not readable, or not the strict YAML of these
            files; with every problem up to the first that breaks the syntax.
    """
    file = str(path)
    content, problems = _content(path)
    text = _decoded(file, content)
    problems += [*_tabs(file, text), *_directives(file, text)]
    composer = _Composer(file, text, problems)
    composer.compose()
    if problems:
        raise errors.ConfigError(problems)
    return Document(file, composer.data, composer.marks, composer.key_marks)


def validated(document: Document, model: type[M], at: Where = ()) -> M:
    """The part of the document at ``at`` as ``model``.

    Raises:
        ConfigError: with everything that does not fit, each at its place.
    """
    if at not in document.marks:
        missing = f"key {_shown(at[-1])} is missing; needed a mapping"
        raise errors.ConfigError([document.complaint(at[:-1], missing)])
    data = _value(document.data, at)
    try:
        return model.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as err:
        raise errors.ConfigError(complaints(document, err, model, at)) from err


def complaints(
    document: Document, error: ValidationError, model: type[BaseModel], at: Where = ()
) -> tuple[errors.Complaint, ...]:
    """What pydantic found wrong at ``at``, in plain words; one complaint for each value."""
    data = _value(document.data, at)
    found = [_traced(detail, data, model) for detail in error.errors(include_url=False)]
    groups: dict[tuple[Where, str, bool], list[_Trouble]] = {}
    for trouble in _settled([trouble for trouble in found if not _is_echo(trouble)]):
        subject = (trouble.path, trouble.missing, trouble.about_key)
        groups.setdefault(subject, []).append(trouble)
    return tuple(
        document.complaint(at + path, _worded(at + path, group), key=about_key)
        for (path, _, about_key), group in groups.items()
    )


def _value(data: Tree, path: Where) -> Tree:
    for step in path:
        data = _child(data, step)
    return data


def _child(data: Tree, step: str | int) -> Tree:
    if isinstance(data, dict) and isinstance(step, str):
        return data[step]
    if isinstance(data, list) and isinstance(step, int):
        return data[step]
    raise KeyError(step)


def _complaint(file: str, mark: Mark, path: Where, text: str) -> errors.Complaint:
    return errors.Complaint(file, mark.line, mark.column, _rendered(path), _escaped(text))


def _rendered(path: Where) -> str:
    return "".join(map(_step, path)).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,60}", step):
        return f".{step}"
    if isinstance(step, str) and _is_secret((step,)):
        return f"[{_shown(step.partition(':')[0])}...]"  # of {token:abc} the value is in the key
    return f"[{_shown(step)}]"


def _escaped(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _shown(value: Tree) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case _:
            return _cut(repr(value))


def _any_of(words: Iterable[str], between: str = " or ") -> str:
    *most, last = dict.fromkeys(words)
    return f"{', '.join(most)}{between}{last}" if most else last


def _one_of(options: Sequence[str]) -> str:
    return options[0] if len(options) == 1 else f"one of {', '.join(options)}"


def _similar(name: str, names: Iterable[str]) -> str:
    """A question that offers the most similar of the names; empty when none is similar."""
    plain = {candidate.casefold().replace("-", "_"): candidate for candidate in names}
    found = difflib.get_close_matches(name.casefold().replace("-", "_"), plain, n=1)
    return f"did you mean {_shown(plain[found[0]])}?" if found else ""


def _is_secret(path: Where) -> bool:
    """Whether a key on the way is named like a secret; ``tokenizer`` and ``tokens`` are not."""
    named_like = re.compile(r"(?i:passw|passphrase|secret|credential)|(?i:token)(?![a-z])")
    return any(isinstance(step, str) and named_like.search(step) for step in path)


def _content(path: Path) -> tuple[bytes, list[errors.Complaint]]:
    """The bytes of the file, and what its mode lets others do to it."""
    file = str(path)
    try:
        _refuse_all_but_files(file, os.stat(path).st_mode)
        # A FIFO may have taken the file's place since; without O_NONBLOCK it would hang here.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            _refuse_all_but_files(file, status.st_mode)
            _refuse_size(file, status.st_size)
            content = stream.read(_MOST_BYTES + 1)
    except OSError as err:
        raise _unusable(
            file, f"cannot be read: {err.strerror}; needed a file that can be read"
        ) from err
    except ValueError as err:
        raise _unusable(file, f"not a file name ({err}); needed a file") from err
    _refuse_size(file, len(content))
    return content, _open_to_all(file, status.st_mode)


def _unusable(file: str, text: str) -> errors.ConfigError:
    return errors.ConfigError([_complaint(file, Mark(1, 1), (), text)])


def _refuse_all_but_files(file: str, mode: int) -> None:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
    }
    if not stat.S_ISREG(mode):
        seen = kinds.get(stat.S_IFMT(mode), "something else than a file")
        raise _unusable(file, f"{seen}; needed a regular file")


def _refuse_size(file: str, size: int) -> None:
    if size > _MOST_BYTES:
        raise _unusable(file, f"{size} bytes or more; needed at most {_MOST_BYTES} bytes (1 MiB)")


def _open_to_all(file: str, mode: int) -> list[errors.Complaint]:
    if not mode & stat.S_IWOTH:
        return []
    text = f"everyone may write to it (mode {stat.S_IMODE(mode):04o}); needed chmod o-w"
    return [_complaint(file, Mark(1, 1), (), text)]


_INVISIBLE = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters
    r"\u2028\u2029"  # line breaks in YAML 1.1, text in YAML 1.2
    r"\u202a-\u202e\u2066-\u2069"  # show a text in another order than it has
    r"\ufeff\ufffe\uffff"
    r"\ud800-\udfff"  # half a character, or a byte that is not UTF-8
)
_UNFIT = re.compile(rf"[{_INVISIBLE}]|\r(?!\n)")
_UNFIT_IN_TEXT = re.compile(rf"[{_INVISIBLE}\t\r]")


def _decoded(file: str, content: bytes) -> str:
    """The file's text.

    Raises:
        ConfigError: with the first character of each line that does not belong there.
    """
    if content.startswith(b"\xef\xbb\xbf"):
        raise _unusable(file, "a byte order mark at the beginning; needed UTF-8 without one")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _unusable(file, "UTF-16 or UTF-32; needed UTF-8")
    text = content.decode("utf-8", "surrogateescape")
    problems = [
        _complaint(file, Mark(number, found.start() + 1), (), _unfit(found.group()))
        for number, line in enumerate(re.split(r"(?<=\n)", text), start=1)
        if (found := _UNFIT.search(line))
    ]
    if problems:
        raise errors.ConfigError(problems)
    return text


def _unfit(char: str) -> str:
    if "\ud800" <= char <= "\udfff":
        return f"byte 0x{ord(char) - 0xDC00:02x} is not UTF-8 here; needed text in UTF-8"
    if char == "\0":
        return "a NUL character; needed text in UTF-8 (UTF-16 has many of them)"
    return f"control character U+{ord(char):04X}; needed text that can be seen"


def _tabs(file: str, text: str) -> Iterator[errors.Complaint]:
    for number, line in enumerate(text.split("\n"), start=1):
        before, tab, _ = line.partition("\t")
        if tab and not re.search(r"(^|\s)#", before):  # in a comment it does no harm
            mark = Mark(number, len(before) + 1)
            yield _complaint(file, mark, (), "a tab; needed spaces")


def _directives(file: str, text: str) -> Iterator[errors.Complaint]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("%"):
            yield _complaint(file, Mark(number, 1), (), "a YAML directive; needed none")
        elif line.strip() and not line.lstrip().startswith("#"):
            return


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    path: Where
    into: list[Tree] | dict[str, Tree]
    key: str | None = None
    key_end: int = -1

    @property
    def awaits_key(self) -> bool:
        return isinstance(self.into, dict) and self.key is None


class _Composer:
    """Builds plain data from a text's events, and complains on the way."""

    def __init__(self, file: str, text: str, problems: list[errors.Complaint]) -> None:
        self.data: Tree = None
        self.marks: dict[Where, Mark] = {}
        self.key_marks: dict[Where, Mark] = {}
        self._file = file
        self._text = text
        self._problems = problems
        self._explained = {problem.line for problem in problems}
        self._open: list[_Open] = []
        self._documents = 0
        self._given_up = False

    def compose(self) -> None:
        """Goes through the text until its end or until nothing more can be made of it."""
        for event in self._events():
            self._take(event)
            if self._given_up:
                return

    def _events(self) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(self._text, Loader=_LOADER)
        # PyYAML's own parser lets chr() fail on "\UFFFFFFFF" and "\U00110000".
        except (yaml.YAMLError, ValueError, OverflowError) as err:
            mark, text = _syntax(err, self._text)
            if mark.line not in self._explained:  # a tab breaks the syntax, which is no news
                self._complain(mark, (), text)

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._begin(event)
            case yaml.AliasEvent():
                self._refuse(event, "an alias (*)")
                self._fill(event, None)
            case yaml.ScalarEvent():
                self._refuse_properties(event)
                self._take_scalar(event)
            case yaml.SequenceStartEvent():
                self._refuse_properties(event)
                self._enter(event, [])
            case yaml.MappingStartEvent():
                self._refuse_properties(event)
                self._enter(event, {})
            case yaml.CollectionEndEvent():
                self._open.pop()
            case yaml.StreamEndEvent() if not self._documents:
                self._complain(Mark(1, 1), (), "nothing in the file; needed `key: value` lines")

    def _complain(self, mark: Mark, path: Where, text: str) -> None:
        self._problems.append(_complaint(self._file, mark, path, text))

    def _begin(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            text = "a second document; needed one document in the file"
            self._complain(_mark(event), (), text)
            self._given_up = True

    def _refuse(self, event: yaml.NodeEvent, seen: str) -> None:
        # Their names are not shown: `password: *1234` is an alias to YAML only.
        text = f"{seen}; needed the value itself; quote it if it is text"
        self._complain(_mark(event), self._path(), text)

    def _refuse_properties(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.anchor is not None:
            self._refuse(event, "an anchor (&)")
        if event.tag is not None:
            self._refuse(event, "a tag (!)")

    def _path(self) -> Where:
        """Of the value that comes next; of the mapping where a key comes next."""
        if not self._open:
            return ()
        top = self._open[-1]
        if isinstance(top.into, list):
            return (*top.path, len(top.into))
        return top.path if top.key is None else (*top.path, top.key)

    def _fill(self, event: yaml.NodeEvent, value: Tree) -> None:
        """Puts ``value`` where one is due; a key that is none of ours gets a stand-in."""
        top = self._open[-1] if self._open else None
        if top is not None and top.awaits_key:
            top.key = "?"
            return
        self.marks[self._path()] = _mark(event)
        if top is None:
            self.data = value
        elif isinstance(top.into, list):
            top.into.append(value)
        elif top.key is not None:
            top.into[top.key] = value
            top.key = None

    def _enter(self, event: yaml.CollectionStartEvent, into: list[Tree] | dict[str, Tree]) -> None:
        path = self._path()
        if len(self._open) == _DEEPEST:
            text = f"more than {_DEEPEST} lists and mappings inside each other; needed fewer"
            self._complain(_mark(event), path[:3], text)
            self._given_up = True
            return
        if self._open and self._open[-1].awaits_key:
            self._complain(_mark(event), path, "a list or mapping as a key; needed text")
            path = (*path, "?")
        elif not self._open and isinstance(into, list):
            self._complain(_mark(event), (), "got a list; needed `key: value` lines")
        self._fill(event, into)
        self._open.append(_Open(path, into))

    def _take_scalar(self, event: yaml.ScalarEvent) -> None:
        if self._open and self._open[-1].awaits_key:
            self._take_key(self._open[-1], event)
            return
        path = self._path()
        if not self._open:
            seen = "got a single value" if event.value else "nothing in the file"
            self._complain(_mark(event), (), f"{seen}; needed `key: value` lines")
        elif not event.value and _ends(event)[0].index == self._open[-1].key_end:
            text = "a key without a value; needed `key: value`, with a blank after the colon"
            self._complain(_mark(event), path, text)
        try:
            self._fill(event, _scalar(event))
        except ValueError as err:
            hidden = f"a value that is not shown; {_NO_SECRETS}"
            self._complain(_mark(event), path, hidden if _is_secret(path) else str(err))
            self._fill(event, None)

    def _take_key(self, top: _Open, event: yaml.ScalarEvent) -> None:
        mark, path = _mark(event), (*top.path, event.value)
        if unfit := _unfit_as_key(event):
            self._complain(mark, path, unfit)
        start, end = _ends(event)
        before = self._text[max(0, start.index - 16) : start.index]
        if before.rstrip(" ").endswith("?"):
            self._complain(mark, path, "a key written with '?'; needed `key: value`")
        if path in self.key_marks:
            text = f"a key for the second time (first in line {self.key_marks[path].line})"
            self._complain(mark, path, f"{text}; needed each key once")
        self.key_marks.setdefault(path, mark)
        top.key, top.key_end = event.value, end.index


def _mark(event: yaml.Event) -> Mark:
    start, _ = _ends(event)
    return Mark(start.line + 1, start.column + 1)


def _ends(event: yaml.Event) -> tuple[Any, Any]:
    """The parser's own marks, which its type stubs doubt."""
    return event.start_mark, event.end_mark


def _scalar(event: yaml.ScalarEvent) -> bool | int | float | str | None:
    """What the scalar means.

    Raises:
        ValueError: readers of YAML differ about it, or it cannot be held.
    """
    if event.implicit[0]:
        return _plain(event.value)
    if unfit := _UNFIT_IN_TEXT.search(event.value):
        raise ValueError(f"control character U+{ord(unfit.group()):04X} in a text; needed none")
    return str(event.value)


def _unfit_as_key(event: yaml.ScalarEvent) -> str:
    """Why the scalar cannot be a key; empty when it can."""
    if event.implicit[0] and event.value == "<<":
        return "a merge key; needed the keys written out"
    try:
        if isinstance(_scalar(event), str):
            return ""
    except ValueError as err:
        if not event.implicit[0]:
            return str(err)
    return f"got {_cut(event.value) or 'nothing'} as a key; needed text: quote it"


_OF_BASE_TEN = "a number to base 10"
_NO_ZEROS = "a number without leading zeros"
_SURPRISES = (
    (r"(?i:yes|no|on|off|y|n)", "which YAML 1.1 takes for true or false", "true or false"),
    (r"[-+]?0[0-9][0-9_]*", "which YAML 1.1 takes for an octal number", _NO_ZEROS),
    (r"[-+]?0[0-9_]+(\.[0-9_]*)?([eE][-+]?[0-9]+)?", "which begins with zeros", _NO_ZEROS),
    (r"[-+]?[0-9][0-9_]*(:[0-9_]+)+(\.[0-9_]*)?", "a number to base 60 in YAML 1.1", _OF_BASE_TEN),
    (r"[-+]?0[xXoObB][0-9a-fA-F_]+", "not a number to base 10", _OF_BASE_TEN),
    (
        r"(?=.*_)[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?",
        "which YAML 1.1 takes for a number",
        "a number without '_'",
    ),
    (
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \n]+)[0-9].*)?",
        "which YAML 1.1 takes for a date",
        "text in quotes",
    ),
    (r"[-+]?\.(?i:inf|nan)", "which is not finite", "a finite number"),
    (r"(?=.*[^\x00-\x7f])[-+]?\d[\d.,:_]*", "which has foreign digits", "the digits 0 to 9"),
    (r"=", "which YAML 1.1 takes for a default value", "text in quotes"),
    (r"<<", "which is YAML 1.1's merge key", "the keys written out"),
)
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def _plain(text: str) -> bool | int | float | str | None:
    """The value of an unquoted scalar, where all readers agree on it.

    Raises:
        ValueError: they do not, or the number is beyond 64 bits.

    Source:
        YAML 1.2.2, 10.3.2, core schema; YAML 1.1's type repository for what to refuse.
    """
    for pattern, why, instead in _SURPRISES:
        if re.fullmatch(pattern, text):
            quoted = f"quote it if it is text: {_shown(text)}"
            raise ValueError(f"got {_cut(text)}, {why}; needed {instead}; {quoted}")
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _whole(text)
    if _FLOAT.fullmatch(text):
        return _fraction(text)
    return text


def _whole(text: str) -> int:
    # Python refuses to convert thousands of digits; twenty characters hold every 64-bit number.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(
            f"got {_cut(text)}; needed a whole number of 64 bits; quote it if it is text"
        )
    return int(text)


def _fraction(text: str) -> float:
    number = float(text)
    digits = re.split("[eE]", text)[0]
    if number in (float("inf"), float("-inf")) or (number == 0 and re.search("[1-9]", digits)):
        raise ValueError(f"got {_cut(text)}; needed a number of 64 bits; quote it if it is text")
    return number


_SIGN = "a text that begins with a sign of YAML's; needed quotes around it"
# What libyaml and PyYAML say, what it means, and whether the trouble lies where they began.
_SYNTAX = (
    (r"expected ',' or '\]'", "a list that begins here; needed ',' between items and ']'", True),
    (r"expected ',' or '}'", "a mapping that begins here; needed ',' between keys and '}'", True),
    (r"unexpected end of stream", "a quote that is never closed; needed its other end", True),
    (r"unexpected document", "a quote that is never closed; needed its other end", True),
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


def _syntax(error: Exception, text: str) -> tuple[Mark, str]:
    """Where and how the text breaks YAML's syntax."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return Mark(1, 1), f"cannot be read as YAML: {error}"
    problem = f"{error.context or ''}; {error.problem or ''}"
    for pattern, words, at_start in _SYNTAX:
        if re.search(pattern, problem):
            return _inside(error.context_mark if at_start else error.problem_mark, text), words
    mark = _inside(error.problem_mark, text)
    if "cannot start any token" in problem:
        char = text.split("\n")[mark.line - 1][mark.column - 1 : mark.column]
        return mark, f"got {char!r} where a value begins; needed quotes around it"
    return mark, f"not YAML: {problem.removeprefix('; ')}"


def _inside(mark: yaml.Mark | None, text: str) -> Mark:
    """The mark, or the end of the last line with text where the parser stood behind it."""
    lines = text.rstrip().split("\n")
    if mark is None or mark.line >= len(lines):
        return Mark(len(lines), len(lines[-1]) + 1)
    return Mark(mark.line + 1, mark.column + 1)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """One of pydantic's errors, brought to its place in the file.

    Args:
        path: of the value, or of the mapping that lacks ``missing``.
        value: what is there.
        candidates: the types that it may have.
        forks: the unions on the way, outermost first: where, and pydantic's name of the branch.
    """

    path: Where
    value: Tree
    candidates: tuple[Any, ...]
    forks: tuple[tuple[Where, str], ...]
    error: ErrorDetails
    missing: str = ""
    about_key: bool = False

    @property
    def kind(self) -> str:
        return self.error["type"]


def _traced(error: ErrorDetails, data: Tree, model: type[BaseModel]) -> _Trouble:
    location, kind = error["loc"], error["type"]
    names_key = kind in ("missing", "extra_forbidden")
    walked = _Walk(data, (model,))
    walked.follow(location[:-1] if names_key else location)
    trouble = _Trouble(
        tuple(walked.path), walked.value, walked.candidates, tuple(walked.forks), error
    )
    if kind == "missing" and isinstance(location[-1], str):
        return replace(trouble, missing=location[-1])
    if kind == "extra_forbidden":
        return replace(trouble, path=(*trouble.path, location[-1]), about_key=True)
    if kind.startswith("union_tag"):
        return _at_tag(trouble)
    if location[-1:] == ("[key]",) and trouble.path[-1:] != ("[key]",):
        return replace(trouble, value=str(trouble.path[-1]), about_key=True)
    return trouble


def _at_tag(trouble: _Trouble) -> _Trouble:
    tag = trouble.error.get("ctx", {}).get("discriminator", "").split("'")[1:2]
    if not tag or not isinstance(trouble.value, dict):
        return trouble
    if trouble.kind == "union_tag_not_found" or tag[0] not in trouble.value:
        return replace(trouble, missing=tag[0])
    return replace(trouble, path=(*trouble.path, tag[0]), value=trouble.value[tag[0]])


class _Walk:
    """Follows pydantic's location through data and types at once.

    A location also has elements that are in no file: the names of union branches and of
    validators. Data alone cannot tell them from keys; the types can.
    """

    def __init__(self, value: Tree, candidates: tuple[Any, ...]) -> None:
        self.path: list[str | int] = []
        self.forks: list[tuple[Where, str]] = []
        self.value = value
        self.candidates = candidates
        self._branched = False

    def follow(self, location: Sequence[str | int]) -> None:
        for step in location:
            if len(self.candidates) > 1 and not self._branched:
                self.forks.append((tuple(self.path), str(step)))
                self.candidates = _branch(self.candidates, str(step))
                self._branched = True
            else:
                self._descend(step)

    def _descend(self, step: str | int) -> None:
        try:
            self.value = _child(self.value, step)
        except LookupError:
            return
        self.path.append(step)
        inner = (_inner(candidate, step) for candidate in self.candidates)
        self.candidates = tuple(itertools.chain.from_iterable(inner))
        self._branched = False


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The types that an annotation stands for: unions and aliases taken apart, without None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _choices(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return tuple(itertools.chain.from_iterable(map(_choices, get_args(annotation))))
    if hasattr(annotation, "__value__"):  # a `type` statement
        return _choices(annotation.__value__)
    if _is_model(annotation) and issubclass(annotation, RootModel):
        return _choices(annotation.model_fields["root"].annotation)
    return () if annotation in (None, type(None)) else (annotation,)


def _is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def _inner(candidate: Any, step: str | int) -> tuple[Any, ...]:
    """The types of what lies inside a value of the type ``candidate``."""
    if _is_model(candidate):
        return _choices(_fields(candidate).get(str(step)))
    inside = get_args(candidate)
    if isinstance(step, str):
        return tuple(itertools.chain.from_iterable(map(_choices, inside[1:2])))
    is_fixed = get_origin(candidate) is tuple and inside[-1:] != (Ellipsis,)
    chosen = inside[step : step + 1] if is_fixed else inside[:1]
    return tuple(itertools.chain.from_iterable(map(_choices, chosen)))


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """The types of a model's fields, by the keys that a file may use for them."""
    return {
        key: info.annotation
        for name, info in model.model_fields.items()
        for key in _accepted_keys(name, info)
    }


def _accepted_keys(name: str, info: FieldInfo) -> list[str]:
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [alias if isinstance(alias, str) else name]


def _branch(candidates: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    """The candidates that pydantic means by a branch's name; all when it cannot be told."""
    bare = name.removeprefix("constrained-").partition("[")[0]
    named = [
        candidate
        for candidate in candidates
        if bare == getattr(get_origin(candidate) or candidate, "__name__", "").casefold()
        or name == getattr(candidate, "__name__", "")
        or name in _tags(candidate)
    ]
    return tuple(named) or candidates


def _tags(candidate: Any) -> list[str]:
    if not _is_model(candidate):
        return []
    choices = itertools.chain.from_iterable(map(_choices, _fields(candidate).values()))
    return [str(option) for choice in choices for option in _options((choice,))]


def _options(candidates: Iterable[Any]) -> list[Tree]:
    """The values that the candidates list one by one."""
    found: list[Tree] = []
    for candidate in candidates:
        if get_origin(candidate) is Literal:
            found += get_args(candidate)
        elif isinstance(candidate, type) and issubclass(candidate, enum.Enum):
            found += [member.value for member in candidate]
    return found


_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "none_required": "nothing",
}
_LIMITS = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "finite_number": "a finite number",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} in it",
    "too_long": "at most {max_length} in it",
    "union_tag_invalid": "one of {expected_tags}",
}
_LISTED = ("literal_error", "enum")


def _settled(troubles: list[_Trouble], depth: int = 0) -> list[_Trouble]:
    """The troubles that matter: of a union only those of the branch that the value resembles."""
    settled = [trouble for trouble in troubles if len(trouble.forks) <= depth]
    unions: dict[Where, dict[str, list[_Trouble]]] = {}
    for trouble in troubles:
        if len(trouble.forks) > depth:
            where, name = trouble.forks[depth]
            unions.setdefault(where, {}).setdefault(name, []).append(trouble)
    for where, branches in unions.items():
        inside = [_settled(branch, depth + 1) for branch in branches.values()]
        entered = [branch for branch in inside if not any(_bars(where, one) for one in branch)]
        if entered:
            nearest = min(entered, key=_distance)
            settled += nearest
        else:
            settled += itertools.chain(*inside)
    return settled


def _is_echo(trouble: _Trouble) -> bool:
    """Whether a list is only too short for pydantic, which does not count the items it refused."""
    if trouble.kind != "too_short" or not isinstance(trouble.value, list | dict):
        return False
    return len(trouble.value) >= int(trouble.error["ctx"]["min_length"])


def _bars(where: Where, trouble: _Trouble) -> bool:
    return trouble.path == where and not trouble.missing and trouble.kind != "missing"


def _distance(branch: list[_Trouble]) -> tuple[int, int]:
    """How far a value is from a branch; a word that tells the branches apart weighs most."""
    return sum(trouble.kind in _LISTED for trouble in branch), len(branch)


def _worded(path: Where, group: list[_Trouble]) -> str:
    first = group[0]
    if first.kind == "extra_forbidden":
        return _unknown(path, first.candidates)
    if first.missing:
        return f"key {_shown(first.missing)} is missing; needed: {_wanted(first)}"
    own = [words for trouble in group if (words := _own_words(trouble))]
    if _is_secret(path):
        needed = "" if own else f"; needed {_any_of(map(_needed, group))}"
        return f"got a value that is not shown; {_NO_SECRETS}{needed}"
    if own:
        return own[0]
    needed = _any_of(map(_needed, group))
    return f"{_seen(group, needed)}; needed {needed}{_hint(first, group, needed)}"


def _unknown(path: Where, candidates: tuple[Any, ...]) -> str:
    key = str(path[-1])
    seen = f"unknown key {_shown(key)}"
    if _is_secret((key,)):
        return f"{seen}; {_NO_SECRETS}"
    known = [name for model in filter(_is_model, candidates) for name in _fields(model)]
    if question := _similar(key, known):
        return f"{seen}; {question}"
    return f"{seen}; needed one of {', '.join(known)}" if known else f"{seen}; needed none here"


def _wanted(trouble: _Trouble) -> str:
    """What kind of value the missing key needs."""
    models = filter(_is_model, trouble.candidates)
    wanted = [
        choice for model in models for choice in _choices(_fields(model).get(trouble.missing))
    ]
    options = [_shown(option) for option in _options(wanted)]
    listed = [_one_of(options)] if options else []
    return _any_of([*listed, *(_kind(choice) for choice in wanted if not _options((choice,)))])


def _kind(candidate: Any) -> str:
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if _is_model(candidate) or get_origin(candidate) in (dict, Mapping):
        return "a mapping"
    return words.get(candidate, "a list" if get_args(candidate) else "a value")


def _own_words(trouble: _Trouble) -> str:
    """The message of a validator of ours; empty for pydantic's own messages."""
    error = trouble.error
    if trouble.kind in ("value_error", "assertion_error"):
        return str(error["ctx"]["error"])
    is_known = trouble.kind in (*_KINDS, *_LIMITS, *_LISTED, "missing")
    return "" if is_known or " should " in error["msg"] else error["msg"]


def _needed(trouble: _Trouble) -> str:
    error, kind = trouble.error, trouble.kind
    if kind == "missing":  # of a list with a fixed number of places
        return f"{_places(trouble.candidates)} in it"
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _LIMITS:
        limits = error.get("ctx", {}).items()
        return _LIMITS[kind].format(**{name: _number(limit) for name, limit in limits})
    options = [_shown(option) for option in _options(trouble.candidates)]
    if kind in _LISTED and options:
        return _one_of(options)
    return error["msg"].partition(" should ")[2].removeprefix("be ")


def _number(limit: Any) -> Any:
    """The limit without the ``.0`` that pydantic gives to the limits of a float."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _places(candidates: tuple[Any, ...]) -> int:
    return max(len(get_args(candidate)) for candidate in candidates)


def _seen(group: list[_Trouble], needed: str) -> str:
    value = group[0].value
    kinds: tuple[tuple[type, str], ...] = (
        (str, "text"),
        (int, "a whole number"),
        (float, "a number"),
    )
    if needed == "a list" and not isinstance(value, dict | None):
        return "got a single value"
    said = [word for kind, word in kinds if type(value) is kind]
    if said and any(trouble.kind in _KINDS for trouble in group):
        return f"got {_shown(value)} ({said[0]})"
    return f"got {_shown(value)}"


def _hint(first: _Trouble, group: list[_Trouble], needed: str) -> str:
    """What may have been meant, where it can be guessed."""
    value = first.value
    if needed == "a list" and not isinstance(value, dict | list | None):
        return f", such as [{_shown(value)}]"
    if needed == "text" and isinstance(value, int | float):
        return "; quote it"
    if not isinstance(value, str):
        return ""
    options = _options(itertools.chain(*(trouble.candidates for trouble in group)))
    tags = re.findall(r"'([^']*)'", str(first.error.get("ctx", {}).get("expected_tags", "")))
    question = _similar(value, [*tags, *(option for option in options if isinstance(option, str))])
    return f"; {question}" if question else ""
