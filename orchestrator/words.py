"""Values, names and paths in plain words: one line, and safe for a terminal and an issue."""

import difflib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

NO_SECRETS = "secrets do not belong into these files"
# Parts of the names of variables and options between `_` and `-`: KEYBOARD is no secret.
SECRET_PART = (
    r"[a-z0-9]*(?:token|password|passwd|passphrase|secret|credential)s?|(?:api|auth)?keys?"
    r"|pass|pwd|auth|authorization|bearer|cookie|sas"
)
_LONGEST = 60
_SECRET = re.compile(r"(?i)passw|passphrase|secret|credential|token(?![a-z])")


def shown(value: object) -> str:
    """Format a value for a message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case _:
            return cut(repr(value))


def cut(text: str) -> str:
    """Cut a text, with dots where it was longer."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def printable(text: str) -> str:
    """Escape a text's control characters, so that a terminal obeys none."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def path(steps: Iterable[str | int]) -> str:
    """Format the steps for a message, such as ``nodes[1].name``."""
    return "".join(map(_step, steps)).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,60}", step):
        return f".{step}"
    if is_secret([step]):
        return f"[{shown(bare(str(step)))}...]"
    return f"[{shown(step)}]"


def bare(key: str) -> str:
    """Return ``token`` of keys with their values in them: ``token:abc``, ``token=abc``."""
    return re.split(r"[:=\s]", key, maxsplit=1)[0]


def is_secret(steps: Iterable[str | int]) -> bool:
    """Return whether any key in the path is named like a secret; ``tokenizer`` is not."""
    return any(isinstance(step, str) and _SECRET.search(step) for step in steps)


def any_of(options: Iterable[str]) -> str:
    """Join the options, each once, with ``or`` before the last."""
    *most, last = dict.fromkeys(options)
    return f"{', '.join(most)} or {last}" if most else last


def count(number: int, noun: str) -> str:
    """Format a count: ``1 node``, ``4 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """Format a duration as ``H:MM:SS``, or ``M:SS`` below an hour."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def limit(seconds: float) -> str:
    """Format a time limit: ``1.5 s``, ``900 s``; from an hour on ``4:00:00``."""
    return duration(seconds) if seconds >= 3600 else f"{seconds:g} s"


def size(size_bytes: int) -> str:
    """Format a size to three significant digits: ``512 B``, ``1.5 KiB``, ``377 GiB``."""
    amount, units = float(size_bytes), ("B", "KiB", "MiB", "GiB", "TiB")
    for unit in units:
        if amount < 999.5 or unit == units[-1]:
            break
        amount /= 1024
    digits = 0 if unit == "B" or amount >= 99.95 else 1 if amount >= 9.995 else 2
    text = f"{amount:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def sizes(seen_bytes: int, needed_bytes: int) -> tuple[str, str]:
    """Format two sizes, exactly in MiB where they would read the same."""
    both = size(seen_bytes), size(needed_bytes)
    if both[0] != both[1]:
        return both
    return f"{seen_bytes / (1 << 20):.10g} MiB", f"{needed_bytes / (1 << 20):.10g} MiB"


def apart(
    seen: float, bound: float, kind: Literal["f", "%"] = "f", digits: int = 1
) -> tuple[str, str]:
    """Write two numbers with so many digits, or more by which they differ: 0.52 and 0.50."""
    both = f"{seen:.{digits}{kind}}", f"{bound:.{digits}{kind}}"
    is_apart = both[0] != both[1] or digits > 9
    return both if is_apart else apart(seen, bound, kind, digits + 1)


def moment(text: str) -> str:
    """Format a record's time: ``2026-11-24 10:24:13 UTC``; return what is no time unchanged."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return text


def by_clock(nanoseconds: int) -> str:
    """Format a time since 1970 by a clock of an unknown zone: ``2020-12-16 07:23:31``."""
    return f"{datetime.fromtimestamp(nanoseconds // 10**9, UTC):%Y-%m-%d %H:%M:%S}"


def version_key(version: str) -> tuple[int, ...]:
    """Return a sort key for versions: 4.9-0.1.7.0 is older than 5.3-1.0.0.1."""
    return tuple(int(number) for number in re.findall("[0-9]+", version))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Ask whether the most similar of the names was meant; empty when none is similar."""
    plain = {_plain(candidate): candidate for candidate in names}
    similar = difflib.get_close_matches(_plain(name), plain, n=1)
    return f"did you mean {shown(plain[similar[0]])}?" if similar else ""


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")
