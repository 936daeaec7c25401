"""A command on a terminal of a given size, and what a person has seen there at its end."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CTRL_C = b"\x03"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")
_ROWS = 50


def on_terminal(
    argv: Sequence[str],
    *,
    columns: int,
    cwd: Path,
    env: Mapping[str, str],
    ctrl_c_at: Callable[[str], bool] = lambda _: False,
) -> str:
    """What the command wrote to a terminal that is ``columns`` wide, colours taken out.

    Args:
        ctrl_c_at: of what was seen so far, whether the person presses Ctrl-C now; once.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    words = {key: value for key, value in env.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        ("setsid", "--ctty", *argv),  # so that the terminal's Ctrl-C reaches it
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env={**words, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    said, pressed = b"", False
    with contextlib.suppress(OSError):  # EIO: the last process that had the terminal has ended
        while piece := os.read(ours, 65536):
            said += piece
            if not pressed and ctrl_c_at(said.decode(errors="ignore")):
                pressed = os.write(ours, CTRL_C) > 0
    os.close(ours)
    process.wait()
    return _ESCAPES.sub("", said.decode()).replace("\r\n", "\n")
