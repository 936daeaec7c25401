"""What can go wrong between here and a node's shell, each with a real sshd on loopback."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports import Stream, _session
from tests.processes import wait_for
from tests.sshd import Sshd
from tests.transports.ssh_nodes import TRUE, Reach, Serve, at_once, both, refusal

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


def test_an_idle_connection_takes_no_time(reach: Reach, serve: Serve) -> None:
    """Its reader sleeps: over 1,000 nodes ten awakenings a second each are a whole processor."""
    before = set(Path("/proc/self/task").iterdir())
    transport = reach(serve().target())
    assert transport.run(TRUE, timeout_s=10).exit_code == 0
    readers = set(Path("/proc/self/task").iterdir()) - before
    began = awakenings(readers)
    time.sleep(1)
    assert awakenings(readers) - began < 3
    assert transport.run(TRUE, timeout_s=10).exit_code == 0


def test_a_connection_through_a_jump_host_is_closed_at_once(reach: Reach, serve: Serve) -> None:
    """Its reader, which sleeps, is woken: many nodes are left one after another."""
    transport = reach(both(serve(), serve()))
    assert transport.run(TRUE, timeout_s=10).exit_code == 0
    threads = threading.active_count()
    began = time.monotonic()
    transport.close()
    assert time.monotonic() - began < 0.5
    wait_for(lambda: threading.active_count() < threads, "its reader has ended", 1)


def awakenings(threads: set[Path]) -> int:
    """How often these threads went to sleep, by the kernel's count; those that live."""
    count = 0
    for thread in threads:
        with suppress(OSError):
            text = (thread / "status").read_text()
            count += int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return count


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"port": 1}, "SSH-REFUSED", "refuses"),
        ({"address": "no-such-node.invalid"}, "SSH-UNREACHABLE", "has no address"),
        ({}, "SSH-NO-BANNER", "sends no greeting of an sshd in 10 s"),  # it is stopped
    ],
    ids=["closed port", "no address", "hung"],
)
def test_an_sshd_that_does_not_answer_is_named(
    serve: Serve, reach: Reach, changes: dict[str, object], code: str, words: str
) -> None:
    """Exit 4 in the time of a greeting, with the address and the port."""
    server = serve()
    server.signal(signal.SIGSTOP)
    target = server.target(**changes)
    began = time.monotonic()
    error = refusal(reach(target))
    assert (error.code, error.exit_code) == (code, 4)
    assert error.where == {"node": "here", "address": target.address}
    assert f"port {target.port} " in error.cause
    assert words in error.cause
    assert time.monotonic() - began < (13 if code == "SSH-NO-BANNER" else 5)


@pytest.mark.parametrize("most", ["3:100:3", "100:30:200"])
def test_nodes_that_connect_at_once_are_all_reached(serve: Serve, reach: Reach, most: str) -> None:
    """Also behind one strict MaxStartups; and each has settings of fabric's of its own.

    With one Config for all, four of ten constructions failed with an AttributeError.
    """
    server = serve(options={"MaxStartups": most})
    nodes = [reach(server.target(name=f"vs{number:03}")) for number in range(40)]
    assert at_once(nodes) == [0] * 40


@contextmanager
def held(server: Sshd) -> Iterator[None]:
    """One connection that sshd waits for to log in, and that counts."""
    while True:
        with socket.create_connection((server.address, server.port)) as idle:
            if idle.recv(100).startswith(b"SSH-"):
                yield
                return


def test_throttling_that_stays_names_the_option(serve: Serve, reach: Reach) -> None:
    """After four retries: what sshd said, and MaxStartups."""
    server = serve(options={"MaxStartups": "1:100:1", "LoginGraceTime": "60"})
    with held(server):
        before = server.log.count("past MaxStartups")
        error = refusal(reach(server.target()))
    assert error.code == "SSH-THROTTLED"
    assert "MaxStartups" in error.fix
    assert server.log.count("past MaxStartups") == before + 5


def test_an_endless_output_is_an_error(serve: Serve, reach: Reach) -> None:
    """Memory of ours is not filled, and the connection serves the next call."""
    transport = reach(serve().target())
    with pytest.raises(errors.UnfitError, match="yes wrote more than 64 MiB"):
        transport.run(("yes",), timeout_s=120)
    assert transport.run(TRUE, timeout_s=10).exit_code == 0


def endlessly(stream: Stream) -> None:
    """Write until it can be no more."""
    while True:
        stream.sendall(b"more")


def test_a_command_that_ends_while_it_is_written_to_ends_alone(serve: Serve, reach: Reach) -> None:
    """sshd ends a whole connection for one word to a channel that is gone: none is said."""
    server = serve()
    transport = reach(server.target())
    for _ in range(200):
        stream = transport.open(("true",))
        with pytest.raises(BrokenPipeError):
            endlessly(stream)
        stream.close()
    assert transport.run(TRUE, timeout_s=10).exit_code == 0
    assert server.log.count("Accepted publickey") == 1


@pytest.mark.parametrize("most", [1, 2])
def test_sessions_that_sshd_does_not_allow_are_waited_for(
    serve: Serve, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Few MaxSessions are enough for everything; what finds no place in time says so."""
    server = serve(options={"MaxSessions": str(most)})
    transport = reach(server.target())
    path = str(tmp_path / "file")
    for _ in range(2):
        transport.put(b"one", path)
        assert transport.get(path) == b"one"
        assert transport.run(TRUE, timeout_s=10).exit_code == 0
    with ThreadPoolExecutor(4) as pool:
        ends = pool.map(lambda _: transport.run(("sleep", "0.2"), timeout_s=30), range(4))
        assert [done.exit_code for done in ends] == [0] * 4
    streams = [transport.open(("cat",)) for _ in range(most)]
    monkeypatch.setattr(_session, "SESSION_S", 0.5)  # not a minute of waiting
    error = refusal(transport)
    assert error.code == "SSH-SESSIONS"
    assert "MaxSessions" in error.fix
    for stream in streams:
        stream.close()
    assert server.log.count("Accepted publickey") == 1


def test_the_shell_for_files_is_kept_and_may_end(
    serve: Serve, reach: Reach, tmp_path: Path
) -> None:
    """One serves all files, with no SFTP; another takes its place, whatever has become of it."""
    server = serve(options={"Subsystem": "other /bin/true"})
    transport, path = reach(server.target()), str(tmp_path / "file")
    for number in range(20):
        transport.put(b"%d" % number, path)
        assert transport.get(path) == b"%d" % number
    (kept,) = shells(server)
    os.kill(kept, signal.SIGKILL)
    assert transport.get(path) == b"19"
    transport.put(b"new", path)
    assert shells(server) != [kept]
    assert server.log.count("Accepted publickey") == 1


def test_files_are_ours_where_nfs_gives_us_another_owner(
    serve: Serve, reach: Reach, tmp_path: Path
) -> None:
    """As root's on NFS, and everybody's where names of users are not mapped: folder and file."""
    folder = tmp_path / "squashed"
    folder.mkdir()
    (folder / "file").write_bytes(b"content")
    for path in (folder, folder / "file"):
        os.chown(path, 65534, 65534)
    assert reach(serve().target()).get(str(folder / "file"), own=True) == b"content"


def test_a_kept_shell_gives_its_channel_to_a_waiting_command(
    serve: Serve, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_session, "SESSION_S", 5.0)
    transport, path = reach(serve().target()), tmp_path / "fifo"
    os.mkfifo(path)
    streams = [transport.open(("cat",)) for _ in range(_session.MOST_CHANNELS - 1)]
    with ThreadPoolExecutor(2) as pool:
        read = pool.submit(transport.get, str(path))
        writer = os.open(path, os.O_WRONLY)  # waits for the reader
        run = pool.submit(transport.run, TRUE, timeout_s=10)
        time.sleep(0.3)  # until it waits for a channel
        os.close(writer)
        assert read.result() == b""
        assert run.result().exit_code == 0
    for stream in streams:
        stream.close()


def test_a_silent_shell_for_files_is_given_up(serve: Serve, reach: Reach, tmp_path: Path) -> None:
    """Ten seconds for a poll, as if the connection were silent; the next one is served."""
    server = serve()
    transport, path = reach(server.target()), str(tmp_path / "file")
    transport.put(b"one", path)
    (kept,) = shells(server)
    os.kill(kept, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(errors.NodeUnreachable, match="SSH-LOST"):
        transport.get(path)
    assert time.monotonic() - began < 13
    os.kill(kept, signal.SIGKILL)
    assert transport.get(path) == b"one"


def shells(server: Sshd) -> list[int]:
    """The shells that its connections have started."""
    below = server.sessions()
    return [pid for pid in below if Path(f"/proc/{pid}/cmdline").read_bytes() == b"/bin/sh\0"]


def test_nodes_behind_a_jump_host_share_its_connection(serve: Serve, reach: Reach) -> None:
    """Forty nodes, one login there, and one of the next forty."""
    gate, server = serve(), serve()
    through = both(gate, server)
    for _ in range(2):
        nodes = [reach(through) for _ in range(40)]
        assert at_once(nodes) == [0] * 40
        for node in nodes:
            node.close()
    assert gate.log.count("Accepted publickey") == 1


def test_a_jump_host_that_is_down_or_forbids_is_named(serve: Serve, reach: Reach) -> None:
    """SSH-JUMP with the jump host; a node that is down behind it is the node's own trouble."""
    strict, server = serve(options={"AllowTcpForwarding": "no"}), serve()
    error = refusal(reach(both(strict, server)))
    assert (error.code, error.where["jump"]) == ("SSH-JUMP", "127.0.0.1")
    assert "AllowTcpForwarding" in error.fix
    strict.stop()
    assert refusal(reach(both(strict, server))).code == "SSH-JUMP"
    gate = serve()
    server.stop()
    assert refusal(reach(both(gate, server))).code == "SSH-UNREACHABLE"


def test_a_jump_hosts_own_key_is_checked(serve: Serve, reach: Reach) -> None:
    """It is trusted no more than any other machine, whatever vouches for the node."""
    gate, server = serve(), serve()
    through = both(gate, server)
    Path(through.known_hosts).write_text("")
    error = refusal(reach(through))
    assert error.code == "SSH-HOSTKEY-UNKNOWN"
    assert gate.fingerprint() in error.cause
