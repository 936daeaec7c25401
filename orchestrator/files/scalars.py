"""The value of a YAML scalar, if YAML 1.1 and 1.2 agree on it."""

import re
from collections.abc import Mapping

from orchestrator import words
from orchestrator.files.source import INVISIBLE

_OF_BASE_TEN = "a number to base 10"
_NO_ZEROS = "a number without leading zeros"
_NO_NODES = re.compile(r"0x[0-9]+")  # a placement of no node, which YAML takes for hexadecimal
# The need that is shown for a YAML 1.1 word, unless the model knows the type of the key.
TRUE_OR_FALSE = "true or false where that is meant"
_SURPRISES = (
    (r"(?i:yes|no|on|off|y|n)", "which YAML 1.1 takes for true or false", TRUE_OR_FALSE),
    (r"[-+]?0[0-9][0-9_]*", "which YAML 1.1 takes for an octal number", _NO_ZEROS),
    (r"[-+]?0[0-9_]+(\.[0-9_]*)?([eE][-+]?[0-9]+)?", "which begins with zeros", _NO_ZEROS),
    (r"[-+]?[0-9][0-9_]*(:[0-9_]+)+(\.[0-9_]*)?", "a number to base 60 in YAML 1.1", _OF_BASE_TEN),
    (_NO_NODES.pattern, "not a number to base 10", f"{_OF_BASE_TEN}, or nodes x GPUs from 1x1 on"),
    (r"[-+]?0[xXoObB][0-9a-fA-F_]+", "not a number to base 10", _OF_BASE_TEN),
    (
        r"(?=.*_)[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?",
        "which YAML 1.1 takes for a number",
        "a number without '_'",
    ),
    (
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \n]+)[0-9].*)?",
        "which YAML 1.1 takes for a date",
        "text in quotes",
    ),
    (r"[-+]?\.(?i:inf|nan)", "which is not finite", "a finite number"),
    (r"(?=.*[^\x00-\x7f])[-+]?\d[\d.,:_]*", "which has foreign digits", "the digits 0 to 9"),
    (r"=", "which YAML 1.1 takes for a default value", "text in quotes"),
    (r"<<", "which is YAML 1.1's merge key", "the keys written out"),
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
    """The value of an unquoted scalar.

    Raises:
        ValueError: readers of YAML differ about it, or the number is beyond 64 bits.

    Source:
        YAML 1.2.2, 10.3.2, core schema; YAML 1.1's type repository for what to refuse.
    """
    for pattern, why, instead in _SURPRISES:
        if re.fullmatch(pattern, text):
            but = ", and no placement" if _NO_NODES.fullmatch(text) else ""
            quote = f"quote it if it is text{but}: {words.shown(text)}"
            raise ValueError(f"got {words.cut(text)}, {why}; needed {instead}; {quote}")
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _whole(text)
    if _FLOAT.fullmatch(text):
        return _fraction(text)
    return text


def quoted(text: str) -> str:
    """The text of a quoted scalar, whose escapes may stand for more than its line shows.

    Raises:
        ValueError: it has control characters.
    """
    if unfit := _UNFIT.search(text):
        raise ValueError(f"control character U+{ord(unfit.group()):04X} in a text; needed none")
    return text


def _whole(text: str) -> int:
    # Python refuses to convert thousands of digits; twenty characters hold every 64-bit number.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise _beyond(text, "a whole number")
    return int(text)


def _fraction(text: str) -> float:
    number = float(text)
    digits = re.split("[eE]", text)[0]
    if abs(number) == float("inf") or (number == 0 and re.search("[1-9]", digits)):
        raise _beyond(text, "a number")
    return number


def _beyond(text: str, kind: str) -> ValueError:
    seen = words.cut(text)
    return ValueError(f"got {seen}; needed {kind} of 64 bits; quote it if it is text")
