"""Commands that tests run to their end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.waiting import PATIENCE_S


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
