"""The debug log of commands and file transfers on nodes, with their durations."""

import logging
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from orchestrator.words import SECRET_PART

LOGGER = logging.getLogger("dlperf.node")
LONGEST = 400
# No task is given a secret; what people write into playbooks and images may hold some.
_NAME = rf"_*(?:[a-z0-9]+[_-])*(?:{SECRET_PART})(?:[_-][a-z0-9]+)*"
_OPTION = re.compile(rf"(?i)--?{_NAME}")
_ASSIGNED = re.compile(rf"(?is)(-{{0,2}}{_NAME}=).*")
# Within scripts and addresses: a value ends where the shell would end it.
_VALUE = r"""(?:'[^']*'?|"(?:\\.|[^"\\])*"?|\\.|[^\s;&|'"\\])+"""
_WITHIN = re.compile(
    rf"(?is)((?<![\w-])-{{0,2}}{_NAME}=|(?<![\w-])--?{_NAME}\s+|\b(?:bearer|basic)\s+){_VALUE}"
)
_LOGIN = re.compile(r"(://)[^\s/@]*@")


@contextmanager
def logged(node: str, action: str, words: tuple[str, ...]) -> Iterator[list[str]]:
    """Write a line to the debug log after the block, with the words that it adds to the list."""
    began, answer = time.monotonic(), ["failed"]
    try:
        yield answer
        answer[:1] = []
    finally:
        took_ms = (time.monotonic() - began) * 1000
        shown = " ".join(shlex.join(_redact(words)).split())[:LONGEST]
        result = " ".join(answer)
        LOGGER.debug("%s %s %s: %s %.0f ms", node, action, shown, result, took_ms)


def _redact(words: Iterable[str]) -> Iterator[str]:
    """Replace words of a command that may be secrets by dots."""
    follows = False
    for whole in words:
        word = whole[: 4 * LONGEST]  # more is not shown, and scripts may be long
        yield "..." if follows else _without_values(word)
        follows = not follows and word.startswith("-") and bool(_OPTION.fullmatch(word))


@lru_cache(maxsize=256)  # many nodes are given the same scripts, for which this takes a millisecond
def _without_values(word: str) -> str:
    if assigned := _ASSIGNED.fullmatch(word):
        return f"{assigned[1]}..."
    return _LOGIN.sub(r"\1...@", _WITHIN.sub(r"\1...", word))
