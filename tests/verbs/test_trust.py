"""Trusting host keys: the command, with real sshds on loopback."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.transports.ssh import SshTransport
from tests import commands
from tests.conftest import PROGRAM, Place
from tests.sshd import Sshd

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Sshd, Sshd]]:
    """Two nodes that nobody has trusted yet."""
    started = Sshd(tmp_path / "one").start(), Sshd(tmp_path / "two", address="127.0.0.2").start()
    for server in started:
        server.known_hosts.unlink()
    yield started
    for server in started:
        server.stop()


@pytest.fixture
def known(place: Place, servers: tuple[Sshd, Sshd]) -> Path:
    """The file that the inventory of both servers names; it is not there yet."""
    path = place.folder / "keys" / "known_hosts"
    nodes = [
        f"  - {{name: vs{number:03}, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}}}\n"
        for number, server in enumerate(servers, 1)
    ]
    inventory = f"name: pair\ndefaults: {{known_hosts: {path}, runtime: process}}\nnodes:\n"
    (place.folder / "inventory" / "pair.yaml").write_text(inventory + "".join(nodes))
    return path


def trust(place: Place, answer: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The command, with what a person types."""
    return commands.run(
        [*PROGRAM, "trust", "pair", *words],
        cwd=place.folder,
        env=place.env(),
        said=answer,
        timeout_s=60,
    )


def test_a_yes_adds_every_new_key(place: Place, servers: tuple[Sshd, Sshd], known: Path) -> None:
    """Fingerprints are shown first; afterwards the nodes are reached; a second run adds nothing."""
    done = trust(place, "yes\n")
    assert done.returncode == 0, done.stderr
    for server in servers:
        assert server.fingerprint() in done.stdout
        transport = SshTransport(server.target(known_hosts=str(known)))
        assert transport.run(("true",), timeout_s=10).exit_code == 0
        transport.close()
    content = known.read_bytes()
    assert known.stat().st_mode & 0o777 == 0o600
    assert known.parent.stat().st_mode & 0o777 == 0o700
    again = trust(place, "")
    assert again.returncode == 0
    assert known.read_bytes() == content


@pytest.mark.parametrize("answer", ["", "no\n", "y\n", "YES\n"])
def test_anything_but_yes_adds_nothing(place: Place, known: Path, answer: str) -> None:
    """Both nodes stay untrusted, with exit 4."""
    done = trust(place, answer)
    assert done.returncode == 4
    assert done.stderr.count("SSH-HOSTKEY-UNKNOWN") == 2
    assert not known.exists()


def test_fingerprints_that_are_given_need_no_answer(
    place: Place, servers: tuple[Sshd, Sshd], known: Path
) -> None:
    """What matches whole is added, the other is not; a last line without an end stays whole."""
    known.parent.mkdir()
    known.write_text("# mine, without an end")
    first, _ = servers
    done = trust(place, "yes\n", "--fingerprint", first.fingerprint(), "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 4
    assert [key["state"] for key in document["keys"]] == ["trusted", "not trusted"]
    assert [error["node"] for error in document["errors"]] == ["vs002"]
    lines = known.read_text().splitlines()
    assert lines[0] == "# mine, without an end"
    assert lines[1].startswith(f"[{first.address}]:{first.port} ssh-ed25519 ")
    assert len(lines) == 2


def test_a_changed_key_is_not_replaced(
    place: Place, servers: tuple[Sshd, Sshd], known: Path
) -> None:
    """Neither a yes nor a fingerprint gets it in: a person has to remove the old line."""
    assert trust(place, "yes\n").returncode == 0
    server = servers[0]
    server.stop()
    for path in (server.host_key(), Path(f"{server.host_key()}.pub")):
        os.unlink(path)
    server.start()
    before = known.read_bytes()
    done = trust(place, "yes\n", "--fingerprint", server.fingerprint())
    assert done.returncode == 4
    assert "SSH-HOSTKEY-CHANGED node=vs001" in done.stderr
    assert f"{known}:1" in done.stderr
    assert known.read_bytes() == before


def test_a_node_behind_a_jump_host_comes_after_it(
    place: Place, servers: tuple[Sshd, Sshd], known: Path
) -> None:
    """The jump host's key is shown first; the node behind it can be asked once that is trusted."""
    gate, server = servers
    Path(f"{gate.identity}.pub").write_bytes(Path(f"{server.identity}.pub").read_bytes())
    (place.folder / "inventory" / "pair.yaml").write_text(
        f"name: pair\ndefaults: {{known_hosts: {known}, runtime: process}}\nnodes:\n"
        f"  - {{name: vs001, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}, jump: '{gate.address}:{gate.port}'}}\n"
    )
    done = trust(place, "yes\nyes\n")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in known.read_text().splitlines()]
    assert names == [f"[{key.address}]:{key.port}" for key in (gate, server)]


def test_a_key_that_the_inventory_gives_is_not_asked_about(
    place: Place, servers: tuple[Sshd, Sshd], known: Path
) -> None:
    """The inventory vouches for it already."""
    server = servers[0]
    (place.folder / "inventory" / "pair.yaml").write_text(
        f"name: pair\ndefaults: {{known_hosts: {known}, runtime: process}}\nnodes:\n"
        f"  - {{name: vs001, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}, host_key: '{server.fingerprint()}'}}\n"
    )
    done = trust(place, "")
    assert done.returncode == 0, done.stderr
    assert server.fingerprint() in done.stdout
    assert not known.exists()
