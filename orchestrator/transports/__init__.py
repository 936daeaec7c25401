"""Transports: run commands and read and write files on a node, over SSH or on this machine."""

import logging
import re
import secrets
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S
from orchestrator.transports._shell import ABSENT, PUT, format_read
from orchestrator.words import SECRET_PART

MOST_BYTES = 4 << 20  # of a file, at a time
SLOWEST = 64 << 10  # bytes a second: a link of half a megabit
LOGGER = logging.getLogger("dlperf.node")
LONGEST = 400
# No task is given a secret; what people write into playbooks and images may hold some.
_NAME = rf"_*(?:[a-z0-9]+[_-])*(?:{SECRET_PART})(?:[_-][a-z0-9]+)*"
_OPTION = re.compile(rf"(?i)--?{_NAME}")
# All that follows in the word, which may be a script: its quoting is not parsed.
_VALUE = re.compile(rf"(?is)((?<![\w-])(?:-{{0,2}}{_NAME}=|--?{_NAME}\s)|\b(?:bearer|basic)\s).+")
_LOGIN = re.compile(r"(://)[^\s/@]*@")


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ran to its end; a non-zero exit is an answer, not an error."""

    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def complaint(self) -> str:
        """Return the last line of its standard error."""
        return self.stderr.decode(errors="replace").strip().rpartition("\n")[2]


class Stream(Protocol):
    """A command that runs on the node, as a byte stream of its standard input and output.

    A lost connection raises NodeUnreachable: it is not the output's end.
    """

    def sendall(self, data: bytes, /) -> None:
        """Write it all to its standard input; raise BrokenPipeError if the command has ended."""

    def recv(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes of its standard output; return none at its end."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Limit the time of each ``recv`` and ``sendall`` (TimeoutError); None for no limit."""

    def close(self) -> None:
        """End both directions; the command sees the end of its input."""


class Transport(ABC):
    """Runs commands and moves files on one node; safe for several threads.

    A command `sh -c SCRIPT NAME WORD...` reaches /bin/sh by standard input, so that `ps` does not
    show the script; its ``$0`` is that shell's. The debug log has all calls but reads: polling
    would fill it.
    """

    unfit: type[errors.DlperfError] = errors.LocalError  # if a file cannot be written or read

    def __init__(self, node: str) -> None:
        self.node = node

    def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        """Run ``argv`` on the node with no terminal and no input.

        A program that signal n ended has exit code 128 + n.

        Raises:
            NodeUnreachable: nothing was run, or (SSH-LOST, SSH-RESET) it may still be running.
            CommandTimedOut: it may still be running on the node.
        """
        with _logged(self.node, "run", argv) as answer:
            done = self._execute(argv, timeout_s, argv[0])
            answer.append(f"exit {done.exit_code}")
            return done

    def put(self, content: bytes, path: str) -> None:
        """Write a file with mode 0600, aside and then renamed; new folders above it get 0700.

        Raises:
            LocalError, UnfitError: the old file, if any, is untouched.
            NodeError: the connection is lost; the file is the old or the new one, and whole.
        """
        size, aside = len(content), f"{path}.{secrets.token_hex(4)}.new"
        words = ("sh", "-c", PUT, "sh", path, aside, str(size))
        with _logged(self.node, "put", (path, f"({size} bytes)")):
            done = self._execute(words, COMMAND_S + size / SLOWEST, f"writing {path}", content)
            if done.exit_code != 0:
                cause = f"cannot write {path}: {done.complaint}"
                raise self.unfit(cause, code="WRITE", node=self.node)

    def open(self, argv: tuple[str, ...]) -> Stream:
        """Start ``argv`` on the node as a byte stream; its standard error is dropped.

        A missing program is a stream that ends at once.
        """
        with _logged(self.node, "open", argv):
            return self._start(argv)

    def get(self, path: str, offset: int = 0, *, own: bool = False) -> bytes | None:
        """Read a file from ``offset``, at most 4 MiB; return None if there is no file.

        Args:
            own: return None also unless it is a regular file of the login user; no link is
                followed. For folders that a container can write to.
        """
        words = format_read(path, offset, MOST_BYTES, own=own)
        done = self._execute(words, COMMAND_S, f"reading {path}", b"")
        if done.exit_code == ABSENT:
            return None
        if done.exit_code != 0:
            cause = f"cannot read {path}: {done.complaint}"
            raise self.unfit(cause, code="READ", node=self.node)
        return done.stdout

    @abstractmethod
    def close(self) -> None:
        """Close the connection; commands that run on the node go on."""

    @abstractmethod
    def _execute(
        self, argv: tuple[str, ...], timeout_s: float, doing: str, content: bytes | None = None
    ) -> Completed:
        """Run ``argv`` to its end; ``content`` is the input of a script that reads all of it."""

    @abstractmethod
    def _start(self, argv: tuple[str, ...]) -> Stream: ...


@contextmanager
def _logged(node: str, action: str, words: tuple[str, ...]) -> Iterator[list[str]]:
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
    follows = False
    for whole in words:
        word = whole[: 4 * LONGEST]  # more is not shown, and scripts may be long
        yield "..." if follows else _without_values(word)
        follows = not follows and word.startswith("-") and bool(_OPTION.fullmatch(word))


@lru_cache(maxsize=256)  # many nodes are given the same scripts, for which this takes a millisecond
def _without_values(word: str) -> str:
    return _LOGIN.sub(r"\1...@", _VALUE.sub(r"\1...", word))
