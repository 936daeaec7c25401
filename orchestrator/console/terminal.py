"""Standard output and standard error as rich writes to them."""

import contextlib
import io
import os
import sys

from rich.console import Console
from rich.text import Text


class _Quiet(io.TextIOWrapper):
    """Standard error whose reader may be gone, which must not stop a sweep."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().flush()


class Stream(Console):
    """A stream to people; we, not rich, handle a reader that has gone away."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def say(self, text: str) -> None:
        """Print lines as they are."""
        self.print(Text(text))


def output() -> Stream:
    """Open standard output."""
    return Stream(highlight=False, soft_wrap=True)


def progress() -> Stream:
    """Open standard error."""
    raw = os.fdopen(2, "wb", closefd=False)
    quiet = _Quiet(raw, encoding=sys.stderr.encoding, errors="replace")
    return Stream(file=quiet, highlight=False, soft_wrap=True)
