"""What a parser could not read safely, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing in a recorded output that must not be taken as it looks.

    Args:
        code: the word that tests and scripts look for, such as ``TRUNCATED``.
        message: where it is, what was seen and what became of it, in plain words.
    """

    code: str
    message: str
