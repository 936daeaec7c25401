"""A problem that makes a trial invalid, or a mark on a valid trial."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A code, such as ``TRUNCATED``, and where it is and what was seen."""

    code: str
    message: str
