"""How nouns stand in documents: pydantic's adapters, each made once, when it is first needed."""

from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")
_MADE: dict[type, TypeAdapter[Any]] = {}


def shape(noun: type[T]) -> TypeAdapter[T]:
    """Return the adapter that reads a noun from a document and writes it into one.

    Making that of a large noun takes 5 to 15 ms, which commands that read none do not wait for.
    """
    if noun not in _MADE:
        _MADE[noun] = TypeAdapter(noun)
    made: TypeAdapter[T] = _MADE[noun]
    return made
