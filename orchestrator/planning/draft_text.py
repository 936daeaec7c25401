"""Texts as strict YAML takes them."""

import json
import re

_SCALAR = re.compile(r"[A-Za-z~/][A-Za-z0-9 ._/~+-]*[A-Za-z0-9]|[A-Za-z]")
_IPV4 = re.compile(r"[0-9]+(\.[0-9]+){3}")
_NO_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


def scalar(value: str) -> str:
    """A text as strict YAML takes it; quoted where it could mean anything else."""
    plain = _SCALAR.fullmatch(value) and value.casefold() not in _NO_WORDS
    return value if plain or _IPV4.fullmatch(value) else json.dumps(value, ensure_ascii=False)
