"""Addresses of nodes as numbers, in a network and with a hosts file of the test's own."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests import ROOT, commands

# As Debian writes it on vs001, and as both machines' administrators would add vs002 and six.
HOSTS = "127.0.0.1 localhost\n127.0.1.1 vs001\nfd77::2 vs002\n10.77.0.2 vs002\nfd77::3 six\n"
INSIDE = """
set -e
mount --bind "$1" /etc/hosts
ip link set lo up
ip link add here type veth peer name there
ip addr add 10.77.0.1/24 dev here
ip link set here up
exec "$2" -c "$3"
"""
ASK = """
import json
from orchestrator.model.cluster import Cluster
from orchestrator.schedulers import addresses
nodes = [
    {"name": f"n{number}", "address": address, **more}
    for number, (address, more) in enumerate([
        ("vs001", {}), ("vs002", {}), ("six", {}), ("nobody.invalid", {}), ("10.77.0.9", {}),
        ("localhost", {"transport": "local"}),
    ])
]
cluster = Cluster.model_validate_json(json.dumps({"name": "lab", "nodes": nodes}))
first = Cluster.model_validate_json(json.dumps({"name": "lab", "nodes": nodes[:1]}))
print(json.dumps([addresses.numbers(it.members) for it in (cluster, first)]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network of its own")
def test_command_lines_get_numbers_where_the_inventory_has_names(tmp_path: Path) -> None:
    """IPv4 before IPv6; this machine's own name, which means loopback here, is its address.

    What nobody here knows stays a name, and so does loopback where there is no other node.
    """
    (tmp_path / "hosts").write_text(HOSTS)
    words = ("sh", "-c", INSIDE, "sh", str(tmp_path / "hosts"), sys.executable, ASK)
    done = commands.run(["unshare", "--mount", "--net", *words], cwd=ROOT, timeout_s=60)
    assert done.returncode == 0, done.stderr
    several, alone = json.loads(done.stdout)
    assert several == {
        "n0": "10.77.0.1",
        "n1": "10.77.0.2",
        "n2": "fd77::3",
        "n3": "nobody.invalid",
        "n4": "10.77.0.9",
        "n5": "localhost",
    }
    assert alone == {"n0": "vs001"}
