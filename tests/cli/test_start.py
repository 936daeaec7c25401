"""What short commands load before they answer: libraries that they use, and no others."""

import os
import sys
from pathlib import Path

import pytest

from tests import TESTS, commands
from tests.loading import TELL, loaded

OF_NODES = {"cryptography", "docker", "fabric", "paramiko", "requests", "tenacity"}
OURS = {"orchestrator.fleet", "orchestrator.runtimes", "orchestrator.transports"}


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        ("--version", {*OF_NODES, "rich", "yaml", "orchestrator.model.cluster"}),
        ("--help", {*OF_NODES, "rich", "yaml", "orchestrator.model.cluster"}),
        ("list workloads", {*OF_NODES, "yaml"}),
        ("list inventories", {*OF_NODES, "yaml"}),
        ("list playbooks", OF_NODES | OURS),
        ("schema inventory", OF_NODES | OURS),
        ("check inventory/local.yaml", OF_NODES | OURS),
        ("sweep smoke --dry-run --inventory local", OF_NODES),
        ("status", OF_NODES),
        ("list sweeps", OF_NODES | OURS),
    ],
)
def test_a_command_loads_no_library_that_it_does_not_use(
    tmp_path: Path, words: str, unused: set[str]
) -> None:
    """Such as those for SSH and Docker, half a second of start-up, where no node is reached."""
    done = commands.run(
        [sys.executable, "-m", "orchestrator", *words.split()],
        cwd=TESTS.parent,
        env={**os.environ, **TELL, "DLPERF_STATE": str(tmp_path)},
    )
    names = loaded(done.stderr)
    assert "orchestrator.cli.app" in names
    assert not names & unused
