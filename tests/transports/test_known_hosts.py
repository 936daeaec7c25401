"""Which lines of known_hosts are about a host, beside OpenSSH's own reader of the file."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports import known_hosts
from tests import commands

pytestmark = pytest.mark.cluster

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + 42 * "A" + "{:c}"
NAMES = ("vs001", "10.11.0.2", "[10.11.0.2]:2222", "new")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Names alone and in lists, a marker, hashed names, broken lines."""
    path = tmp_path / "known_hosts"
    names = ("vs001", "VS001,10.11.0.2", "[10.11.0.2]:2222", "other", "vs001")
    keys = [KEY.format(ord("A") + at) for at in range(len(names) + 3)]
    lines = [f"{name} {key}" for name, key in zip(names, keys, strict=False)]
    hashed = tmp_path / "hashed"
    hashed.write_text(f"10.11.0.2 {keys[-3]}\nvs001 {keys[-2]}\n")
    subprocess.run(("ssh-keygen", "-q", "-H", "-f", str(hashed)), check=True, capture_output=True)
    lines += ["# a comment", "", "vs001 ssh-ed25519"]
    path.write_text("\n".join([*lines, hashed.read_text()]))
    return path


@pytest.mark.parametrize("name", NAMES)
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
    """A line trusts the names that it spells out, and those that it hides by a hash."""
    path = tmp_path / "known_hosts"
    path.write_text(f"{line} {KEY.format(ord('A'))}\n")
    assert known_hosts.find_entries(str(path), "gpu7.lab") == ()


@pytest.mark.parametrize("hosts", ["gpu7.lab", "other.lab", "*", "!gpu7.lab,*.lab"])
def test_a_revoked_key_is_refused_wherever_it_is_shown(tmp_path: Path, hosts: str) -> None:
    """Whatever host its line is about, also before a line that trusts it."""
    path, key = tmp_path / "known_hosts", KEY.format(ord("A"))
    path.write_text(f"@revoked {hosts} {key}\ngpu7.lab {key}\n")
    entries = known_hosts.find_entries(str(path), "gpu7.lab")
    shown = entries[-1].key
    with pytest.raises(errors.NodeError, match="known_hosts:1 revokes it") as raised:
        known_hosts.check_key("gpu7", "gpu7.lab", entries, shown)
    assert raised.value.code == "SSH-HOSTKEY-REVOKED"


def test_a_file_that_was_changed_is_read_again(file: Path) -> None:
    """Also where a line of the same length was put in the place of another."""
    assert len(known_hosts.find_entries(str(file), "other")) == 1
    file.write_text(file.read_text().replace("other", "thing"))
    os.utime(file, ns=(1, 1))
    assert known_hosts.find_entries(str(file), "other") == ()
