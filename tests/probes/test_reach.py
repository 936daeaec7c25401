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
    """A port that nothing listens on."""
    with socket.create_server(("", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def listener() -> Iterator[int]:
    """The port of a listener."""
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
    """What calling came to."""
    argv = reach.connector(address, port)
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=30, check=False)
    return reach.connected(Output(done.returncode, done.stdout, done.stderr), token=WORD)


def test_listener_is_reached_again_and_again(listener: int) -> None:
    """The listener ends when its input does."""
    assert [call(listener) for _ in range(3)] == [Heard("open")] * 3


def test_callers_that_hurry_away_end_no_listener(listener: int) -> None:
    """As a scanner of ports, or a caller whose time is over: the next one is heard."""
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", listener)) as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            caller.shutdown(socket.SHUT_WR)
    assert call(listener) == Heard("open")


def test_port_that_nobody_holds_is_not_reached() -> None:
    """Refused at once, in the node's own words."""
    heard = call(free_port())
    assert heard.state == "blocked"
    assert heard.reason.endswith("Connection refused")


def test_port_that_another_program_holds_is_not_ours() -> None:
    """Its greeting is not taken for the word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        argv = reach.connector("127.0.0.1", port)
        caller = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        out, err = caller.communicate(timeout=30)
    heard = reach.connected(Output(caller.returncode, out, err), token=WORD)
    assert heard == Heard("blocked", "something else answers there")


def test_port_in_use_is_told_from_a_port_that_cannot_be_tried() -> None:
    """Another program listens there already."""
    with socket.create_server(("", 0)) as server:
        argv = reach.listener(server.getsockname()[1], WORD, seconds=5)
        done = commands.run(argv, timeout_s=30)
    assert reach.listening(done.stdout) == Heard("busy", "the port is in use")


def test_node_without_its_tool_proves_nothing(tmp_path: Path) -> None:
    """That is no closed port."""
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
    ],
)
def test_listener_that_does_not_listen_says_why(line: str, heard: Heard) -> None:
    """A port below 1024 needs root; an empty line is no answer."""
    assert reach.listening(line) == heard


@pytest.mark.parametrize(
    ("exit_code", "err", "heard"),
    [
        (124, "", Heard("blocked", "no answer in 5 s")),
        (1, "", Heard("blocked", "exit status 1")),
        (1, "a\nNo route to host\n", Heard("blocked", "No route to host")),
    ],
)
def test_call_that_fails_says_why(exit_code: int, err: str, heard: Heard) -> None:
    """A firewall that drops is silent, one that rejects is not."""
    assert reach.connected(Output(exit_code, "", err), token=WORD) == heard


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
