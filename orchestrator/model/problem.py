"""Why a trial does not count, or a mark on one that does, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A code, such as ``TRUNCATED``, and where it is and what was seen."""

    code: str
    message: str
