"""Run the commands of a page as a reader would: block after block, in one folder."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from tests import commands
from tests.docs.pages import Block, blocks

SHELL = ("bash", "-euo", "pipefail", "-c")
PROGRAM = f"""\
#!{sys.executable}
from orchestrator.__main__ import main

main()
"""
_BLOCKS = tomllib.loads((Path(__file__).parent / "not_run_here.toml").read_text())
ONLY_PARSED = _BLOCKS["only_parsed"]
ON_THE_CLUSTER, ON_SLURM = (_BLOCKS["elsewhere"][name] for name in ("cluster", "slurm"))
Run = Callable[[str], "subprocess.CompletedProcess[str]"]


def runs_here(block: Block) -> bool:
    """Return True if a block of commands runs on any machine."""
    return block.name not in (*ONLY_PARSED, *ON_THE_CLUSTER, *ON_SLURM)


def runs_there(block: Block) -> bool:
    return block.name in ON_THE_CLUSTER


def program(folder: Path) -> str:
    """Return a PATH on which `dlperf-orch` is this checkout's, with the tests' Python."""
    folder.mkdir(exist_ok=True)
    path = folder / "dlperf-orch"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def read(page: Path, folder: Path, run: Run, wanted: Callable[[Block], bool]) -> int:
    """Write the files and run the wanted commands of a page, in order; how many blocks ran.

    Args:
        run: takes a script of the shell.
    """
    count = 0
    for block in blocks(page):
        if block.file and not (folder / block.file).exists():
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)
        elif block.language == "sh" and wanted(block):
            done = run(block.text)
            assert done.returncode == 0, (
                f"{block.name}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            )
            count += 1
    return count


def shell(folder: Path, env: Mapping[str, str], limit_s: float = 120.0) -> Run:
    """Return a runner of scripts in a folder of this machine."""

    def run(script: str) -> "subprocess.CompletedProcess[str]":
        return commands.run([*SHELL, script], cwd=folder, env=env, timeout_s=limit_s)

    return run
