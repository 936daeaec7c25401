"""What can go wrong between here and a node's shell, each with a real sshd on loopback."""

import getpass
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports import Stream, _session
from orchestrator.transports.ssh import SshTarget, SshTransport
from tests.sshd import Sshd, free_port, keygen
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
TRUE = ("true",)
Serve = Callable[..., Sshd]
Reach = Callable[..., SshTransport]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with the options given; all of them end with the test."""
    started: list[Sshd] = []

    def serve(**changes: object) -> Sshd:
        server = Sshd(tmp_path / f"sshd{len(started)}", **changes)  # type: ignore[arg-type]  # each test names real fields
        started.append(server)
        return server.start()

    yield serve
    for server in started:
        server.stop()


@pytest.fixture
def reach() -> Iterator[Reach]:
    """Makes transports; all of them are closed with the test."""
    made: list[SshTransport] = []

    def reach(target: SshTarget) -> SshTransport:
        made.append(SshTransport(target))
        return made[-1]

    yield reach
    for transport in made:
        transport.close()


@pytest.fixture
def cable() -> Iterator["Cable"]:
    """A network namespace on a cable of its own."""
    made = Cable(f"tsh-{os.getpid()}")
    made.plug()
    yield made
    made.unplug()  # at once; what still runs in there keeps the namespace, and no cable


class Cable:
    """A network namespace, and what a firewall in it does to packets."""

    ours, theirs = "10.213.77.1", "10.213.77.2"

    def __init__(self, name: str) -> None:
        self.name = name
        self.within = ("nsenter", f"--net=/var/run/netns/{name}")

    def plug(self) -> None:
        """Make the namespace and its cable."""
        far = ("ip", "-n", self.name)
        _do("ip", "netns", "add", self.name)
        _do(
            "ip", "link", "add", f"{self.name}h", "type", "veth", "peer", "eth0", "netns", self.name
        )
        _do("ip", "address", "add", f"{self.ours}/30", "dev", f"{self.name}h")
        _do("ip", "link", "set", f"{self.name}h", "up")
        _do(*far, "address", "add", f"{self.theirs}/30", "dev", "eth0")
        _do(*far, "link", "set", "eth0", "up")
        _do(*far, "link", "set", "lo", "up")

    def unplug(self) -> None:
        """Remove both."""
        _do("ip", "link", "delete", f"{self.name}h")
        _do("ip", "netns", "delete", self.name)

    def rule(self, *words: str) -> None:
        """Add a rule to the firewall; a test fails if it cannot be added."""
        _do(*self.within, "iptables", *words)


def _do(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)


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


# Not reached.


def test_a_black_hole_is_named_in_ten_seconds(serve: Serve, reach: Reach, cable: Cable) -> None:
    """A machine that answers nothing is unreachable, not waited for; others are not held up."""
    server = serve(address=cable.theirs, within=cable.within)
    cable.rule("-A", "INPUT", "-j", "DROP")
    other = serve()
    began = time.monotonic()
    with ThreadPoolExecutor(12) as pool:
        holes = [pool.submit(refusal, reach(server.target())) for _ in range(8)]
        time.sleep(0.1)
        assert reach(other.target()).run(TRUE, timeout_s=10).exit_code == 0
        assert time.monotonic() - began < 6
        assert {hole.result().code for hole in holes} == {"SSH-UNREACHABLE"}
    assert time.monotonic() - began < 15


def test_a_closed_port_is_refused_at_once(reach: Reach, tmp_path: Path) -> None:
    """Exit 4 within five seconds, with the address and the port."""
    port = free_port()
    target = SshTarget(
        name="here", address="127.0.0.1", port=port, identity=str(keygen(tmp_path / "id"))
    )
    began = time.monotonic()
    error = refusal(reach(target))
    assert (error.code, error.exit_code) == ("SSH-REFUSED", 4)
    assert error.where == {"node": "here", "address": "127.0.0.1"}
    assert f"port {port} refuses" in error.cause
    assert time.monotonic() - began < 5


def test_a_name_without_an_address_is_unreachable(reach: Reach, serve: Serve) -> None:
    """The resolver's own words are in the message."""
    error = refusal(reach(serve().target(address="no-such-node.invalid")))
    assert error.code == "SSH-UNREACHABLE"
    assert "has no address" in error.cause


def test_an_sshd_that_hangs_is_told_from_one_that_is_away(serve: Serve, reach: Reach) -> None:
    """TCP is accepted and nothing is said: no banner, in the time that a greeting may take."""
    server = serve()
    server.signal(signal.SIGSTOP)
    began = time.monotonic()
    error = refusal(reach(server.target()))
    assert error.code == "SSH-NO-BANNER"
    assert "existing session" not in str(error)
    assert time.monotonic() - began < 13


def test_what_is_no_sshd_is_quoted(reach: Reach, serve: Serve) -> None:
    """A web server on the port says so itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                peer.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        error = refusal(reach(serve().target(port=listener.getsockname()[1])))
        thread.join(10)
    assert error.code == "SSH-NO-BANNER"
    assert "HTTP/1.1 400 Bad Request" in error.cause


def test_a_throttled_sshd_lets_everybody_in_at_last(serve: Serve, reach: Reach) -> None:
    """Forty nodes behind one strict MaxStartups: none of them is called unreachable."""
    server = serve(options={"MaxStartups": "3:100:3"})
    nodes = [reach(server.target(name=f"vs{number:03}")) for number in range(40)]
    assert at_once(nodes) == [0] * 40


def test_nodes_that_are_reached_at_once_do_not_disturb_each_other(
    serve: Serve, reach: Reach
) -> None:
    """Eight threads that connect together, again and again: fabric's settings are each one's own.

    With one Config for all, four of ten constructions failed with an AttributeError.
    """
    server = serve(options={"MaxStartups": "100:30:200"})
    for number in range(4):
        nodes = [reach(server.target(name=f"vs{number}{each:02}")) for each in range(16)]
        assert at_once(nodes) == [0] * 16


def test_throttling_that_stays_names_the_option(serve: Serve, reach: Reach) -> None:
    """After four retries: what sshd said, and MaxStartups."""
    server = serve(options={"MaxStartups": "1:100:1", "LoginGraceTime": "60"})
    with held(server):
        before = server.log.count("past MaxStartups")
        error = refusal(reach(server.target()))
    assert error.code == "SSH-THROTTLED"
    assert "MaxStartups" in error.fix
    assert server.log.count("past MaxStartups") == before + 5


@contextmanager
def held(server: Sshd) -> Iterator[None]:
    """One connection that sshd waits for to log in, and that counts."""
    while True:
        with socket.create_connection((server.address, server.port)) as idle:
            if idle.recv(100).startswith(b"SSH-"):
                yield
                return


# Not trusted.


def test_a_changed_host_key_stops_everything(serve: Serve, reach: Reach) -> None:
    """Both fingerprints and the line that holds the old one; and nobody logs in."""
    server = serve()
    before = server.fingerprint()
    old = server.known_hosts.read_text()
    server.stop()
    for path in (server.host_key(), Path(f"{server.host_key()}.pub")):
        path.unlink()
    server.start()
    server.known_hosts.write_text(f"# a comment\n{old}")
    error = refusal(reach(server.target()))
    assert (error.code, error.exit_code) == ("SSH-HOSTKEY-CHANGED", 4)
    for words in (before, server.fingerprint(), f"{server.known_hosts}:2"):
        assert words in error.cause
    assert "Accepted" not in server.log


def test_an_unknown_host_key_is_shown_and_refused(serve: Serve, reach: Reach) -> None:
    """With its fingerprint, whether the file is empty or not there; it stays as it is."""
    server = serve()
    for change in (server.known_hosts.unlink, server.known_hosts.touch):
        change()
        error = refusal(reach(server.target()))
        assert error.code == "SSH-HOSTKEY-UNKNOWN"
        assert server.fingerprint() in error.cause
        assert "dlperf-orch trust" in error.fix
    assert server.known_hosts.read_text() == ""


def test_a_key_of_another_kind_is_asked_for(serve: Serve, reach: Reach) -> None:
    """A node that is known by its RSA key only is asked for that one."""
    server = serve(kinds=("ed25519", "rsa"))
    server.know("rsa")
    assert reach(server.target()).run(TRUE, timeout_s=10).exit_code == 0


def test_a_kind_that_is_gone_is_no_change(serve: Serve, reach: Reach) -> None:
    """Known by a kind of key that it no longer has: said so, and refused."""
    server = serve(kinds=("rsa",))
    line = server.known_hosts.read_text()
    server.stop()
    server.kinds = ("ed25519",)
    server.start()
    server.known_hosts.write_text(line)
    error = refusal(reach(server.target()))
    assert error.code == "SSH-HOSTKEY-TYPE"
    assert "ssh-rsa" in error.cause


def test_hashed_and_revoked_lines_count(serve: Serve, reach: Reach) -> None:
    """Names that ssh-keygen has hashed are found; a revoked key is refused."""
    server = serve()
    _do("ssh-keygen", "-q", "-H", "-f", str(server.known_hosts))
    assert "127.0.0.1" not in server.known_hosts.read_text()
    assert reach(server.target()).run(TRUE, timeout_s=10).exit_code == 0
    server.know("ed25519")
    line = server.known_hosts.read_text()
    server.known_hosts.write_text(f"{line}@revoked * {line.split(' ', 1)[1]}")
    assert refusal(reach(server.target())).code == "SSH-HOSTKEY-REVOKED"


def test_the_inventorys_fingerprint_decides_alone(serve: Serve, reach: Reach) -> None:
    """Whichever of the node's keys it is of; a wrong one is refused whatever the file says."""
    server = serve(kinds=("ed25519", "rsa", "ecdsa"))
    nowhere = {"known_hosts": str(server.folder / "none")}
    for kind in server.kinds:
        target = server.target(host_key=server.fingerprint(kind), **nowhere)
        assert reach(target).run(TRUE, timeout_s=10).exit_code == 0
    wrong = f"SHA256:{'A' * 43}"
    error = refusal(reach(server.target(host_key=wrong)))
    assert error.code == "SSH-HOSTKEY-CHANGED"
    assert all(words in error.cause for words in (wrong, *map(server.fingerprint, server.kinds)))


# Not let in.


def test_a_foreign_key_is_refused_once(serve: Serve, reach: Reach, tmp_path: Path) -> None:
    """User and key file are named; nothing else is tried, and not again."""
    server = serve()
    foreign = keygen(tmp_path / "foreign")
    error = refusal(reach(server.target(identity=str(foreign))))
    assert (error.code, error.exit_code) == ("SSH-AUTH", 4)
    assert str(foreign) in error.cause
    assert f"user {getpass.getuser()}" in error.cause
    assert server.log.count("Failed publickey") == 1


def test_the_agent_is_left_alone(
    serve: Serve, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of an agent, or in ~/.ssh, are not offered, and no ssh_config is read."""
    server = serve()
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True)
    (home / "config").write_text("Host *\n Port 1\n User nobody\n ForwardAgent yes\n")
    (home / "id_ed25519").write_bytes(server.identity.read_bytes())
    (home / "id_ed25519").chmod(0o600)
    monkeypatch.setenv("HOME", str(home.parent))
    place = tmp_path / "agent"
    agent = subprocess.Popen(("ssh-agent", "-D", "-a", str(place)), stdout=subprocess.DEVNULL)
    try:
        wait_for(place.exists, "the agent listens")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        _do("ssh-add", "-q", str(server.identity))
        error = refusal(reach(server.target(identity=str(keygen(tmp_path / "foreign")))))
        done = reach(server.target()).run(("env",), timeout_s=10)
    finally:
        agent.kill()
        agent.wait()
    assert error.code == "SSH-AUTH"
    assert server.log.count("Failed publickey") == 1
    assert b"SSH_AUTH_SOCK" not in done.stdout


def test_too_many_tries_are_told_from_a_wrong_key(
    serve: Serve, reach: Reach, tmp_path: Path
) -> None:
    """Where sshd gives up after one key, its own words come with the option's name."""
    server = serve(options={"MaxAuthTries": "1"})
    error = refusal(reach(server.target(identity=str(keygen(tmp_path / "foreign")))))
    assert error.code == "SSH-AUTH-TRIES"
    assert "MaxAuthTries" in error.fix


@pytest.mark.parametrize(
    ("options", "ours", "theirs"),
    [
        ({"KexAlgorithms": "diffie-hellman-group14-sha1"}, "curve25519", "group14-sha1"),
        ({"Ciphers": "aes256-cbc"}, "aes128-gcm@openssh.com", "aes256-cbc"),
        ({"MACs": "hmac-md5", "Ciphers": "aes128-ctr"}, "hmac-sha2-256", "hmac-md5"),
    ],
)
def test_without_a_common_algorithm_both_offers_are_shown(
    serve: Serve, reach: Reach, options: dict[str, str], ours: str, theirs: str
) -> None:
    """Old algorithms stay off; the message says which option of sshd it is about."""
    error = refusal(reach(serve(options=options).target()))
    assert error.code == "SSH-ALGO"
    assert ours in error.cause
    assert theirs in error.cause
    assert next(iter(options)) in error.fix


def test_a_refused_rsa_key_may_be_a_matter_of_its_algorithm(
    serve: Serve, reach: Reach, tmp_path: Path
) -> None:
    """sshd does not say whether the key or its SHA-2 signature is refused; SHA-1 stays off."""
    server = serve(options={"PubkeyAcceptedAlgorithms": "ssh-rsa"})
    error = refusal(reach(server.target(identity=str(keygen(tmp_path / "rsa", "rsa")))))
    assert error.code == "SSH-AUTH"
    assert "PubkeyAcceptedAlgorithms" in error.fix


def test_a_key_that_cannot_be_used_is_named(serve: Serve, reach: Reach, tmp_path: Path) -> None:
    """None named, none there, one with a passphrase, and what is no key at all."""
    server = serve()
    (tmp_path / "text").write_text("no key\n")
    locked = keygen(tmp_path / "locked", passphrase="some words")
    for identity in (None, str(tmp_path / "gone"), str(tmp_path / "text"), str(locked)):
        error = refusal(reach(server.target(identity=identity)))
        assert error.code == "SSH-KEY"
        assert identity is None or identity in error.cause


# Lost on the way.


def under_way(
    transport: SshTransport,
) -> "tuple[ThreadPoolExecutor, Callable[[], errors.DlperfError]]":
    """A command that runs for a minute, and the error that it ends with."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(transport.run, ("sleep", "61.5"), timeout_s=60)
    wait_for(lambda: _sleepers(), "the command runs")

    def error() -> errors.DlperfError:
        raised = future.exception(40)
        pool.shutdown()
        assert isinstance(raised, errors.DlperfError)
        return raised

    return pool, error


def _sleepers() -> list[int]:
    """The commands of `under_way`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if words == b"sleep\x0061.5\x00":
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def no_sleepers() -> Iterator[None]:
    """No command outlives the test."""
    yield
    for pid in _sleepers():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.usefixtures("no_sleepers")
def test_a_killed_session_is_no_exit_status(serve: Serve, reach: Reach) -> None:
    """The command may still be running, and is; the next call connects again."""
    server = serve()
    transport = reach(server.target())
    _, error = under_way(transport)
    for pid in server.sessions():
        if Path(f"/proc/{pid}/comm").read_text() == "sshd\n":
            os.kill(pid, signal.SIGKILL)
    assert error().code == "SSH-RESET"
    assert "may still run" in error().cause
    assert _sleepers()
    assert transport.run(TRUE, timeout_s=10).exit_code == 0


@pytest.mark.usefixtures("no_sleepers")
def test_a_reset_is_seen_and_passed(serve: Serve, reach: Reach, cable: Cable) -> None:
    """A firewall that resets connections: SSH-RESET, and the next call is served again."""
    server = serve(address=cable.theirs, within=cable.within)
    transport = reach(server.target())
    _, error = under_way(transport)
    reset = ("INPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
    cable.rule("-A", *reset)
    with pytest.raises(errors.NodeUnreachable):
        transport.get("/etc/hostname")
    assert error().code == "SSH-RESET"
    cable.rule("-D", *reset)
    assert transport.run(TRUE, timeout_s=10).exit_code == 0


@pytest.mark.usefixtures("no_sleepers")
def test_a_dead_machine_is_noticed_in_fifteen_seconds(
    serve: Serve, reach: Reach, cable: Cable
) -> None:
    """Power is lost while a command runs and nothing is sent: SSH-LOST."""
    server = serve(address=cable.theirs, within=cable.within)
    transport = reach(server.target())
    _, error = under_way(transport)
    began = time.monotonic()
    cable.rule("-A", "INPUT", "-j", "DROP")
    cable.rule("-A", "OUTPUT", "-j", "DROP")
    assert error().code == "SSH-LOST"
    assert time.monotonic() - began < 15


def test_a_silent_session_is_given_up(serve: Serve, reach: Reach, tmp_path: Path) -> None:
    """TCP lives and SSH says nothing: ten seconds for a poll, then a fresh connection."""
    server = serve()
    transport = reach(server.target())
    transport.put(b"one", str(tmp_path / "file"))
    for pid in server.sessions():
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(errors.NodeUnreachable) as raised:
        transport.get(str(tmp_path / "file"))
    assert raised.value.code == "SSH-LOST"
    assert time.monotonic() - began < 12
    assert transport.get(str(tmp_path / "file")) == b"one"


def test_a_lost_stream_is_no_end(serve: Serve, reach: Reach) -> None:
    """Half an answer is never taken for a whole one."""
    server = serve()
    stream = reach(server.target()).open(("sh", "-c", "echo half; sleep 61.5"))
    stream.settimeout(10)
    assert stream.recv(100) == b"half\n"
    for pid in server.sessions():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(errors.NodeUnreachable):
        stream.recv(100)
    stream.close()


@pytest.mark.parametrize("stopped", [True, False], ids=["silent", "untrusted"])
def test_the_process_ends_whatever_the_other_side_does(serve: Serve, stopped: bool) -> None:
    """Five seconds after the work is done at most, with a silent sshd or a failed handshake."""
    server = serve()
    script = f"""
import os, signal, time
from orchestrator import errors
from orchestrator.transports.ssh import SshTarget, SshTransport
transport = SshTransport({server.target()!r})
if {stopped}:
    transport.put(b"", {str(server.folder / "file")!r})
    stream = transport.open(("sleep", "0.1"))
    print("ready", flush=True)
    input()
else:
    transport = SshTransport({server.target(known_hosts="/dev/null")!r})
    try:
        transport.run(("true",), timeout_s=5)
    except errors.NodeError:
        print("ready", flush=True)
    input()
transport.close()
"""
    words = (sys.executable, "-c", script)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == b"ready\n"
        for pid in server.sessions() if stopped else ():
            os.kill(pid, signal.SIGSTOP)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.wait(5) == 0


# Much at once.


def test_six_megabytes_of_errors_come_whole(serve: Serve, reach: Reach) -> None:
    """Neither stream waits for the other to be read."""
    script = "head -c 6000000 /dev/zero >&2; printf done"
    done = reach(serve().target()).run(("sh", "-c", script), timeout_s=60)
    assert (done.stdout, len(done.stderr)) == (b"done", 6_000_000)


def test_an_endless_output_is_an_error(serve: Serve, reach: Reach) -> None:
    """Memory of ours is not filled, and the connection serves the next call."""
    transport = reach(serve().target())
    with pytest.raises(errors.UnfitError, match="yes wrote more than 64 MiB"):
        transport.run(("yes",), timeout_s=120)
    assert transport.run(TRUE, timeout_s=10).exit_code == 0


def test_sixteen_threads_have_3200_right_answers(serve: Serve, reach: Reach) -> None:
    """One connection, shared: every answer goes to who asked."""
    server = serve()
    transport = reach(server.target())

    def work(number: int) -> int:
        path = str(server.folder / f"of-{number}")
        right = 0
        for turn in range(50):
            word = f"{number}-{turn}".encode()
            right += transport.run(("echo", word.decode()), timeout_s=60).stdout == word + b"\n"
            transport.put(word, path)
            right += 1
            right += transport.get(path) == word
            right += transport.get(path, 1) == word[1:]
        return right

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(work, range(16))) == 3200
    assert server.log.count("Accepted publickey") == 1


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


def test_sessions_that_sshd_does_not_allow_are_waited_for(
    serve: Serve, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MaxSessions 2 is enough for everything; what finds no place in time says so."""
    transport = reach(serve(options={"MaxSessions": "2"}).target())
    path = str(tmp_path / "file")
    for _ in range(2):
        transport.put(b"one", path)
        assert not transport.feed(path + ".gate", b"go\n")
        assert transport.run(TRUE, timeout_s=10).exit_code == 0
    with ThreadPoolExecutor(4) as pool:
        ends = pool.map(lambda _: transport.run(("sleep", "0.2"), timeout_s=30), range(4))
        assert [done.exit_code for done in ends] == [0] * 4
    streams = [transport.open(("cat",)) for _ in range(2)]
    monkeypatch.setattr(_session, "SESSION_S", 0.5)  # not a minute of waiting
    error = refusal(transport)
    assert error.code == "SSH-SESSIONS"
    assert "MaxSessions" in error.fix
    for stream in streams:
        stream.close()


def test_an_sshd_without_sftp_is_named(serve: Serve, reach: Reach) -> None:
    """Commands run, files do not; the option is named."""
    transport = reach(serve(options={"Subsystem": "other /bin/true"}).target())
    assert transport.run(TRUE, timeout_s=10).exit_code == 0
    with pytest.raises(errors.NodeError) as raised:
        transport.get("/etc/hostname")
    assert raised.value.code == "SSH-SFTP"


# Through another machine.


def test_nodes_behind_a_jump_host_share_its_connection(serve: Serve, reach: Reach) -> None:
    """Forty nodes, one login there; the last to leave closes it."""
    gate, server = serve(), serve()
    through = both(gate, server)
    nodes = [reach(through) for _ in range(40)]
    assert at_once(nodes) == [0] * 40
    assert gate.log.count("Accepted publickey") == 1
    for node in nodes:
        node.close()
    wait_for(lambda: not gate.sessions(), "the jump host is left")


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


@pytest.mark.usefixtures("no_sleepers")
def test_a_jump_host_that_dies_takes_the_call_along(serve: Serve, reach: Reach) -> None:
    """And the next call finds its way through again."""
    gate, server = serve(), serve()
    transport = reach(both(gate, server))
    _, error = under_way(transport)
    for pid in gate.sessions():
        os.kill(pid, signal.SIGKILL)
    assert error().code in ("SSH-RESET", "SSH-LOST")
    assert transport.run(TRUE, timeout_s=10).exit_code == 0


def both(gate: Sshd, server: Sshd) -> SshTarget:
    """The server through the gate, which knows both keys and lets in the server's identity."""
    known = server.folder / "both"
    known.write_text(gate.known_hosts.read_text() + server.known_hosts.read_text())
    Path(f"{gate.identity}.pub").write_bytes(Path(f"{server.identity}.pub").read_bytes())
    return server.target(known_hosts=str(known), jump=f"{gate.address}:{gate.port}")
