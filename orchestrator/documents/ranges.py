"""Ranges in inventories: one entry ``vs[001-128]`` stands for as many nodes or HCAs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator import errors, nodeset, words
from orchestrator.documents.document import Document, Tree, Where

MOST = 4096  # entries that one stands for
# Keys in which a range may stand, by the list whose entries have them.
KEYS: Mapping[str, tuple[str, ...]] = {"nodes": ("name", "address"), "hcas": ("name",)}


def expanded(document: Document) -> Document:
    """Return the inventory with an entry per name of a range; messages lead to what was written.

    Raises:
        ConfigError: every range that is none.
    """
    growth = _Growth(document)
    data = growth.grown(document.data, (), ())
    if growth.problems:
        raise errors.ConfigError(growth.problems)
    starts, keys, written = document.starts, document.key_starts, growth.written
    return replace(
        document,
        data=data,
        starts={to: starts[at] for to, at in written.items()},
        key_starts={to: keys[at] for to, at in written.items() if at in keys},
        written=written,
    )


class _Growth:
    """Builds the data with all entries.

    Args:
        written: by the path of a value, the path of what it was written as.
    """

    def __init__(self, document: Document) -> None:
        self.written: dict[Where, Where] = {}
        self.problems: list[errors.Mistake] = []
        self._document = document

    def grown(self, value: Tree, at: Where, to: Where) -> Tree:
        """Return the value that is written at ``at``, for its place ``to``."""
        self.written[to] = at
        if isinstance(value, dict):
            return {key: self.grown(item, (*at, key), (*to, key)) for key, item in value.items()}
        if not isinstance(value, list):
            return value
        items: list[Tree] = []
        for place, item in enumerate(value):
            for copy in self._copies(item, (*at, place)):
                items.append(self.grown(copy, (*at, place), (*to, len(items))))
        return items

    def _copies(self, item: Tree, at: Where) -> Sequence[Tree]:
        """Return the entries that one means; itself where there is no range or a bad one."""
        keys = KEYS.get(str(at[-2]), ()) if at[0] in ("nodes", "defaults") else ()
        if not isinstance(item, dict):
            return (item,)
        given = {key: value for key in keys if isinstance(value := item.get(key), str)}
        if not any("[" in value for value in given.values()):
            return (item,)
        several: dict[str, Sequence[str]] = {}
        for key, text in given.items():
            try:
                several[key] = nodeset.unfold(text, MOST)
            except ValueError as error:
                self._complain((*at, key), f"{words.shown(text)}: {error}")
                return (item,)
        (first, names), *others = several.items()
        for key, values in others:
            if len(values) != len(names):
                seen = f"{key} stands for {len(values)}, {first} for {len(names)}"
                self._complain((*at, key), f"{seen}; needed as many of both")
                return (item,)
        rows = zip(*several.values(), strict=True)
        return [{**item, **dict(zip(several, row, strict=True))} for row in rows]

    def _complain(self, at: Where, text: str) -> None:
        self.problems.append(self._document.mistake(at, text))
