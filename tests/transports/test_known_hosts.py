"""Which lines of known_hosts are about a host, beside OpenSSH's own reader of the file."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from orchestrator.transports import known_hosts
from tests import commands

pytestmark = pytest.mark.cluster

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + 42 * "A" + "{:c}"
NAMES = ("vs001", "10.11.0.2", "[10.11.0.2]:2222", "gpu7.lab", "gpu77.lab", "bad.lab", "new")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Names alone and in lists, patterns, a refusal, a marker, hashed names, broken lines."""
    path = tmp_path / "known_hosts"
    names = ("vs001", "VS001,10.11.0.2", "[10.11.0.2]:2222", "gpu?.lab", "*.lab,!bad.lab", "vs001")
    keys = [KEY.format(ord("A") + at) for at in range(len(names) + 3)]
    lines = [f"{name} {key}" for name, key in zip(names, keys, strict=False)]
    hashed = tmp_path / "hashed"
    hashed.write_text(f"10.11.0.2 {keys[-3]}\nvs001 {keys[-2]}\n")
    subprocess.run(("ssh-keygen", "-q", "-H", "-f", str(hashed)), check=True, capture_output=True)
    lines += ["# a comment", "", "vs001 ssh-ed25519", f"@revoked vs001 {keys[-1]}"]
    path.write_text("\n".join([*lines, hashed.read_text()]))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_about_a_host_are_those_that_openssh_finds(file: Path, name: str) -> None:
    """Each once, in the order of the file."""
    done = commands.run(["ssh-keygen", "-F", name, "-f", str(file)])
    wanted = [int(number) for number in re.findall(r"found: line (\d+)", done.stdout)]
    found = known_hosts.about(str(file), name)
    assert [int(entry.where.rpartition(":")[2]) for entry in found] == wanted
    assert bool(wanted) == (name not in ("bad.lab", "new"))


def test_a_file_that_was_changed_is_read_again(file: Path) -> None:
    """Also where a line of the same length was put in the place of another."""
    assert len(known_hosts.about(str(file), "gpu77.lab")) == 1
    text = file.read_text()
    file.write_text(text.replace("*.lab", "*.ice"))
    os.utime(file, ns=(1, 1))
    assert known_hosts.about(str(file), "gpu77.lab") == ()
