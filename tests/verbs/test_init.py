"""init: from hosts' names to an inventory, through a real sshd."""

import json
import platform
import re
from pathlib import Path

import pytest

from orchestrator.inputs import user_files
from tests.cli.here import Here
from tests.conftest import Place
from tests.sshd import Sshd, free_port, keygen

AGAIN = "next: what the errors say, then the same command with --force"


def list_hosts(here: Here, **hosts: object) -> str:
    """Write what `ansible-inventory --list` prints of hosts with these variables."""
    groups = {"_meta": {"hostvars": hosts}, "all": {"hosts": [*hosts]}}
    return here.write("hosts.json", json.dumps(groups)).name


@pytest.mark.cluster
@pytest.mark.daemons
def test_a_machine_behind_sshd_becomes_an_inventory(here: Here, tmp_path: Path) -> None:
    """Named by Ansible's list; what comes out reaches the node again, with the same key."""
    server = Sshd(tmp_path / "sshd", address="127.0.0.5").start()
    said = {"ansible_host": "127.0.0.5", "ansible_port": server.port}
    said["ansible_ssh_private_key_file"] = str(server.identity)
    words = ("--ansible", list_hosts(here, gpu01=said), "--known-hosts", str(server.known_hosts))
    try:
        document = here("init", *words, "-o", "inventory/lab.yaml", "--json", code=0).document
        again = here("provision", "inventory/lab.yaml", "--dry-run")
    finally:
        server.stop()
    assert document["nodes"] == {"gpu01": True}
    (node,) = user_files.cluster("inventory/lab.yaml")[0].members
    assert (node.address, node.port, node.transport) == ("127.0.0.5", server.port, "ssh")
    assert (node.identity, node.known_hosts) == (str(server.identity), str(server.known_hosts))
    assert re.search(r"^gpu01 +\w", again.out, re.MULTILINE), again.err


def test_a_file_that_is_replaced_stays_beside_the_new_one(here: Here) -> None:
    """Its rights too; `check` accepts the new one."""
    words = ("init", "localhost", "-o", "inventory/box.yaml")
    document = here(*words, "--json", code=0).document
    out = here.folder / "inventory/box.yaml"
    assert document["inventory"] == out.read_text()
    cluster, _ = user_files.cluster(str(out))
    assert (cluster.name, cluster.members[0].is_here) == ("box", True)
    edited = ["name: box\nnodes: []  # edited\n", "edited again\n"]
    for number, text in enumerate(edited, 1):
        out.write_text(text)
        out.chmod(0o600)
        said = here(*words, "--force", code=0).out
        assert f"box.yaml.before-{number}: what inventory/box.yaml was before" in said
        kept = out.with_name(f"box.yaml.before-{number}")
        assert (kept.read_text(), kept.stat().st_mode & 0o777) == (text, 0o600)
    assert out.read_text().startswith("# Written by: dlperf-orch init localhost")


def test_no_part_of_the_old_file_is_kept_on_a_full_disk(place: Place) -> None:
    """The file stays, with all edits; beside it is no shorter copy that would pass for it."""
    out = place.folder / "inventory" / "box.yaml"
    out.write_text("# edited by hand\n" * 100_000)
    place.program = ("sh", "-c", 'ulimit -f 200; exec "$@"', "sh", *place.program)
    done = place.must("init", "localhost", "-o", "inventory/box.yaml", "--force", code=6)
    assert "inventory/box.yaml" in done.stderr
    assert out.read_text() == "# edited by hand\n" * 100_000
    assert not [*out.parent.glob("box.yaml.*")]


def test_hosts_that_do_not_answer_are_written_too(here: Here, tmp_path: Path) -> None:
    """With the reason, so that `trust` and a second run have a file to begin with; exit 4."""
    key = keygen(tmp_path / "id")
    words = ("init", "me@127.0.0.3", "--port", str(free_port()), "--identity", str(key))
    text = here(*words, "--json", code=4).document["inventory"]
    assert "127.0.0.3: was not asked" in text
    assert "user: me" in text
    lines = here(*words, "-o", "none.yaml", code=4).out.splitlines()
    assert lines == ["none.yaml: 0 nodes of 1 answered", AGAIN]


def test_the_next_step_is_what_the_failure_needs(here: Here, tmp_path: Path) -> None:
    """A key that is not there, a host that nobody trusts yet; then trust, and it answers."""
    server = Sshd(tmp_path / "sshd", address="127.0.0.6").start()
    words = ("init", f"127.0.0.6:{server.port}", "-o", "inventory/lab.yaml", "--force")
    known = ("--known-hosts", str(tmp_path / "known"))
    try:
        no_key = here(*words, "--identity", str(tmp_path / "none"))
        login = (*known, "--identity", str(server.identity))
        unknown = here(*words, *login)
        shown = here("trust", "lab", "--json").out
        here("trust", "lab", "--fingerprint", re.findall(r"SHA256:[\w+/]+", shown)[0], code=0)
        asked = here(*words, *login)
    finally:
        server.stop()
    assert [ended.out.splitlines()[-1] for ended in (no_key, unknown)] == [AGAIN, AGAIN]
    assert "Fix: " in no_key.err
    assert "dlperf-orch trust" in unknown.err
    assert asked.out.splitlines()[-1] == (
        "next: dlperf-orch check inventory/lab.yaml;"
        " dlperf-orch provision inventory/lab.yaml --lock"
    )
    (node,) = user_files.cluster("inventory/lab.yaml")[0].members
    assert node.name == platform.node().split(".")[0]  # reached by a number, called by its name


def test_an_error_of_all_hosts_is_one_line(here: Here, tmp_path: Path) -> None:
    """A key that others may read, and a public key."""
    key = keygen(tmp_path / "id")
    key.chmod(0o644)
    words = ("init", "gpu01", "gpu02", "10.0.0.1", "--identity")
    refused = here(*words, str(key), code=2).err
    assert "ERROR HOST: gpu[01-02],10.0.0.1: identity: others may use" in refused
    public = here(*words, f"{key}.pub", code=6).err
    assert "ERROR SSH-KEY node=gpu[01-02],10.0.0.1: cannot use the key" in public
    assert f"{key}.pub: it is the public one. Fix: set identity to a private key" in public
    alike = {"ansible_host": "10.0.0.1"}
    twice = here("init", "--ansible", list_hosts(here, gpu01=alike, gpu02=alike)).err
    assert "gpu02: address: '10.0.0.1' is also the address of gpu01" in twice


def test_hosts_are_chosen_from_a_list_and_reached_through_another(here: Here) -> None:
    """One of three, by its name; it is behind a machine that cannot be reached."""
    listed = list_hosts(here, login={}, gpu1={}, gpu2={})
    key = keygen(here.folder / "id")
    words = ("--ansible", listed, "--nodes", "gpu*,!gpu1", "--jump", "me@127.0.0.1:9")
    document = here("init", *words, "--identity", str(key), "--json", code=4).document
    assert document["nodes"] == {"gpu2": False}
    assert '{name: gpu2, address: gpu2, jump: "me@127.0.0.1:9"}' in document["inventory"]
    assert "by the jump host" in str(document["errors"])


def test_a_host_of_a_list_that_no_inventory_can_have_is_left_out(here: Here) -> None:
    """On the screen and in comments; the others are asked."""
    said = {"ansible_ssh_common_args": "-J u@b -o StrictHostKeyChecking=no"}
    hosts = list_hosts(here, localhost={}, gpu_1={}, gpu2=said, gpu3=said)
    key = keygen(here.folder / "id")
    words = ("init", "--ansible", hosts, "--port", "9", "--identity", str(key))
    err = here(*words, "-o", "lab.yaml").err
    assert f"ERROR HOST: left out: {hosts}:gpu_1: got 'gpu_1'; needed" in err
    assert "ERROR HOST: left out: localhost is this machine" in err
    assert f"# left out: {hosts}:gpu_1: got 'gpu_1'" in (here.folder / "lab.yaml").read_text()
    (two, three) = user_files.cluster("lab.yaml")[0].members
    assert (two.name, three.name, two.jump) == ("gpu2", "gpu3", "u@b")
