"""Probes: read-only questions to a node, each a command and the parser of its answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Probe(Generic[Fact]):
    """A question as a value: what to run, and what its standard output means."""

    name: str
    argv: tuple[str, ...]
    parse: Callable[[str], Fact]
