"""Many command lines in a short time: one process imports the program, a fork runs each of them."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import Place


def run(place: Place, lines: Sequence[Sequence[str]]) -> list[tuple[int, str, str]]:
    """Exit code, standard output and standard error of each command, one after the other."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.warm", json.dumps([list(line) for line in lines])],
        cwd=place.folder,
        env=place.env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def _one(words: Sequence[str]) -> tuple[int, str, str]:
    paths = [Path(f"warm.{os.getpid()}.{name}") for name in ("out", "err")]
    pid = os.fork()
    if pid == 0:
        from orchestrator.cli import main

        for number, path in enumerate(paths, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["dlperf-orch", *words]
        try:
            main()
        except SystemExit as done:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            os._exit(done.code if isinstance(done.code, int) else 1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    out, err = [path.read_text() for path in paths]
    for path in paths:
        path.unlink()
    return code, out, err


if __name__ == "__main__":
    from orchestrator.verbs import clean, collect, list_, logs, status, stop, sweep  # noqa: F401 - warm

    print(json.dumps([_one(words) for words in json.loads(sys.argv[1])]))  # noqa: T201 - the answer
