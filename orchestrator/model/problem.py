"""Why a trial does not count, or a mark on one that does, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a trial, a log or another recorded output does not count; as a mark, what to know of it.

    Args:
        code: what tests and scripts look for, such as ``TRUNCATED``.
        message: where it is and what was seen.
    """

    code: str
    message: str
