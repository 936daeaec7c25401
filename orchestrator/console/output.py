"""Standard output whose failures are errors of this machine, not bugs."""

import io
import os
import sys
from errno import EIO
from typing import TYPE_CHECKING

from orchestrator import errors

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    def write(self, data: "ReadableBuffer") -> int:
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader wants no more, as `head` does
            raise
        except OSError as error:
            if error.errno == EIO:  # a terminal that hung up; `Voice.is_unheard` knows
                raise
            # What is still buffered would fail again at the end of the interpreter.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise _make_error(str(error.strerror)) from error


def guard() -> None:
    """Let writes to standard output raise STDOUT where they fail.

    Raises:
        LocalError: STDOUT; it was closed by the caller.
    """
    out = sys.stdout
    if out is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the program ends
        raise _make_error("it is closed")
    if out is sys.__stdout__ and isinstance(out, io.TextIOWrapper):
        buffer = io.BufferedWriter(_Output(1, "wb", closefd=False))
        encoding, lines = out.encoding, out.line_buffering
        sys.stdout = io.TextIOWrapper(buffer, encoding, out.errors, line_buffering=lines)


def _make_error(why: str) -> errors.LocalError:
    return errors.LocalError(
        f"standard output cannot be written: {why}",
        code="STDOUT",
        fix="write it elsewhere; what the command did otherwise is done",
    )
