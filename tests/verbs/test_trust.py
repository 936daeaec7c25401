"""Trusting host keys: the command, with real sshds on loopback."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.transports.ssh import SshTransport
from tests.cli.here import Ended, Here
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


def write_inventory(here: Here, *servers: Sshd, more: str = "") -> Path:
    """Write an inventory of these servers; the file that it names for their keys."""
    known = here.folder / "keys" / "known_hosts"
    nodes = [
        f"  - {{name: vs{number:03}, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}{more}}}\n"
        for number, server in enumerate(servers, 1)
    ]
    head = f"name: pair\ndefaults: {{known_hosts: {known}, runtime: process}}\nnodes:\n"
    here.write("inventory/pair.yaml", head + "".join(nodes))
    return known


@pytest.fixture
def known(here: Here, servers: tuple[Sshd, Sshd]) -> Path:
    """The file that the inventory of both servers names; it is not there yet."""
    return write_inventory(here, *servers)


def trust(here: Here, answer: str, *words: str, code: int = 0) -> Ended:
    """Run the command with what a person types."""
    return here("trust", "pair", *words, stdin=answer.encode(), code=code)


def test_a_yes_adds_every_new_key(here: Here, servers: tuple[Sshd, Sshd], known: Path) -> None:
    """Fingerprints are shown first; afterwards the nodes are reached; a second run adds nothing."""
    shown = trust(here, "yes\n").out
    for server in servers:
        assert server.fingerprint() in shown
        transport = SshTransport(server.target(known_hosts=str(known)))
        assert transport.run(("true",), timeout_s=10).exit_code == 0
        transport.close()
    content = known.read_bytes()
    assert known.stat().st_mode & 0o777 == 0o600
    assert known.parent.stat().st_mode & 0o777 == 0o700
    trust(here, "")
    assert known.read_bytes() == content


@pytest.mark.parametrize("answer", ["", "no\n", "y\n", "YES\n"])
def test_anything_but_yes_adds_nothing(here: Here, known: Path, answer: str) -> None:
    assert trust(here, answer, code=4).err.count("SSH-HOSTKEY-UNKNOWN") == 2
    assert not known.exists()


def test_fingerprints_that_are_given_need_no_answer(
    here: Here, servers: tuple[Sshd, Sshd], known: Path
) -> None:
    """What matches whole is added, the other is not; a last line without an end stays whole."""
    known.parent.mkdir()
    known.write_text("# mine, without an end")
    first, _ = servers
    words = ("--fingerprint", first.fingerprint(), "--json")
    document = trust(here, "yes\n", *words, code=4).document
    assert [key["state"] for key in document["keys"]] == ["trusted", "not trusted"]
    assert [error["node"] for error in document["errors"]] == ["vs002"]
    mine, added = known.read_text().splitlines()
    assert mine == "# mine, without an end"
    assert added.startswith(f"[{first.address}]:{first.port} ssh-ed25519 ")


def test_a_changed_key_is_not_replaced(here: Here, servers: tuple[Sshd, Sshd], known: Path) -> None:
    """Neither a yes nor a fingerprint adds it: a person has to remove the old line."""
    trust(here, "yes\n")
    server = servers[0]
    server.stop()
    for path in (server.host_key(), Path(f"{server.host_key()}.pub")):
        os.unlink(path)
    server.start()
    before = known.read_bytes()
    err = trust(here, "yes\n", "--fingerprint", server.fingerprint(), code=4).err
    assert "SSH-HOSTKEY-CHANGED node=vs001" in err
    assert f"{known}:1" in err
    assert known.read_bytes() == before


def test_a_node_behind_a_jump_host_comes_after_it(here: Here, servers: tuple[Sshd, Sshd]) -> None:
    """The jump host's key is shown first; the node behind it can be asked once that is trusted."""
    gate, server = servers
    Path(f"{gate.identity}.pub").write_bytes(Path(f"{server.identity}.pub").read_bytes())
    known = write_inventory(here, server, more=f", jump: '{gate.address}:{gate.port}'")
    trust(here, "yes\nyes\n")
    names = [line.split()[0] for line in known.read_text().splitlines()]
    assert names == [f"[{key.address}]:{key.port}" for key in (gate, server)]


def test_a_key_that_the_inventory_gives_is_not_asked_about(
    here: Here, servers: tuple[Sshd, Sshd]
) -> None:
    """The inventory vouches for it already."""
    known = write_inventory(here, servers[0], more=f", host_key: '{servers[0].fingerprint()}'")
    assert servers[0].fingerprint() in trust(here, "").out
    assert not known.exists()
