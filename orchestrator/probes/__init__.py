"""Probes: read-only questions to a node, each a command and the parser of its output. Pure.

``node`` and ``container`` put many questions into one round trip with ``sections``; a new fact
of nodes is a parser here and a field in ``model/facts``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Probe(Generic[Fact]):
    """A command and the parser of its standard output; ``name`` is for error messages."""

    name: str
    argv: tuple[str, ...]
    parse: Callable[[str], Fact]
