"""Many command lines in a short time: one process imports the program, a fork runs each of them."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import ROOT
from tests.conftest import Place

Ended = tuple[int, str, str]


def run(place: Place, lines: Sequence[Sequence[str]]) -> list[Ended]:
    """Exit code, standard output and standard error of each command, one after the other."""
    return commands(lines, place.folder, place.env())


def commands(
    lines: Sequence[Sequence[str]], folder: Path, env: Mapping[str, str] | None = None
) -> list[Ended]:
    """The same of commands in any folder, with nothing of DLPERF_ in their environment."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DLPERF_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.warm"],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **(env or {})},
        input=json.dumps([list(line) for line in lines]),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def _one(words: Sequence[str]) -> Ended:
    paths = [Path(f"warm.{os.getpid()}.{name}") for name in ("out", "err")]
    pid = os.fork()
    if pid == 0:
        from orchestrator.cli import main

        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
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
    from orchestrator.verbs import (  # noqa: F401 - warm
        check,
        clean,
        collect,
        inspect,
        list_,
        logs,
        status,
        stop,
        sweep,
    )
    from orchestrator.workloads import ngc_pytorch_rn50, reference_rn50  # noqa: F401 - warm

    print(json.dumps([_one(words) for words in json.load(sys.stdin)]))  # noqa: T201 - the answer
