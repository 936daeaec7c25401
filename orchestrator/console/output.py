"""Standard output whose failures are errors of this machine, not bugs."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from errno import EIO

from orchestrator import errors


class _Output(io.TextIOWrapper):
    def write(self, text: str) -> int:
        with _translated():
            return super().write(text)

    def flush(self) -> None:
        with _translated():
            super().flush()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader wants no more, as `head` does
        raise
    except OSError as error:
        if error.errno == EIO:  # a terminal that hung up; `Voice.is_unheard` knows
            raise
        # What is still buffered would fail again at the end of the interpreter.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise _lost(str(error.strerror)) from error


def guard() -> None:
    """Let writes to standard output raise STDOUT where they fail.

    Raises:
        LocalError: STDOUT; it was closed by the caller.
    """
    if sys.stdout is None:
        raise _lost("it is closed")
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _Output(
            os.fdopen(1, "wb", closefd=False),
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            line_buffering=sys.stdout.line_buffering,
        )


def _lost(why: str) -> errors.LocalError:
    return errors.LocalError(
        f"standard output cannot be written: {why}",
        code="STDOUT",
        fix="write it elsewhere; what the command did otherwise is done",
    )
