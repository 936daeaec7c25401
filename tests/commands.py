"""Commands that tests run to their end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


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


def environment(**own: str) -> dict[str, str]:
    """This process's, with these; nothing else of DLPERF_ is in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DLPERF_")}
    return {**kept, **own}
