"""What the header of a log says of a program's arguments, under our names."""

import re
from collections.abc import Callable, Mapping

from orchestrator.workloads._dll_notes import Notes

Value = str | int | float | bool
Read = Callable[[str], Value]
Table = Mapping[str, tuple[str, Read]]
"""By the program's name of an argument: our name, and how its value reads."""


def count(text: str) -> int:
    """A positive number."""
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) == 0:
        raise ValueError("a positive number")
    return int(text)


def whole(text: str) -> int:
    """A number from 0 on."""
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError("a whole number")
    return int(text)


def real(text: str) -> float:
    """A finite number."""
    if not re.fullmatch(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:e[-+]?[0-9]{1,2})?", text):
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


class Arguments:
    """The header of one run.

    Args:
        table: the arguments that matter; all others pass unread.
    """

    def __init__(self, table: Table, notes: Notes) -> None:
        self._table = table
        self._notes = notes
        self._said: dict[str, Value] = {}
        self._unread: set[str] = set()
        self.keys: set[str] = set()

    def add(self, key: str, text: str, line: int) -> None:
        """Take one argument; one without a value is known to be there, and says nothing."""
        self.keys.add(key)
        if text in ("", "None"):
            return
        name, read = self._table[key]
        try:
            self._said[name] = read(text)
        except ValueError as needed:
            self._notes.add(
                "MALFORMED",
                f"line {line}: header: {key} is {text[:40]}; {needed} was needed",
                sort=key,
            )
            self._unread.add(key)

    def withdraw(self, *names: str) -> None:
        """Forget what contradicts itself."""
        for name in names:
            self._said.pop(name, None)

    def number(self, name: str) -> int | None:
        """A whole number by our name; None where the header does not say it."""
        value = self._said.get(name)
        return value if type(value) is int else None

    def numbers(self, *names: str) -> tuple[int, ...] | None:
        """Several of them; None where the header lacks one."""
        said = [each for name in names if (each := self.number(name)) is not None]
        return tuple(said) if len(said) == len(names) else None

    def is_on(self, switch: str) -> bool | None:
        """Whether a switch is on; off where it is unset, None where the header does not tell."""
        if switch not in self.keys or switch in self._unread:
            return None
        return self._said.get(self._table[switch][0]) is True

    @property
    def said(self) -> Mapping[str, Value]:
        return self._said
