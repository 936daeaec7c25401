"""Completion in real shells: bash, whose function is called, and zsh in a terminal of its own."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping

import pytest

from orchestrator.state.store import Store
from tests.conftest import Place
from tests.verifying.sweeps import made, pytorch

PATIENCE_S = 60.0
BASH = """
eval "$(dlperf-orch --show-completion)" || exit
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_dlperf_orch_completion dlperf-orch
printf '%s\\n' "${COMPREPLY[@]}"
"""


def at(place: Place) -> Mapping[str, str]:
    """The environment of a shell that finds the program by its name."""
    programs = place.folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "dlperf-orch").write_text(
        f"#!{sys.executable}\nfrom orchestrator.cli import main\n\nmain()\n"
    )
    (programs / "dlperf-orch").chmod(0o755)
    return {**place.env(), "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(place.folder)}


def completed(place: Place, *words: str) -> list[str]:
    """What bash offers for the last word; nothing is said on standard error."""
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", "dlperf-orch", *words],
        cwd=place.folder,
        env=at(place),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stderr == ""
    return sorted(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("prov",), ["provision"]),
        (("sweep", "to"), ["toy"]),
        (("sweep", "rn50-a"), ["rn50-amp", "rn50-amp-static"]),
        (("sweep", "toy", "--inventory", "t"), ["two"]),
        (("provision", "v"), ["v100x4"]),
        (("provision", "two", "--image", "ref"), ["reference-rn50"]),
        (("collect", "--workload", "oneflow_"), ["oneflow_bert", "oneflow_gpt", "oneflow_rn50"]),
        (("inspect", "log", "--workload", "to"), ["toy", "toy_fabric", "toy_last", "toy_plain"]),
        (("status", ""), []),
        (("list", ""), ["images", "inventories", "playbooks", "sweeps", "workloads"]),
        (("schema", "p"), ["playbook"]),
        (("logs", ""), []),
    ],
)  # fmt: skip
def test_bash_completes_names(place: Place, words: tuple[str, ...], offered: list[str]) -> None:
    """Commands, and the names of what there is here and shipped; nothing is written."""
    assert completed(place, *words) == offered
    assert not place.state.exists()


@pytest.mark.parametrize("command", [("status",), ("collect",), ("stop",), ("logs", "--sweep")])
def test_bash_completes_sweeps(place: Place, command: tuple[str, ...]) -> None:
    """By the ids of the state folder; what is damaged is for the command to say."""
    for name, text in (("toy-1", '{"version": 1}'), ("toy-2", "{"), ("other-1", '{"version": 1}')):
        folder = place.state / "sweeps" / name
        folder.mkdir(parents=True)
        (folder / "sweep.json").write_text(text)
    assert completed(place, *command, "toy") == ["toy-1", "toy-2"]


def test_bash_completes_trials_of_a_sweep(place: Place) -> None:
    """Of the newest one, or of the one that is named."""
    made(Store(place.state), pytorch())
    trials = [f"4n8g-r50_b256_amp_{repeat}" for repeat in range(1, 6)]
    assert completed(place, "logs", "4n") == trials
    sweep = place.sweep().name
    assert completed(place, "logs", "--sweep", sweep, "4n") == trials


@pytest.fixture
def zsh() -> str:
    """The shell; without it a test is skipped by name, in CI it fails."""
    found = shutil.which("zsh")
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no zsh on this machine")
    return found


def typed(master: int, keys: str, until: bytes) -> bytes:
    """What a terminal shows from these keys on, until it shows those bytes."""
    os.write(master, keys.encode())
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    while until not in shown:
        left = deadline - time.monotonic()
        assert left > 0, shown
        if select.select([master], [], [], left)[0]:
            shown += os.read(master, 65536)
    return shown


@pytest.mark.cluster
def test_zsh_completes_names(place: Place, zsh: str) -> None:
    """Typed in a terminal, TAB and all: a playbook, then an inventory."""
    env = {**at(place), "TERM": "dumb", "PS1": "%% "}
    child, master = pty.fork()
    if child == 0:
        os.chdir(place.folder)
        os.execve(zsh, [zsh, "-f", "-i"], env)
    try:
        load = 'autoload -Uz compinit && compinit -u -D && eval "$(dlperf-orch --show-completion)"'
        typed(master, f"{load}; echo ready$((0))\r", b"ready0")
        typed(master, "dlperf-orch sweep smo\t", b"smoke")
        typed(master, "--inventory tw\t", b"two")
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(master)
