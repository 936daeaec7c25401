"""Whom we trust and who lets us in: host keys, identities, algorithms."""

import getpass
import subprocess
from pathlib import Path

import pytest

from tests.sshd import keygen
from tests.transports.ssh_nodes import TRUE, Reach, Serve, at_once, both, do, refusal
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


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
    do("ssh-keygen", "-q", "-H", "-f", str(server.known_hosts))
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
        do("ssh-add", "-q", str(server.identity))
        error = refusal(reach(server.target(identity=str(keygen(tmp_path / "foreign")))))
        done = reach(server.target()).run(("env",), timeout_s=10)
    finally:
        agent.kill()
        agent.wait()
    assert error.code == "SSH-AUTH"
    assert server.log.count("Failed publickey") == 1
    assert b"SSH_AUTH_SOCK" not in done.stdout


def test_an_agent_signs_where_the_inventory_asks_for_it(
    serve: Serve, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key with a passphrase, through a jump host too; what is not in the agent is named."""
    gate, server = serve(), serve()
    server.identity.unlink()
    Path(f"{server.identity}.pub").unlink()
    keygen(server.identity, passphrase="some words")
    place, ask = tmp_path / "agent", tmp_path / "ask"
    ask.write_text("#!/bin/sh\necho some words\n")
    ask.chmod(0o700)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
    assert refusal(reach(server.target(agent=True))).code == "SSH-AGENT"
    agent = subprocess.Popen(("ssh-agent", "-D", "-a", str(place)), stdout=subprocess.DEVNULL)
    try:
        wait_for(place.exists, "the agent listens")
        empty = refusal(reach(server.target(agent=True)))
        do(
            "env",
            f"SSH_ASKPASS={ask}",
            "SSH_ASKPASS_REQUIRE=force",
            "ssh-add",
            str(server.identity),
        )
        for target in (server.target(), server.target(identity=None), both(gate, server)):
            again = target.model_copy(update={"agent": True})
            assert at_once([reach(again) for _ in range(3)]) == [0] * 3
        foreign = str(keygen(tmp_path / "foreign"))
        other = refusal(reach(server.target(agent=True, identity=foreign)))
        do("ssh-add", "-q", foreign)
        many = refusal(reach(server.target(agent=True, identity=None)))
    finally:
        agent.kill()
        agent.wait()
    assert (empty.code, empty.exit_code) == ("SSH-AGENT", 6)
    assert "holds no key; needed is" in empty.cause
    assert f"needed is {foreign}" in other.cause
    assert "needed is one key alone" in many.cause
    assert refusal(reach(server.target())).code == "SSH-KEY"


def test_too_many_tries_are_told_from_a_wrong_key(
    serve: Serve, reach: Reach, tmp_path: Path
) -> None:
    """Where sshd gives up after one key, its own words come with the option's name."""
    server = serve(options={"MaxAuthTries": "1"})
    error = refusal(reach(server.target(identity=str(keygen(tmp_path / "foreign")))))
    assert error.code == "SSH-AUTH-TRIES"
    assert "MaxAuthTries" in error.fix


@pytest.mark.parametrize(
    "options",
    [
        {"KexAlgorithms": "diffie-hellman-group14-sha1"},
        {"Ciphers": "aes256-cbc"},
        {"MACs": "hmac-md5", "Ciphers": "aes128-ctr"},
    ],
)
def test_old_algorithms_stay_off(serve: Serve, reach: Reach, options: dict[str, str]) -> None:
    """The message names the options of sshd that it may be about."""
    error = refusal(reach(serve(options=options).target()))
    assert error.code == "SSH-ALGO"
    assert next(iter(options)) in error.fix


def test_an_rsa_key_does_not_sign_by_sha_1(serve: Serve, reach: Reach, tmp_path: Path) -> None:
    """sshd does not say whether the key or its SHA-2 signature is refused."""
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
