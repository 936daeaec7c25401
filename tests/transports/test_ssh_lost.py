"""Connections that are never made, or lost under way: each end is noticed in its time."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports.ssh import MOST_HANDSHAKES, SshTransport
from tests import processes
from tests.processes import wait_for
from tests.sshd import Sshd
from tests.transports.ssh_nodes import TRUE, Reach, Serve, both, do, refusal

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


class Cable:
    """A network namespace on a cable of its own, and the firewall in it."""

    ours, theirs = "10.213.77.1", "10.213.77.2"

    def __init__(self, name: str) -> None:
        self.name = name
        self.within = ("nsenter", f"--net=/var/run/netns/{name}")

    def plug(self) -> None:
        """Make the namespace and its cable."""
        far, end = ("-n", self.name), f"{self.name}h"
        for words in (
            ("netns", "add", self.name),
            ("link", "add", end, "type", "veth", "peer", "eth0", "netns", self.name),
            ("address", "add", f"{self.ours}/30", "dev", end),
            ("link", "set", end, "up"),
            (*far, "address", "add", f"{self.theirs}/30", "dev", "eth0"),
            (*far, "link", "set", "eth0", "up"),
            (*far, "link", "set", "lo", "up"),
        ):
            do("ip", *words)

    def rule(self, *words: str) -> None:
        """Change the firewall; a test fails if that is not possible."""
        do(*self.within, "iptables", *words)

    def drop(self, *chains: str) -> None:
        """Lose all packets of these chains."""
        for chain in chains:
            self.rule("-A", chain, "-j", "DROP")


@pytest.fixture
def cable() -> Iterator[Cable]:
    made = Cable(f"tsh-{os.getpid()}")
    made.plug()
    yield made
    do("ip", "link", "delete", f"{made.name}h")  # at once; what still runs there has no cable
    do("ip", "netns", "delete", made.name)


def test_a_black_hole_is_named_in_ten_seconds(serve: Serve, reach: Reach, cable: Cable) -> None:
    """A machine that answers nothing is unreachable, not waited for; others are not held up."""
    server = serve(address=cable.theirs, within=cable.within)
    cable.drop("INPUT")
    other = serve()
    began = time.monotonic()
    with ThreadPoolExecutor(12) as pool:
        holes = [pool.submit(refusal, reach(server.target())) for _ in range(8)]
        time.sleep(0.1)
        assert reach(other.target()).run(TRUE, timeout_s=10).exit_code == 0
        assert time.monotonic() - began < 6
        assert {hole.result().code for hole in holes} == {"SSH-UNREACHABLE"}
    assert time.monotonic() - began < 15


def sleepers() -> list[int]:
    """List the commands of ``under_way``."""
    found = []
    for path in processes.files("cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == b"sleep\x0061.5\x00":
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def under_way(transport: SshTransport) -> Iterator[Callable[[], errors.DlperfError]]:
    """Run a command for a minute; yield what waits for the error that it ends with."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(transport.run, ("sleep", "61.5"), timeout_s=60)
        wait_for(sleepers, "the command runs")

        def error() -> errors.DlperfError:
            raised = future.exception(40)
            assert isinstance(raised, errors.DlperfError)
            return raised

        yield error
    for pid in sleepers():
        os.kill(pid, signal.SIGKILL)


def end_connections(server: Sshd) -> None:
    """End its connections, and no command that runs over them."""
    for pid in server.sessions():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if Path(f"/proc/{pid}/comm").read_text() == "sshd\n":
                os.kill(pid, signal.SIGKILL)


def test_a_killed_session_is_no_exit_status(serve: Serve, reach: Reach) -> None:
    """The command may still be running, and is; the next call connects again."""
    server = serve()
    transport = reach(server.target())
    with under_way(transport) as error:
        end_connections(server)
        assert error().code == "SSH-RESET"
        assert "may still run" in error().cause
        assert sleepers()
        assert transport.run(TRUE, timeout_s=10).exit_code == 0


def test_a_reset_is_noticed_and_passes(serve: Serve, reach: Reach, cable: Cable) -> None:
    """A firewall that resets connections; the next call is served again."""
    transport = reach(serve(address=cable.theirs, within=cable.within).target())
    reset = ("INPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
    with under_way(transport) as error:
        cable.rule("-A", *reset)
        with pytest.raises(errors.NodeUnreachable):
            transport.get("/etc/hostname")
        assert error().code == "SSH-RESET"
        cable.rule("-D", *reset)
        assert transport.run(TRUE, timeout_s=10).exit_code == 0


def test_a_dead_machine_is_noticed_in_fifteen_seconds(
    serve: Serve, reach: Reach, cable: Cable
) -> None:
    """Power is lost while a command runs and nothing is sent."""
    with under_way(reach(serve(address=cable.theirs, within=cable.within).target())) as error:
        began = time.monotonic()
        cable.drop("INPUT", "OUTPUT")
        assert error().code == "SSH-LOST"
        assert time.monotonic() - began < 15


def test_a_jump_host_that_dies_ends_the_call(serve: Serve, reach: Reach) -> None:
    """The next call finds its way through again."""
    gate, server = serve(), serve()
    transport = reach(both(gate, server))
    with under_way(transport) as error:
        gate.kill_sessions()
        assert error().code in ("SSH-RESET", "SSH-LOST")
        assert transport.run(TRUE, timeout_s=10).exit_code == 0


def test_a_silent_session_is_given_up(serve: Serve, reach: Reach, tmp_path: Path) -> None:
    """TCP lives and SSH says nothing: ten seconds for a poll, then a fresh connection."""
    server = serve()
    path = str(tmp_path / "file")
    transports = [reach(server.target()) for _ in range(3)]
    for transport in transports:
        transport.put(b"one", path)
        assert transport.get(path) == b"one"
    for pid in server.sessions():
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    calls: list[Callable[[SshTransport], object]] = [
        lambda transport: transport.get(path),
        lambda transport: transport.put(b"two", path),
        lambda transport: transport.run(TRUE, timeout_s=60),
    ]
    with ThreadPoolExecutor(3) as pool:
        raised = [pool.submit(call, node) for call, node in zip(calls, transports, strict=True)]
        for future in raised:
            with pytest.raises(errors.NodeUnreachable, match="SSH-LOST"):
                future.result()
    assert time.monotonic() - began < 13
    for transport in transports:
        assert transport.get(path) == b"one"


def test_an_interrupted_write_leaves_the_old_file(
    serve: Serve, reach: Reach, tmp_path: Path
) -> None:
    """The connection is lost while a file is written: the old one is whole, and alone."""
    server, path = serve(), tmp_path / "folder" / "file"
    transport = reach(server.target())
    transport.put(b"old", str(path))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(transport.put, bytes(64 << 20), str(path))
        wait_for(lambda: len(list(path.parent.iterdir())) == 2, "the new file is begun")
        end_connections(server)
        with pytest.raises(errors.NodeUnreachable, match="may still run"):
            writing.result()
    wait_for(lambda: list(path.parent.iterdir()) == [path], "the half file is gone")
    assert path.read_bytes() == b"old"
    transport.put(b"new", str(path))
    assert path.read_bytes() == b"new"


def test_a_stream_is_closed_in_peace_while_its_connection_is_being_lost(
    serve: Serve, reach: Reach
) -> None:
    """paramiko raises EOFError from writing then, which is nobody's Ctrl-D."""
    transport = reach(serve().target())
    for writes in (False, True):
        stream = transport.open(("cat",))
        vars(stream)["_channel"].transport.packetizer.close()
        with contextlib.suppress(OSError, errors.NodeUnreachable):
            stream.sendall(b"." if writes else b"")
        stream.close()
        transport.close()


def test_a_lost_stream_is_no_end(serve: Serve, reach: Reach) -> None:
    """Half an answer is never taken for a whole one."""
    server = serve()
    stream = reach(server.target()).open(("sh", "-c", "echo half; sleep 61.5"))
    stream.settimeout(10)
    assert stream.recv(100) == b"half\n"
    server.kill_sessions()
    with pytest.raises(errors.NodeUnreachable):
        stream.recv(100)
    stream.close()


@pytest.mark.parametrize("case", ["silent", "untrusted", "jump"])
def test_the_process_ends_whatever_the_other_side_does(serve: Serve, case: str) -> None:
    """Five seconds after its work: a silent sshd, a failed handshake, a jump host still there."""
    server = serve()
    changes = {"known_hosts": "/dev/null"} if case == "untrusted" else {}
    target = both(serve(), server) if case == "jump" else server.target(**changes)
    script = f"""
from orchestrator import errors
from orchestrator.model.node import Node
from orchestrator.transports.ssh import SshTransport
transport = SshTransport(Node.model_validate_json({target.model_dump_json()!r}))
try:
    path = {str(server.folder / "file")!r}
    transport.put(b"", path)
    transport.get(path)
    stream = transport.open(("sleep", "0.1"))
except errors.NodeError as error:
    print(error)
print("ready", flush=True)
input()
transport.close()
"""
    words = (sys.executable, "-c", script)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        first = process.stdout.readline()
        if case == "untrusted":
            assert b"SSH-HOSTKEY-UNKNOWN" in first
            first = process.stdout.readline()
        assert first == b"ready\n"
        for pid in server.sessions() if case != "untrusted" else ():
            os.kill(pid, signal.SIGSTOP)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.wait(5) == 0


def test_a_dead_node_behind_a_jump_host_cuts_no_other_connection(
    serve: Serve, reach: Reach, cable: Cable
) -> None:
    """It is unreachable after its time; others behind the jump host keep their connection."""
    gate, server = serve(), serve()
    dead = serve(address=cable.theirs, within=cable.within)
    stream = reach(both(gate, server)).open(("cat",))
    cable.drop("INPUT")
    error = refusal(reach(both(gate, dead)))
    assert (error.code, error.where["jump"]) == ("SSH-UNREACHABLE", "127.0.0.1")
    stream.settimeout(10)
    stream.sendall(b"still here")
    assert stream.recv(10) == b"still here"
    stream.close()


def test_dead_nodes_behind_a_jump_host_hold_up_no_other_node(
    serve: Serve, reach: Reach, cable: Cable
) -> None:
    """As many as handshakes are made at once, while their channels wait to be opened."""
    gate, dead, other = serve(), serve(address=cable.theirs, within=cable.within), serve()
    assert reach(gate.target()).run(TRUE, timeout_s=10).exit_code == 0
    cable.drop("INPUT")
    with ThreadPoolExecutor(MOST_HANDSHAKES) as pool:
        nodes = [both(gate, dead) for _ in range(MOST_HANDSHAKES)]
        lost = [pool.submit(refusal, reach(node)) for node in nodes]
        time.sleep(1)
        began = time.monotonic()
        assert reach(other.target()).run(TRUE, timeout_s=10).exit_code == 0
        assert time.monotonic() - began < 4
        assert not any(it.done() for it in lost), "the dead nodes were told before it"
        assert {it.result().code for it in lost} == {"SSH-UNREACHABLE"}
