"""What verification found: differences, and what it did not derive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is written otherwise than it follows from the logs.

    Args:
        file: path within the sweep's folder.
        place: within the file, such as ``cases[3].median``; empty for all of it.
    """

    file: str
    place: str
    written: str
    derived: str


@dataclass(slots=True)
class Findings:
    """Everything found so far.

    Args:
        not_derived: what of it, and why not, by a word for it.
        files, numbers: how many were checked.
    """

    differences: list[Difference] = field(default_factory=list)
    not_derived: dict[str, list[str]] = field(default_factory=dict)
    files: int = 0
    numbers: int = 0

    def differs(self, file: str, place: str, written: object, derived: object) -> None:
        """Add a difference, once."""
        found = Difference(file, place, _words(written), _words(derived))
        if found not in self.differences:
            self.differences.append(found)

    def leave(self, what: str, why: str) -> None:
        """Say that something was not derived."""
        self.not_derived.setdefault(what, []).append(why)

    def same(self, file: str, place: str, written: object, derived: object) -> None:
        """Compare a value, or all parts of one that ``derived`` has.

        What only ``written`` has is not derived.
        """
        if isinstance(derived, Mapping):
            self._same_keys(file, place, written, derived)
        elif isinstance(derived, list | tuple):
            self._same_items(file, place, written, derived)
        else:
            self.numbers += isinstance(derived, int | float)
            if not _equal(written, derived):
                self.differs(file, place, written, derived)

    def _same_keys(
        self, file: str, place: str, written: object, derived: Mapping[str, object]
    ) -> None:
        if not isinstance(written, Mapping):
            self.differs(file, place, written, "an object")
            return
        for key, value in derived.items():
            if key not in written:
                self.differs(file, joined(place, key), "nothing", value)
            else:
                self.same(file, joined(place, key), written[key], value)

    def _same_items(
        self, file: str, place: str, written: object, derived: Sequence[object]
    ) -> None:
        if not isinstance(written, list | tuple) or len(written) != len(derived):
            count = len(written) if isinstance(written, list | tuple) else "no list"
            self.differs(file, place, f"{count} of them", f"{len(derived)} of them")
            return
        for at, value in enumerate(derived):
            self.same(file, f"{place}[{at}]", written[at], value)


def joined(place: str, key: str) -> str:
    """A place one step further in."""
    return f"{place}.{key}" if place else key


def at(document: object, *steps: str | int) -> object:
    """What lies at these steps in a document; None where there is nothing."""
    for step in steps:
        found = document
        document = None
        if isinstance(found, Mapping):
            document = found.get(step)
        elif isinstance(found, list) and isinstance(step, int) and step < len(found):
            document = found[step]
    return document


def items(document: object) -> list[Mapping[str, object]]:
    """The objects in a list; none where it is no list."""
    found = document if isinstance(document, list) else []
    return [item for item in found if isinstance(item, Mapping)]


def text(value: object) -> str:
    """A string; empty where it is none."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """A number; None where it is none."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def codes(problems: object) -> list[str]:
    """The codes of a list of problems."""
    return [text(problem.get("code")) for problem in items(problems)]


def _equal(written: object, derived: object) -> bool:
    if isinstance(written, bool) or isinstance(derived, bool):
        return written is derived
    return written == derived


def _words(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        return f"{len(value)} of them" if value else "none of them"
    return "nothing" if value is None else str(value)[:300]
