"""Completion of words: by the program, by bash and by zsh in a terminal of its own."""

import os
import pty
import select
import shutil
import time
from collections.abc import Mapping

import pytest

from tests import commands
from tests.cli.here import Here
from tests.conftest import Place
from tests.docs import running

PATIENCE_S = 60.0
BASH = """
eval "$(dlperf-orch --show-completion)" || exit
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_dlperf_orch_completion dlperf-orch
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(here: Here, line: str) -> list[str]:
    """Return what the program offers bash for the last word of a line."""
    here.patch.setenv("_DLPERF_ORCH_COMPLETE", "complete_bash")
    here.patch.setenv("COMP_WORDS", f"dlperf-orch {line}")
    here.patch.setenv("COMP_CWORD", str(line.count(" ") + 1))
    return sorted(here(code=0).out.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("prov", "provision"),
        ("sweep to", "toy"),
        ("sweep rn50-a", "rn50-amp rn50-amp-static"),
        ("sweep toy --inventory t", "two"),
        ("provision v", "v100x4"),
        ("provision two --image ref", "reference-rn50"),
        ("collect --workload oneflow_", "oneflow_bert oneflow_gpt oneflow_rn50"),
        ("inspect log --workload to", "toy toy_fabric toy_last toy_plain"),
        ("status ", ""),
        ("list ", "images inventories playbooks sweeps workloads"),
        ("schema p", "playbook"),
        ("logs ", ""),
    ],
)
def test_names_are_completed(here: Here, line: str, offered: str) -> None:
    """Commands, and the names of what is here and shipped; nothing is written."""
    assert complete(here, line) == offered.split()
    assert not here.state.exists()


@pytest.mark.parametrize("command", ["status", "collect", "stop", "logs --sweep"])
def test_sweeps_are_completed(here: Here, command: str) -> None:
    """By their folders alone: a damaged record is reported by the command."""
    for name, text in (("toy-1", '{"version": 1}'), ("toy-2", "{"), ("other-1", '{"version": 1}')):
        here.write(f".dlperf/sweeps/{name}/sweep.json", text)
    assert complete(here, f"{command} toy") == ["toy-1", "toy-2"]


def environment(place: Place) -> Mapping[str, str]:
    """Return the environment of a shell that finds the program by its name."""
    path = running.program(place.folder / "bin")
    return {**place.env(), "PATH": path, "HOME": str(place.folder)}


def test_bash_calls_the_program(place: Place) -> None:
    words = ["bash", "--norc", "-c", BASH, "bash", "dlperf-orch", "sweep", "smo"]
    done = commands.run(words, cwd=place.folder, env=environment(place), timeout_s=PATIENCE_S)
    assert (done.stdout, done.stderr) == ("smoke\n", "")


def typed(master: int, keys: str, until: bytes) -> None:
    """Type keys in a terminal, and wait until it shows these bytes."""
    os.write(master, keys.encode())
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    while until not in shown:
        left = deadline - time.monotonic()
        assert left > 0, shown
        if select.select([master], [], [], left)[0]:
            shown += os.read(master, 65536)


@pytest.mark.cluster
def test_zsh_completes_names(place: Place) -> None:
    """A playbook, then an inventory, each by a key TAB; in CI the shell must be there."""
    zsh = shutil.which("zsh")
    if zsh is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no zsh on this machine")
    env = {**environment(place), "TERM": "dumb", "PS1": "%% "}
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
