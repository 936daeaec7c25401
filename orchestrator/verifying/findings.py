"""The differences that verification finds, and what it could not derive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose

TOLERANCE = 1e-9
"""Relative difference of two floating-point numbers that counts as none.

Some statistics use ``exp`` and ``erfc``, whose last digit differs between C libraries.
"""

MOST = 1e100  # beyond it sums and squares of floats overflow


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs from what follows from the evidence.

    ``place`` is within the file, such as ``cases[3].median``; empty for the whole file.
    """

    file: str
    place: str
    written: str
    derived: str


@dataclass(slots=True)
class Findings:
    """All differences found so far, and how many files and numbers were checked.

    ``not_derived`` has the reasons why values were not derived, by a name for the values.
    """

    differences: list[Difference] = field(default_factory=list)
    not_derived: dict[str, list[str]] = field(default_factory=dict)
    files: int = 0
    numbers: int = 0

    def differs(self, file: str, place: str, written: object, derived: object) -> None:
        """Add a difference unless it is already listed."""
        found = Difference(file, place, _shorten(written), _shorten(derived))
        if found not in self.differences:
            self.differences.append(found)

    def leave(self, values: str, why: str) -> None:
        """Record that some values were not derived."""
        self.not_derived.setdefault(values, []).append(why)

    def same(self, file: str, place: str, written: object, derived: object) -> None:
        """Compare a value with the derived one, or each part that the derived one has."""
        if isinstance(derived, Mapping):
            if not isinstance(written, Mapping):
                self.differs(file, place, written, "an object")
                return
            for key, value in derived.items():
                inner = f"{place}.{key}" if place else key
                if key not in written:
                    self.differs(file, inner, "nothing", value)
                else:
                    self.same(file, inner, written[key], value)
        elif isinstance(derived, list | tuple):
            if not isinstance(written, list | tuple) or len(written) != len(derived):
                self.differs(file, place, written, derived)
                return
            for index, value in enumerate(derived):
                self.same(file, f"{place}[{index}]", written[index], value)
        else:
            self.numbers += isinstance(derived, int | float)
            if not _equal(written, derived):
                self.differs(file, place, written, derived)


def at(document: object, *steps: str | int) -> object:
    """Return the value at these steps in a document, or None."""
    for step in steps:
        found = document
        document = None
        if isinstance(found, Mapping):
            document = found.get(step)
        elif isinstance(found, Sequence) and isinstance(step, int) and step < len(found):
            document = found[step]
    return document


def items(document: object) -> list[Mapping[str, object]]:
    """Return the objects in a list; none if it is not a list."""
    found = document if isinstance(document, list) else []
    return [item for item in found if isinstance(item, Mapping)]


def text(value: object) -> str:
    """Return a string; an empty one in place of any other value."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """Return a number that can be reckoned with; None in place of any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < MOST else None


def codes(problems: object) -> list[str]:
    """Return the codes of a list of problems."""
    return [text(problem.get("code")) for problem in items(problems)]


def _equal(written: object, derived: object) -> bool:
    if isinstance(written, bool) or isinstance(derived, bool):
        return written is derived
    if isinstance(written, float) and isinstance(derived, float):
        return isclose(written, derived, rel_tol=TOLERANCE)
    return written == derived


def _shorten(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        return f"{len(value)} items"
    return "nothing" if value is None else str(value)[:300]
