"""Runs the commands of a page as a reader would: block after block, in one folder."""

import os
import subprocess
import sys
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
# What no machine without GPUs, root or the internet can run, and what takes minutes or ends what
# tests use; the parser of the command line reads these, and Makefile has the targets.
ONLY_PARSED = {
    "README.md: make demo": "takes minutes",
    "README.md: make test": "is what runs this",
    "README.md: pip install '.[demo]'": "writes into the environment of the tests",
    "docs/first-cluster.md: dlperf-orch init bench@10.0.0.11 bench@10.0.0.12"
    " -o inventory/mine.yaml": "needs the nodes; tests/on_cluster/test_pages.py asks virtual ones",
    "docs/commands-nodes.md: dlperf-orch trust v100x4": "needs the nodes",
    "docs/commands.md: dlperf-orch bundle v100x4 /media/usb": "needs the nodes",
    "docs/commands.md: dlperf-orch data check imagenet --inventory v100x4": "needs the nodes",
    "docs/commands.md: dlperf-orch data prepare imagenet --inventory v100x4 --from /downloads"
    " --dry-run": "needs the nodes",
    "docs/images.md: ssh 10.0.0.1 docker run --detach --name registry --network host --restart"
    " unless-stopped registry:2": "tests/on_cluster/test_registry.py does it",
    "docs/images.md: dlperf-orch provision inventory/v100x4.yaml --lock": "needs the nodes",
    "docs/images.md: dlperf-orch bundle inventory/v100x4.yaml /media/usb/bundle": "needs the nodes",
    "docs/images.md: dlperf-orch clean --images --inventory v100x4": "needs the nodes",
    "docs/compare.md: dlperf-orch compare --interleave before after --inventory mine"
    " --repeats 5": "tests/sweeping/test_turns.py does it",
    "docs/virtual-cluster.md: .venv/bin/python -m tests.cluster up": "other tests do it",
}
# What needs a cluster, and runs on the virtual one.
ON_THE_CLUSTER = (
    "README.md: dlperf-orch provision mine --lock",
    "docs/first-cluster.md: dlperf-orch trust mine",
    "docs/first-cluster.md: dlperf-orch sweep today --case 2x8 --repeats 1",
    "docs/first-cluster.md: dlperf-orch status",
    "docs/first-cluster.md: dlperf-orch collect",
    "docs/data-sets.md: dlperf-orch data check imagenet --inventory inventory/mine.yaml",
)
# What needs a login node of Slurm, and runs on the virtual one.
ON_SLURM = (
    "docs/first-slurm.md: dlperf-orch init --slurm main -o inventory/queue.yaml",
    "docs/first-slurm.md: dlperf-orch provision queue",
)
Run = Callable[[str], "subprocess.CompletedProcess[str]"]


def runs_here(block: Block) -> bool:
    """Whether a block of commands runs on any machine."""
    return block.name not in (*ONLY_PARSED, *ON_THE_CLUSTER, *ON_SLURM)


def runs_there(block: Block) -> bool:
    """Whether it runs on the virtual cluster."""
    return block.name in ON_THE_CLUSTER


def program(folder: Path) -> str:
    """A PATH on which `dlperf-orch` is this checkout's, with the tests' Python."""
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
    """What runs a script in a folder of this machine."""

    def run(script: str) -> "subprocess.CompletedProcess[str]":
        return commands.run([*SHELL, script], cwd=folder, env=env, timeout_s=limit_s)

    return run
