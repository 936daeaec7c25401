"""Probes: read-only questions to a node, each a command and the parser of its output. Pure.

``node`` and ``container`` ask many questions in one round trip by ``sections``. A new fact of nodes
needs a parser here and a field in ``model/facts``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Probe(Generic[Fact]):
    """A command and the parser of its standard output; ``name`` is for error messages."""

    name: str
    argv: tuple[str, ...]
    parse: Callable[[str], Fact]


def read_values(text: str) -> dict[str, list[str]]:
    """Return the values in a script's lines ``key value``, by key, in the order printed."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key, []).append(value.strip())
    return found


def number(values: Mapping[str, Sequence[str]], key: str) -> int | None:
    """Return the last value of a key as a whole number; None where it is missing or no number."""
    *_, word = values.get(key, ("",))
    return int(word) if re.fullmatch("[0-9]+", word) else None
