"""Commands that tests run: to their end, on a terminal, with another Docker or Slurm."""

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

from tests.processes import PATIENCE_S


def run(
    argv: Sequence[str | Path],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    said: str = "",
    timeout_s: float = 600,
) -> "subprocess.CompletedProcess[str]":
    """A command with this on its standard input: what it printed, and its exit code."""
    return subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        input=said,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def checked(
    done: "subprocess.CompletedProcess[str]", code: int = 0
) -> "subprocess.CompletedProcess[str]":
    """It, which must have ended with this code."""
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def ended(process: "subprocess.Popen[str]", limit_s: float = PATIENCE_S) -> tuple[int, str]:
    """Exit code of a command that was left running, and what it said on standard error."""
    _, said = process.communicate(timeout=limit_s)
    return process.returncode, said


def told(process: "subprocess.Popen[str]", code: int = 0, limit_s: float = PATIENCE_S) -> str:
    """What such a command said, which must end with this code."""
    found, said = ended(process, limit_s)
    assert found == code, said
    return said


def environment(**own: str) -> dict[str, str]:
    """This process's, with these; nothing else of DLPERF_ is in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DLPERF_")}
    return {**kept, **own}


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
    """Return what a command wrote to a terminal of ``columns`` columns, without colors.

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


_LINE = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")
TELL = {"PYTHONPROFILEIMPORTTIME": "1"}


def loaded(stderr: str) -> frozenset[str]:
    """Names of all modules that a command loaded, whose environment had ``TELL``."""
    return frozenset(_LINE.findall(stderr))


# ``OTHER_BIN`` names folders, with colons between, whose programs come before the machine's own.
# ``DOCKER_IMAGE_STORE=containerd`` has Docker keep images in containerd, and ``mixed`` on every
# second node only. ``make engines`` and ``make slurm`` set them.


_BIN = os.environ.get("OTHER_BIN", "")
_STORE = os.environ.get("DOCKER_IMAGE_STORE", "")


def on_path(standard: str) -> str:
    """A PATH on which these programs come first."""
    return f"{_BIN}:{standard}" if _BIN else standard


def image_store(place: int) -> dict[str, object]:
    """dockerd's setting of where images lie, on the node of that place, from 0."""
    if not _STORE:
        return {}
    in_containerd = _STORE == "containerd" or place % 2 == 1
    return {"features": {"containerd-snapshotter": in_containerd}}
