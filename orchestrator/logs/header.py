"""What the header of a log says of a program's arguments, under our names."""

import re
from collections.abc import Callable, Mapping

from orchestrator.logs.notes import Notes

Value = str | int | float | bool
Table = Mapping[str, tuple[str, Callable[[str], Value]]]
"""By the program's name of an argument: our name, and how its value reads."""


_WHOLE = re.compile(r"-?[0-9]{1,15}")
_REAL = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:e[-+]?[0-9]{1,2})?")


def count(text: str) -> int:
    """A positive number."""
    if not _WHOLE.fullmatch(text) or int(text) <= 0:
        raise ValueError("a positive number")
    return int(text)


def whole(text: str) -> int:
    """A whole number; -1 often stands for none."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("a whole number")
    return int(text)


def real(text: str) -> float:
    """A finite number."""
    if not _REAL.fullmatch(text):
        raise ValueError("a number")
    return float(text)


def word(text: str) -> str:
    """A value as it stands there."""
    return text


def switch(text: str) -> bool:
    """Whether a switch is on."""
    if text not in ("True", "False"):
        raise ValueError("True or False")
    return text == "True"


def named(read: Callable[[str], Value], *keys: str) -> Table:
    """Arguments that we call as the program does."""
    return {key: (key, read) for key in keys}


class Header:
    """The header of one run, line by line.

    Args:
        table: the arguments that matter; of all others only the name is kept.
    """

    def __init__(self, table: Table, notes: Notes) -> None:
        self._table = table
        self._notes = notes
        self._values: dict[str, Value] = {}
        self._unsure: set[str] = set()
        self.keys: set[str] = set()

    def add(self, key: str, text: str, line: int) -> None:
        """Take one argument; what does not read, or contradicts another, is noted and given up."""
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

    def put(self, name: str, value: Value) -> None:
        """Take what another line says beside the arguments; the last word counts."""
        self._values[name] = value

    def withdraw(self, *names: str) -> None:
        """Forget what contradicts itself."""
        self._unsure.update(names)

    def is_certain(self, *names: str) -> bool:
        """Whether nothing was wrong with what these arguments say, if they say anything."""
        return not self._unsure & {*names}

    @property
    def values(self) -> Mapping[str, Value]:
        """What is told without conflict, by our names."""
        return {name: it for name, it in self._values.items() if name not in self._unsure}

    def get(self, name: str) -> Value | None:
        """One of the values; None where the header does not say it for certain."""
        return None if name in self._unsure else self._values.get(name)

    def number(self, name: str) -> int | None:
        """One of the values, if it is a whole number."""
        value = self.get(name)
        return value if type(value) is int else None

    def numbers(self, *names: str) -> tuple[int, ...] | None:
        """Several whole numbers; None where the header lacks one."""
        found = [value for name in names if (value := self.number(name)) is not None]
        return tuple(found) if len(found) == len(names) else None

    def is_on(self, key: str) -> bool | None:
        """Whether a switch is on; off where it is unset, None where the header does not tell."""
        name, _ = self._table[key]
        if key not in self.keys or name in self._unsure:
            return None
        return self._values.get(name) is True
