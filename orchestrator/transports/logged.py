"""A transport that writes each command and file transfer to the debug log, with its duration."""

import logging
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from orchestrator.transports import Completed, Stream, Transport

LOGGER = logging.getLogger("dlperf.node")
LONGEST = 400
# Parts of names between `_` and `-` by which variables and options count as secrets. No task is
# given any; what people write into playbooks and images may hold some all the same.
_PART = r"[a-z0-9]*(?:token|password|passwd|passphrase|secret|credential)s?|(?:api|auth)?key|pass"
_NAME = rf"_*(?:[a-z0-9]+[_-])*(?:{_PART})(?:[_-][a-z0-9]+)*"
_OPTION = re.compile(rf"(?i)--?{_NAME}")
_ASSIGNED = re.compile(rf"(?is)(-{{0,2}}{_NAME}=).*")
# Within scripts and addresses: a value ends where the shell would end it.
_VALUE = r"""(?:'[^']*'?|"(?:\\.|[^"\\])*"?|\\.|[^\s;&|'"\\])+"""
_WITHIN = re.compile(
    rf"(?is)((?<![\w-])-{{0,2}}{_NAME}=|(?<![\w-])--?{_NAME}\s+|\b(?:bearer|basic)\s+){_VALUE}"
)
_LOGIN = re.compile(r"(://)[^\s/@]*@")


class LoggedTransport:
    """Wrap a transport and log its calls; reads are not logged: polling would fill the log."""

    def __init__(self, transport: Transport) -> None:
        self.node = transport.node
        self._transport = transport

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        with self._logged("run", argv) as answer:
            done = self._transport.run(argv, timeout_s=timeout_s)
            answer.append(f"exit {done.exit_code}")
            return done

    def put(self, content: bytes, path: str) -> None:
        with self._logged("put", (path, f"({len(content)} bytes)")):
            self._transport.put(content, path)

    def get(self, path: str, offset: int = 0, *, own: bool = False) -> bytes | None:
        return self._transport.get(path, offset, own=own)

    def open(self, argv: tuple[str, ...]) -> Stream:
        with self._logged("open", argv):
            return self._transport.open(argv)

    def close(self) -> None:
        self._transport.close()

    @contextmanager
    def _logged(self, action: str, words: tuple[str, ...]) -> Iterator[list[str]]:
        began, answer = time.monotonic(), ["failed"]
        try:
            yield answer
            answer[:1] = []
        finally:
            took_ms = (time.monotonic() - began) * 1000
            shown = " ".join(shlex.join(_redact(words)).split())[:LONGEST]
            result = " ".join(answer)
            LOGGER.debug("%s %s %s: %s %.0f ms", self.node, action, shown, result, took_ms)


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
