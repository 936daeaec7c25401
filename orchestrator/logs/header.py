"""Parse a log's header, a program's arguments, under our names; collect a log's problems."""

import re
from collections.abc import Callable, Mapping

from orchestrator.model.problem import Problem

Value = str | int | float | bool
Table = Mapping[str, tuple[str, Callable[[str], Value]]]
"""By the program's name of an argument: our name, and the function that parses its value."""


class Notes:
    """Problems of a log: the first of each sort, and a count."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, code: str, text: str, *, sort: str = "", times: int = 1) -> None:
        """Add a problem; problems of one code and one ``sort`` are counted together."""
        count, first = self._seen.get((code, sort), (0, text))
        self._seen[code, sort] = (count + times, first)

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems in the order of the log."""
        return tuple(
            Problem(code, first if count == 1 else f"{first} (the first of {count})")
            for (code, _), (count, first) in self._seen.items()
        )


def parser(pattern: str, convert: Callable[[str], Value], needed: str) -> Callable[[str], Value]:
    """Return a function that converts a text that matches; for others it raises ValueError."""
    find = re.compile(pattern, re.ASCII).fullmatch

    def parse(text: str) -> Value:
        if not find(text):
            raise ValueError(needed)
        return convert(text)

    return parse


count = parser(r"0*[1-9]\d{0,14}", int, "a positive number")
whole = parser(r"-?\d{1,15}", int, "a whole number")  # -1 for "unset"
real = parser(r"-?\d{1,30}(?:\.\d{1,30})?(?:e[-+]?\d{1,2})?", float, "a number")
switch = parser("True|False", lambda text: text == "True", "True or False")
word = str


def keep(read: Callable[[str], Value], *keys: str) -> Table:
    """Return a table of arguments that keep their names in our header."""
    return {key: (key, read) for key in keys}


class Header:
    """The header of one run; for an argument that the table lacks, only the name is kept."""

    def __init__(self, table: Table, notes: Notes) -> None:
        self._table = table
        self._notes = notes
        self._values: dict[str, Value] = {}
        self._unsure: set[str] = set()
        self.keys: set[str] = set()

    def add(self, key: str, text: str, line: int) -> None:
        """Record an argument; an invalid or contradictory value is a problem and is not used."""
        self.keys.add(key)
        if key not in self._table or text in ("", "None"):
            return
        name, read = self._table[key]
        try:
            value = read(text)
        except ValueError as needed:
            seen = f"{key} : {text[:40]}; {needed} was needed"
            self._notes.add("MALFORMED", f"line {line}: header: {seen}", sort=key)
            self._unsure.add(name)
            return
        if self._values.setdefault(name, value) != value:
            seen = f"{key} : {text[:40]} against {self._values[name]}"
            self._notes.add("MIXED-CONFIG", f"line {line}: header: {seen}", sort=name)
            self._unsure.add(name)

    def is_certain(self, *names: str) -> bool:
        """Return True if no value of these arguments was invalid or contradicted another."""
        return not self._unsure & {*names}

    @property
    def values(self) -> Mapping[str, Value]:
        """Return certain values by our names."""
        return {name: it for name, it in self._values.items() if name not in self._unsure}

    def get(self, name: str) -> Value | None:
        """Return a value, None if the header lacks it or it is uncertain."""
        return None if name in self._unsure else self._values.get(name)

    def number(self, name: str) -> int | None:
        value = self.get(name)
        return value if type(value) is int else None

    def numbers(self, *names: str) -> tuple[int, ...] | None:
        """Return several whole numbers, None if the header lacks any."""
        found = [value for name in names if (value := self.number(name)) is not None]
        return tuple(found) if len(found) == len(names) else None

    def is_on(self, key: str) -> bool | None:
        """Return True if a switch is on, False if it is unset, None if the header lacks it."""
        name, _ = self._table[key]
        if key not in self.keys or name in self._unsure:
            return None
        return self._values.get(name) is True
