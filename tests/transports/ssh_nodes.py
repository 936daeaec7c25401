"""Real sshds on loopback and transports to them; and an srun that runs steps here."""

import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.node import Node
from orchestrator.transports.ssh import SshTransport
from tests.sshd import Sshd

TRUE = ("true",)
Serve = Callable[..., Sshd]
Reach = Callable[..., SshTransport]


def refusal(transport: SshTransport) -> errors.DlperfError:
    """Why nothing can be run."""
    with pytest.raises(errors.DlperfError) as raised:
        transport.run(TRUE, timeout_s=10)
    assert raised.value.where["node"] == "here"
    return raised.value


def at_once(transports: Sequence[SshTransport]) -> list[int]:
    """Exit statuses of one command on all of them, asked by 32 threads."""
    with ThreadPoolExecutor(32) as pool:
        return [
            done.exit_code for done in pool.map(lambda t: t.run(TRUE, timeout_s=60), transports)
        ]


def do(*words: str) -> None:
    """Run a program to its end, which must be a good one."""
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def both(gate: Sshd, server: Sshd) -> Node:
    """The server through the gate, which knows both keys and lets in the server's identity."""
    known = server.folder / "both"
    known.write_text(gate.known_hosts.read_text() + server.known_hosts.read_text())
    Path(f"{gate.identity}.pub").write_bytes(Path(f"{server.identity}.pub").read_bytes())
    return server.target(known_hosts=str(known), jump=f"{gate.address}:{gate.port}")


SRUN = """#!/bin/sh
while [ "$#" -gt 0 ]; do
    case $1 in sh | */sh | cat) break ;; esac
    shift
done
SLURMD_NODENAME=here
export SLURMD_NODENAME
echo $$ >"$HERE/began"
[ ! -e "$HERE/slow" ] || sleep 2
exec "$@"
"""


def put_srun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program srun first in PATH that runs steps here, slowly if ``folder/slow`` exists."""
    srun = folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN)
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HERE", str(folder))
