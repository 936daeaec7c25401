"""Whom we trust and who lets us in: host keys, identities, agents, algorithms."""

import getpass
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports import known_hosts
from tests import commands
from tests.processes import wait_for
from tests.sshd import keygen
from tests.transports.ssh_nodes import TRUE, Reach, Serve, at_once, both, do, refusal

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + 42 * "A" + "{:c}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A known_hosts file: names alone and in lists, a marker, hashed names, broken lines."""
    path, hashed = tmp_path / "known_hosts", tmp_path / "hashed"
    names = ("vs001", "VS001,10.11.0.2", "[10.11.0.2]:2222", "other", "vs001")
    keys = [KEY.format(ord("A") + at) for at in range(len(names) + 3)]
    lines = [f"{name} {key}" for name, key in zip(names, keys, strict=False)]
    hashed.write_text(f"10.11.0.2 {keys[-3]}\nvs001 {keys[-2]}\n")
    do("ssh-keygen", "-q", "-H", "-f", str(hashed))
    lines += ["# a comment", "", "vs001 ssh-ed25519"]
    path.write_text("\n".join([*lines, hashed.read_text()]))
    return path


@pytest.mark.parametrize("name", ["vs001", "10.11.0.2", "[10.11.0.2]:2222", "new"])
def test_the_lines_about_a_host_are_those_that_openssh_finds(file: Path, name: str) -> None:
    """Each once, in the order of the file."""
    done = commands.run(["ssh-keygen", "-F", name, "-f", str(file)])
    wanted = [int(number) for number in re.findall(r"found: line (\d+)", done.stdout)]
    found = known_hosts.find_entries(str(file), name)
    assert [int(entry.where.rpartition(":")[2]) for entry in found] == wanted
    assert bool(wanted) == (name != "new")


@pytest.mark.parametrize(
    "line", ["gpu?.lab", "*", "gpu7.lab,!gpu7.lab", "@cert-authority gpu7.lab", "|1|x|gpu7.lab"]
)
def test_patterns_and_authorities_trust_no_key(tmp_path: Path, line: str) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(f"{line} {KEY.format(ord('A'))}\n")
    assert known_hosts.find_entries(str(path), "gpu7.lab") == ()


@pytest.mark.parametrize("hosts", ["gpu7.lab", "other.lab", "*", "!gpu7.lab,*.lab"])
def test_a_revoked_key_is_refused_wherever_it_is_shown(tmp_path: Path, hosts: str) -> None:
    """Whatever host its line is about, also before a line that trusts it."""
    path, key = tmp_path / "known_hosts", KEY.format(ord("A"))
    path.write_text(f"@revoked {hosts} {key}\ngpu7.lab {key}\n")
    entries = known_hosts.find_entries(str(path), "gpu7.lab")
    with pytest.raises(errors.NodeError, match="known_hosts:1 revokes it") as raised:
        known_hosts.check_key("gpu7", "gpu7.lab", entries, entries[-1].key)
    assert raised.value.code == "SSH-HOSTKEY-REVOKED"


def test_a_file_that_was_changed_is_read_again(file: Path) -> None:
    """Also where a line of the same length was put in the place of another."""
    assert len(known_hosts.find_entries(str(file), "other")) == 1
    file.write_text(file.read_text().replace("other", "thing"))
    os.utime(file, ns=(1, 1))
    assert known_hosts.find_entries(str(file), "other") == ()


@pytest.mark.parametrize(("before", "code"), [("ed25519", "CHANGED"), ("rsa", "TYPE")])
def test_a_host_key_that_is_not_the_trusted_one_is_refused(
    serve: Serve, reach: Reach, before: str, code: str
) -> None:
    """With the trusted key and its line; nobody logs in. A kind that is gone is no change."""
    server = serve(kinds=(before,))
    trusted, line = server.fingerprint(before), server.known_hosts.read_text()
    server.stop()
    for path in (server.host_key(before), Path(f"{server.host_key(before)}.pub")):
        path.unlink()
    server.kinds = ("ed25519",)
    server.start()
    server.known_hosts.write_text(f"# a comment\n{line}")
    error = refusal(reach(server.target()))
    assert (error.code, error.exit_code) == (f"SSH-HOSTKEY-{code}", 4)
    for words in (trusted, server.fingerprint(), f"{server.known_hosts}:2"):
        assert words in error.cause
    assert "Accepted" not in server.log


def test_an_unknown_host_key_is_shown_and_refused(serve: Serve, reach: Reach) -> None:
    """Whether the file is empty or not there; it stays as it is."""
    server = serve()
    for change in (server.known_hosts.unlink, server.known_hosts.touch):
        change()
        error = refusal(reach(server.target()))
        assert error.code == "SSH-HOSTKEY-UNKNOWN"
        assert server.fingerprint() in error.cause
        assert "dlperf-orch trust" in error.fix
    assert server.known_hosts.read_text() == ""


def test_a_node_is_asked_for_the_kind_of_key_that_is_known(serve: Serve, reach: Reach) -> None:
    server = serve(kinds=("ed25519", "rsa"))
    server.know("rsa")
    assert reach(server.target()).run(TRUE, timeout_s=10).exit_code == 0


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


@contextmanager
def agent(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run an ssh-agent that this process finds."""
    words = ("ssh-agent", "-D", "-a", str(place))
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        wait_for(place.exists, "the agent listens")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        yield
    finally:
        process.kill()
        process.wait()


def test_a_foreign_key_is_refused_once_and_the_agent_left_alone(
    serve: Serve, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User and key file are named; no key of ~/.ssh is offered, and no ssh_config is read."""
    server, foreign = serve(), str(keygen(tmp_path / "foreign"))
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True)
    (home / "config").write_text("Host *\n Port 1\n User nobody\n ForwardAgent yes\n")
    (home / "id_ed25519").write_bytes(server.identity.read_bytes())
    (home / "id_ed25519").chmod(0o600)
    monkeypatch.setenv("HOME", str(home.parent))
    with agent(tmp_path / "agent", monkeypatch):
        do("ssh-add", "-q", str(server.identity))
        error = refusal(reach(server.target(identity=foreign)))
        done = reach(server.target()).run(("env",), timeout_s=10)
    assert (error.code, error.exit_code) == ("SSH-AUTH", 4)
    assert foreign in error.cause
    assert f"user {getpass.getuser()}" in error.cause
    assert server.log.count("Failed publickey") == 1
    assert b"SSH_AUTH_SOCK" not in done.stdout


def test_an_agent_signs_where_the_inventory_asks_for_it(
    serve: Serve, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key with a passphrase, through a jump host too; what is not in the agent is named."""
    gate, server, ask = serve(), serve(), tmp_path / "ask"
    server.identity.unlink()
    Path(f"{server.identity}.pub").unlink()
    keygen(server.identity, passphrase="some words")
    ask.write_text("#!/bin/sh\necho some words\n")
    ask.chmod(0o700)
    monkeypatch.setenv("SSH_ASKPASS", str(ask))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    foreign = str(keygen(tmp_path / "foreign"))

    def refuse(words: str, **changes: object) -> None:
        error = refusal(reach(server.target(agent=True, **changes)))
        assert (error.code, error.exit_code) == ("SSH-AGENT", 6)
        assert words in error.cause

    refuse("cannot ask ssh-agent")
    with agent(tmp_path / "agent", monkeypatch):
        refuse("holds no key; needed is")
        do("ssh-add", str(server.identity))
        for target in (server.target(), server.target(identity=None), both(gate, server)):
            again = target.model_copy(update={"agent": True})
            assert at_once([reach(again) for _ in range(3)]) == [0] * 3
        refuse(f"needed is {foreign}", identity=foreign)
        do("ssh-add", "-q", foreign)
        refuse("needed is one key alone", identity=None)
    assert refusal(reach(server.target())).code == "SSH-KEY"


@pytest.mark.parametrize(
    ("options", "kind", "code"),
    [
        ({"MaxAuthTries": "1"}, "ed25519", "SSH-AUTH-TRIES"),
        # sshd does not say whether the key or its SHA-2 signature is refused.
        ({"PubkeyAcceptedAlgorithms": "ssh-rsa"}, "rsa", "SSH-AUTH"),
        ({"KexAlgorithms": "diffie-hellman-group14-sha1"}, "ed25519", "SSH-ALGO"),
        ({"Ciphers": "aes256-cbc"}, "ed25519", "SSH-ALGO"),
        ({"MACs": "hmac-md5", "Ciphers": "aes128-ctr"}, "ed25519", "SSH-ALGO"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_the_option_of_sshd_that_keeps_us_out_is_named(
    serve: Serve, reach: Reach, tmp_path: Path, options: dict[str, str], kind: str, code: str
) -> None:
    """Old algorithms stay off."""
    server = serve(options=options)
    identity = keygen(tmp_path / "own", kind) if code != "SSH-ALGO" else server.identity
    error = refusal(reach(server.target(identity=str(identity))))
    assert error.code == code
    assert next(iter(options)) in error.fix


def test_a_key_that_cannot_be_used_is_named(serve: Serve, reach: Reach, tmp_path: Path) -> None:
    """None named, none there, one with a passphrase, and what is no key at all."""
    server = serve()
    (tmp_path / "text").write_text("no key\n")
    locked = keygen(tmp_path / "locked", passphrase="some words")
    for identity in (None, str(tmp_path / "gone"), str(tmp_path / "text"), str(locked)):
        error = refusal(reach(server.target(identity=identity)))
        assert error.code == "SSH-KEY"
        assert identity is None or identity in error.cause
