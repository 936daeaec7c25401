"""Reaching a port: real listeners and connectors on this machine, and what their words mean."""

import socket
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.deadlines import CALLED_S
from orchestrator.probes import reach
from orchestrator.probes.reach import Heard
from orchestrator.probes.sections import Output
from tests import commands

WORD = "w0rd"


def free_port() -> int:
    with socket.create_server(("", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def listener() -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen(
        reach.listener(port, WORD, seconds=30),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    assert reach.listening(process.stdout.readline()) == Heard("open")
    yield port
    process.stdin.close()
    assert process.wait(timeout=10) == 0
    process.stdout.close()


def call(port: int, address: str = "127.0.0.1", env: dict[str, str] | None = None) -> Heard:
    argv = reach.connector(address, port)
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=30, check=False)
    return reach.connected(Output(done.returncode, done.stdout, done.stderr), token=WORD)


def test_listener_is_reached_again_and_again(listener: int) -> None:
    """The listener ends when its input does."""
    assert [call(listener) for _ in range(3)] == [Heard("open")] * 3


def test_callers_that_hurry_away_end_no_listener(listener: int) -> None:
    """A scanner of ports, or a caller whose time is over."""
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", listener)) as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            caller.shutdown(socket.SHUT_WR)
    assert call(listener) == Heard("open")


def test_a_port_without_a_listener_is_blocked_in_the_nodes_own_words() -> None:
    heard = call(free_port())
    assert heard.state == "blocked"
    assert heard.reason.endswith("Connection refused")


def test_a_port_that_another_program_holds_is_busy() -> None:
    with socket.create_server(("", 0)) as server:
        argv = reach.listener(server.getsockname()[1], WORD, seconds=5)
        done = commands.run(argv, timeout_s=30)
    assert reach.listening(done.stdout) == Heard("busy", "the port is in use")


def test_a_node_without_python_or_bash_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    env = {"PATH": str(tmp_path)}
    argv = reach.listener(29500, WORD, seconds=5)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30, check=True)
    assert reach.listening(done.stdout) == Heard("unproven", "no python3")
    assert call(29500, env=env) == Heard("unproven", "no bash")


@pytest.mark.parametrize(
    ("line", "heard"),
    [
        ("", Heard("unproven", "no answer")),
        ("problem Permission denied\n", Heard("unproven", "Permission denied")),
        ("problem Address already in use\n", Heard("busy", "the port is in use")),
        ("listening\n", Heard("open")),
    ],
)
def test_a_listener_that_does_not_listen_gives_its_reason(line: str, heard: Heard) -> None:
    assert reach.listening(line) == heard


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (Output(0, f"{WORD}\n", ""), Heard("open")),
        (Output(None, "", ""), Heard("blocked", "no answer in 5 s")),
        (Output(124, "", ""), Heard("blocked", "no answer in 5 s")),
        (Output(1, "", ""), Heard("blocked", "exit status 1")),
        (Output(1, "", "a\nNo route to host\n"), Heard("blocked", "No route to host")),
        (Output(0, "SSH-2.0-x\r\n", ""), Heard("blocked", "something else answers there")),
    ],
)
def test_a_call_that_fails_gives_its_reason(said: Output, heard: Heard) -> None:
    assert reach.connected(said, token=WORD) == heard


@pytest.mark.parametrize("nodes", [2, 4, 16, 32, 64, 200])
def test_a_listener_lasts_until_the_last_peer_has_called(nodes: int) -> None:
    """Callers have 32 turns at a time, and each calls its peers one by one, in vain at worst."""
    turns = -(-nodes // 32)
    assert reach.listening_s(nodes, 7, at_once=32) > turns * 7 * CALLED_S


@pytest.mark.parametrize(("nodes", "calls"), [(2, 1), (16, 15), (17, 5), (64, 6), (1000, 10)])
def test_each_node_calls_others_and_is_called_as_often(nodes: int, calls: int) -> None:
    """Up to 16 each calls all others; of more the calls grow with the logarithm of the nodes."""
    names = [f"n{number}" for number in range(nodes)]
    peers = reach.peers(names)
    called = Counter(name for those in peers.values() for name in those)
    assert {len(set(those) - {caller}) for caller, those in peers.items()} == {calls}
    assert [called[name] for name in names] == [calls] * nodes
