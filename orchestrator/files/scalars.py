"""The value of a YAML scalar, if YAML 1.1 and 1.2 agree on it."""

import re
from collections.abc import Mapping

from orchestrator import words
from orchestrator.files.source import INVISIBLE

# What YAML 1.1, YAML 1.2 and people read differently, and what is needed in its place.
_SURPRISES = (
    (r"(?i:yes|no|on|off|y|n)", "true or false where that is meant"),
    (
        r"[-+]?0[0-9_]+(\.[0-9_]*)?([eE][-+]?[0-9]+)?"  # 010, 05.5
        r"|[-+]?[0-9][0-9_]*(:[0-9_]+)+(\.[0-9_]*)?"  # 22:22, which is a number to base 60
        r"|[-+]?0[xXoObB][0-9a-fA-F_]+"  # 0x16
        r"|(?=.*_)[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?"  # 1_000
        r"|(?=.*[^\x00-\x7f])[-+]?\d[\d.,:_]*",  # digits of another script
        "a number in the digits 0 to 9 to base 10, without leading zeros or '_'",
    ),
    (r"[-+]?\.(?i:inf|nan)", "a finite number"),
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \n]+)[0-9].*)?|=|<<", "text in quotes"),
)
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_UNFIT = re.compile(rf"[{INVISIBLE}\t\r]")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def plain(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted scalar.

    Raises:
        ValueError: readers of YAML differ about it, or the number is beyond 64 bits.

    Source:
        YAML 1.2.2, 10.3.2, core schema; YAML 1.1's type repository for what to refuse.
    """
    for pattern, needed in _SURPRISES:
        if re.fullmatch(pattern, text):
            seen = f"got {words.cut(text)}, about which readers of YAML differ"
            raise ValueError(
                f"{seen}; needed {needed}; quote it if it is text: {words.shown(text)}"
            )
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        # Python refuses to convert thousands of digits; twenty hold every 64-bit number.
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            raise _beyond(text, "a whole number")
        return int(text)
    if _FLOAT.fullmatch(text):
        return _fraction(text)
    return text


def quoted(text: str) -> str:
    """Return the text of a quoted scalar, whose escapes may stand for more than its line shows.

    Raises:
        ValueError: it has control characters.
    """
    if unfit := _UNFIT.search(text):
        raise ValueError(f"control character U+{ord(unfit.group()):04X} in a text; needed none")
    return text


def _fraction(text: str) -> float:
    number = float(text)
    digits = re.split("[eE]", text)[0]
    if abs(number) == float("inf") or (number == 0 and re.search("[1-9]", digits)):
        raise _beyond(text, "a number")
    return number


def _beyond(text: str, kind: str) -> ValueError:
    seen = words.cut(text)
    return ValueError(f"got {seen}; needed {kind} of 64 bits; quote it if it is text")
