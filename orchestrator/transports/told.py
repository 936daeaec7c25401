"""A transport whose every command and file is in the debug log, with how long it took."""

import logging
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.transports import Completed, Stream, Transport

LOGGER = logging.getLogger("dlperf.node")
LONGEST = 400
# Values of variables that may be secrets; no task's environment holds any, and none shall be seen.
_SECRET = re.compile(r"(?i)([A-Z_]*(?:TOKEN|PASS|SECRET|KEY)[A-Z_]*=)\S+")


class ToldTransport:
    """Another transport, watched; what polling reads is left out, since it says nothing new."""

    def __init__(self, transport: Transport) -> None:
        self.node = transport.node
        self._transport = transport

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        """As the transport does."""
        with self._told("run", argv) as answer:
            done = self._transport.run(argv, timeout_s=timeout_s)
            answer.append(f"exit {done.exit_code}")
            return done

    def put(self, content: bytes, path: str) -> None:
        """As the transport does."""
        with self._told("put", (path, f"({len(content)} bytes)")):
            self._transport.put(content, path)

    def get(self, path: str, offset: int = 0) -> bytes | None:
        """As the transport does."""
        return self._transport.get(path, offset)

    def feed(self, path: str, line: bytes) -> bool:
        """As the transport does."""
        with self._told("feed", (path,)) as answer:
            heard = self._transport.feed(path, line)
            answer.append("heard" if heard else "nobody reads")
            return heard

    def open(self, argv: tuple[str, ...]) -> Stream:
        """As the transport does."""
        with self._told("open", argv):
            return self._transport.open(argv)

    def close(self) -> None:
        """As the transport does."""
        self._transport.close()

    @contextmanager
    def _told(self, what: str, words: tuple[str, ...]) -> Iterator[list[str]]:
        began, answer = time.monotonic(), ["failed"]
        try:
            yield answer
            answer[:1] = []
        finally:
            took_ms = (time.monotonic() - began) * 1000
            said = _SECRET.sub(r"\1...", " ".join(shlex.join(words).split()))[:LONGEST]
            result = " ".join(answer)
            LOGGER.debug("%s %s %s: %s %.0f ms", self.node, what, said, result, took_ms)
