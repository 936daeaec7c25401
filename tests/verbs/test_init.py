"""init: from a host's name to an inventory, through a real sshd."""

import json
import platform
import re
import subprocess
from pathlib import Path

import pytest

from orchestrator.inputs import user_files
from tests.conftest import Place
from tests.sshd import Sshd, free_port, keygen


def told(done: "subprocess.CompletedProcess[str]", code: int = 0) -> dict[str, object]:
    """The document of a command that ended so."""
    assert done.returncode == code, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def list_hosts(place: Place, **hosts: object) -> str:
    """Write what `ansible-inventory --list` prints of hosts with these variables."""
    groups = {"_meta": {"hostvars": hosts}, "all": {"hosts": [*hosts]}}
    (place.folder / "hosts.json").write_text(json.dumps(groups))
    return "hosts.json"


@pytest.mark.cluster
@pytest.mark.daemons
def test_a_machine_behind_sshd_becomes_an_inventory(place: Place, tmp_path: Path) -> None:
    """Named by Ansible's list; what comes out reaches the node again, with the same key."""
    server = Sshd(tmp_path / "sshd", address="127.0.0.5").start()
    said = {"ansible_host": "127.0.0.5", "ansible_port": server.port}
    said["ansible_ssh_private_key_file"] = str(server.identity)
    words = ("--ansible", list_hosts(place, gpu01=said), "--known-hosts", str(server.known_hosts))
    try:
        done = place.run("init", *words, "-o", "inventory/lab.yaml", "--json")
        document = told(done)
        again = place.run("provision", "inventory/lab.yaml", "--dry-run")
    finally:
        server.stop()
    assert document["nodes"] == {"gpu01": True}
    (node,) = user_files.cluster(str(place.folder / "inventory/lab.yaml"))[0].members
    assert (node.address, node.port, node.transport) == ("127.0.0.5", server.port, "ssh")
    assert (node.identity, node.known_hosts) == (str(server.identity), str(server.known_hosts))
    assert re.search(r"^gpu01 +\w", again.stdout, re.MULTILINE), again.stderr


def test_this_machine_is_asked_and_the_file_holds(place: Place) -> None:
    """Our own check accepts it; a file that is there stays, unless --force says otherwise."""
    words = ("init", "localhost", "-o", "inventory/box.yaml")
    document = told(place.run(*words, "--json"))
    out = place.folder / "inventory" / "box.yaml"
    assert document["inventory"] == out.read_text()
    cluster, _ = user_files.cluster(str(out))
    assert (cluster.name, cluster.members[0].is_here) == ("box", True)
    refused = place.must(*words, code=2)
    assert "EXISTS" in refused.stderr
    out.write_text("name: box\nnodes: []  # edited\n")
    out.chmod(0o600)
    first = place.run(*words, "--force").stdout
    assert "box.yaml.before-1: what inventory/box.yaml was before" in first
    assert out.with_name("box.yaml.before-1").stat().st_mode & 0o777 == 0o600
    out.write_text("edited again\n")
    assert "box.yaml.before-2" in place.run(*words, "--force").stdout
    kept = [out.with_name(f"box.yaml.before-{number}").read_text() for number in (1, 2)]
    assert kept == ["name: box\nnodes: []  # edited\n", "edited again\n"]
    assert out.read_text().startswith("# Written by: dlperf-orch init localhost")


def test_no_part_of_the_old_file_is_kept_on_a_full_disk(place: Place) -> None:
    """The file stays, with all edits; beside it is no shorter one that would pass for it."""
    out = place.folder / "inventory" / "box.yaml"
    out.write_text("# edited by hand\n" * 100_000)
    place.program = ("sh", "-c", 'ulimit -f 200; exec "$@"', "sh", *place.program)
    done = place.must("init", "localhost", "-o", "inventory/box.yaml", "--force", code=6)
    assert "inventory/box.yaml" in done.stderr
    assert out.read_text() == "# edited by hand\n" * 100_000
    assert not [*out.parent.glob("box.yaml.*")]


@pytest.mark.parametrize(
    "words",
    [
        *((), ("localhost", "gpu01"), ("localhost", "--name", "a b"), ("--", "-oProxyCommand=x")),
        *(("gpu01", "ba/d@10.0.0.1"), ("--slurm", "main", "--user", "me")),
        ("--slurm", "main", "--nodes", "gpu*"),
    ],
)
def test_what_cannot_be_an_inventory_is_refused(place: Place, words: tuple[str, ...]) -> None:
    """No host, this machine beside others, a name or a user that is none."""
    done = place.must("init", *words, code=2)
    assert "ERROR HOST" in done.stderr


def test_hosts_that_do_not_answer_are_written_too(place: Place, tmp_path: Path) -> None:
    """With the reason, so that `trust` and a second run have a file to begin with; exit 4."""
    key = keygen(tmp_path / "id")
    words = ("--port", str(free_port()), "--identity", str(key), "--json")
    text = str(told(place.run("init", "me@127.0.0.3", *words), code=4)["inventory"])
    assert "127.0.0.3: was not asked" in text
    assert "user: me" in text
    asked = place.run("init", "me@127.0.0.3", *words[:-1], "-o", "none.yaml")
    assert asked.stdout.splitlines() == [
        "none.yaml: 0 nodes of 1 answered",
        "next: what the errors say, then the same command with --force",
    ]


def test_the_next_step_is_what_the_failure_needs(place: Place, tmp_path: Path) -> None:
    """A key that is not there, a host that nobody trusts yet; then trust, and it answers."""
    server = Sshd(tmp_path / "sshd", address="127.0.0.6").start()
    words = ("init", f"127.0.0.6:{server.port}", "-o", "inventory/lab.yaml", "--force")
    known = ("--known-hosts", str(tmp_path / "known"))
    try:
        no_key = place.run(*words, "--identity", str(tmp_path / "none"))
        login = (*known, "--identity", str(server.identity))
        unknown = place.run(*words, *login)
        shown = place.run("trust", "lab", "--json").stdout
        (key,) = re.findall(r"SHA256:[A-Za-z0-9+/]+", shown)[:1]
        trusted = place.run("trust", "lab", "--fingerprint", key)
        asked = place.run(*words, *login)
    finally:
        server.stop()
    again = "next: what the errors say, then the same command with --force"
    assert [done.stdout.splitlines()[-1] for done in (no_key, unknown)] == [again, again]
    assert "Fix: " in no_key.stderr
    assert "dlperf-orch trust" in unknown.stderr
    assert trusted.returncode == 0, trusted.stderr
    assert asked.stdout.splitlines()[-1] == (
        "next: dlperf-orch check inventory/lab.yaml;"
        " dlperf-orch provision inventory/lab.yaml --lock"
    )
    (node,) = user_files.cluster(str(place.folder / "inventory/lab.yaml"))[0].members
    assert node.name == platform.node().split(".")[0]  # reached by a number, called by its name


def test_what_hosts_cannot_be_reached_by_is_told_once(place: Place, tmp_path: Path) -> None:
    """A key that others may read, named for all; a public key is told by what reads it."""
    key = keygen(tmp_path / "id")
    key.chmod(0o644)
    words = ("init", "gpu01", "gpu02", "10.0.0.1", "--identity")
    refused = place.must(*words, str(key), code=2)
    assert "ERROR HOST: gpu[01-02],10.0.0.1: identity: others may use" in refused.stderr
    alike = {"ansible_host": "10.0.0.1"}
    twice = place.run("init", "--ansible", list_hosts(place, gpu01=alike, gpu02=alike))
    assert "gpu02: address: '10.0.0.1' is also the address of gpu01" in twice.stderr
    public = place.must(*words, f"{key}.pub", code=6)
    assert "ERROR SSH-KEY node=gpu[01-02],10.0.0.1: cannot use the key" in public.stderr
    assert f"{key}.pub: it is the public one. Fix: set identity to a private key" in public.stderr


def test_hosts_are_chosen_from_a_list_and_reached_through_another(place: Place) -> None:
    """One of three, by its name; it is behind a machine that cannot be reached."""
    listed = list_hosts(place, login={}, gpu1={}, gpu2={})
    words = ("--ansible", listed, "--nodes", "gpu*,!gpu1", "--jump", "me@127.0.0.1:9")
    key = keygen(place.folder / "id")
    document = told(place.run("init", *words, "--identity", str(key), "--json"), code=4)
    assert document["nodes"] == {"gpu2": False}
    assert '{name: gpu2, address: gpu2, jump: "me@127.0.0.1:9"}' in str(document["inventory"])
    assert "by the jump host" in str(document["errors"])


def test_a_host_of_a_list_that_no_inventory_holds_is_told(place: Place) -> None:
    """On the screen and in comments; the others are asked."""
    said = {"ansible_ssh_common_args": "-J u@b -o StrictHostKeyChecking=no"}
    hosts = list_hosts(place, localhost={}, gpu_1={}, gpu2=said, gpu3=said)
    key = keygen(place.folder / "id")
    words = ("init", "--ansible", hosts, "--port", "9", "--identity", str(key))
    done = place.run(*words, "-o", "lab.yaml")
    assert f"ERROR HOST: left out: {hosts}:gpu_1: got 'gpu_1'; needed" in done.stderr
    assert "ERROR HOST: left out: localhost is this machine" in done.stderr
    text = (place.folder / "lab.yaml").read_text()
    assert f"# left out: {hosts}:gpu_1: got 'gpu_1'" in text
    (two, three) = user_files.cluster(str(place.folder / "lab.yaml"))[0].members
    assert (two.name, three.name, two.jump) == ("gpu2", "gpu3", "u@b")
