"""A file's content as plain data, with the line and column of every value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from orchestrator import errors, words

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"
Where: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; line and column count from 1, the column in characters."""

    line: int
    column: int


START = Position(1, 1)


@dataclass(frozen=True, slots=True)
class Document:
    """A file's content as plain data, with the line and column of every value.

    Args:
        file: as the user gave it.
        starts: where each value starts, by its path; the root's is ``()``.
        key_starts: where each key starts, by the path of its value.
        written: of a document whose ranges were expanded, by each path that of what was written.
    """

    file: str
    data: Tree
    starts: Mapping[Where, Position]
    key_starts: Mapping[Where, Position]
    written: Mapping[Where, Where] = field(default_factory=dict)

    def mistake(self, path: Where, text: str, *, key: bool = False) -> errors.Mistake:
        """Return the mistake ``text`` about the value at ``path``, or about its key.

        What the file lacks is complained about where the nearest thing around it starts.
        """
        around = (path[:length] for length in range(len(path), -1, -1))
        at_key = self.key_starts.get(path) if key else None
        nearest = at_key or next(
            (self.starts[step] for step in around if step in self.starts), START
        )
        return mistake(self.file, nearest, self._locate(path), text)

    def _locate(self, path: Where) -> Where:
        """Return the path as the user knows it: ``nodes[0].port`` of the 57th node of a range."""
        known = (path[:length] for length in range(len(path), 0, -1))
        at = next((step for step in known if step in self.written), ())
        return (*self.written.get(at, ()), *path[len(at) :])

    def value(self, path: Where) -> Tree:
        """Return the value at a path.

        Raises:
            KeyError: the file has none there.
        """
        value = self.data
        for step in path:
            value = child(value, step)
        return value


def child(value: Tree, step: str | int) -> Tree:
    """Return what a mapping holds under a key, or a list at an index.

    Raises:
        KeyError: nothing there.
    """
    if isinstance(value, dict) and isinstance(step, str):
        return value[step]
    if isinstance(value, list) and isinstance(step, int):
        return value[step]
    raise KeyError(step)


def mistake(file: str, position: Position, path: Where, text: str) -> errors.Mistake:
    """Return a problem of a file, its text safe to print."""
    return errors.Mistake(
        file, position.line, position.column, words.path(path), words.printable(text)
    )
