"""What keeps a command from starting anything on the virtual cluster, named and left alone."""

import json
from pathlib import Path

import pytest

from tests.cluster import Node
from tests.commands import told
from tests.people import Desk, rule
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
OFED = "/run/testbed/stubs/ofed_info"


def test_engines_that_are_down_or_hang_are_told_apart(desk: Desk) -> None:
    """No dockerd is DOCKER-DOWN, one that never answers is DOCKER-HUNG; the others are asked."""
    down, hung = desk.cluster.nodes[1:3]
    down.signal("dockerd", "KILL")
    hung.signal("dockerd", "STOP")
    try:
        said = desk.json("provision", str(desk.cluster.inventory), code=5)
    finally:
        hung.signal("dockerd", "CONT")
        down.revive("dockerd")
    errors = [finding for finding in said["site"]["findings"] if finding["severity"] == "error"]
    found = {(error["code"], error["node"]) for error in errors}
    assert found == {("DOCKER-DOWN", "vs002"), ("DOCKER-HUNG", "vs003")}
    assert list(said["site"]["nodes"]) == ["vs001", "vs002", "vs003", "vs004"]


def list_everything(node: Node) -> set[str]:
    """Return all images and containers that a node's engine has."""
    listed = "docker images -a --no-trunc --format '{{.ID}} {{.Repository}}:{{.Tag}}'"
    return set(node.must(f"{listed}; docker ps -aq --no-trunc").splitlines())


def test_an_image_that_is_gone_from_a_node_starts_nothing(desk: Desk) -> None:
    """IMAGE-MISSING names the node; a dry run of provision changes nothing, provision carries."""
    node, inventory = desk.cluster.node(2), str(desk.cluster.inventory)
    tag = node.must(
        "docker images --format '{{.Repository}}:{{.Tag}}' 'dlperf/ngc-pytorch*'"
    ).strip()
    node.must(f"docker rmi {tag}")
    try:
        said = desk.again(code=5).stderr
        assert "ERROR IMAGE-MISSING node=vs003" in said
        assert not desk.sweeps()
        assert not desk.left()
        before = [list_everything(node) for node in desk.cluster.nodes]
        planned = desk.json("provision", inventory, "--dry-run")["actions"]
        assert [list_everything(node) for node in desk.cluster.nodes] == before
    finally:
        done = desk.json("provision", inventory)["actions"]
    for actions in (planned, done):
        assert [(action["kind"], action["node"]) for action in actions] == [("carry", "vs003")]


def test_a_provisioning_that_is_ended_leaves_no_container(desk: Desk) -> None:
    """SIGTERM while containers look around: exit 143, and none of them stays."""
    process = desk.start("provision", str(desk.cluster.inventory))
    probes = "docker ps -aq --filter label=dlperf.probe"
    node = desk.cluster.node(0)
    wait_for(lambda: node.must(probes).strip(), "a container that looks around")
    process.terminate()
    assert process.wait(30) == 143
    assert [node.must(probes) for node in desk.cluster.nodes] == ["", "", "", ""]


def _replace(node: Node, program: str, script: str) -> None:
    """Another program in the place of a node's own, until that is unmounted or the node is off."""
    own = f"/tmp/{Path(program).name}"
    node.must(f"printf '#!/bin/sh\\n%s\\n' '{script}' >{own} && chmod 755 {own}")
    node.must(f"mount --bind {own} {program}")


def test_what_containers_found_is_kept_when_a_node_dies_afterwards(desk: Desk) -> None:
    """Exit 4 names the node; what its containers saw before is shown, and in the site's file."""
    odd, dying = desk.cluster.node(0), desk.cluster.node(2)
    _replace(odd, OFED, "echo MLNX_OFED_LINUX-4.6-1.0.1.1:")
    # It begins to count the files of its data sets, and is at it until it dies.
    dying.must("rm -f /tmp/counting")
    _replace(dying, "/usr/bin/find", ": >/tmp/counting; exec sleep 600")
    # It gives whole seconds only, and waits for the end of this one.
    gone = "docker events --since 1 --until $(($(date +%s) + 1)) -f event=destroy"
    before = {node: node.must(gone) for node in desk.cluster.nodes}
    try:
        process = desk.start("provision", str(desk.cluster.inventory), "--json")
        wait_for(lambda: all(node.must(gone) != before[node] for node in before), "ended looks")
        wait_for(lambda: dying.sh("test -e /tmp/counting").returncode == 0, "counting files")
        dying.power_off()
        told(process, code=4)
    finally:
        dying.power_off()
        dying.power_on()
        odd.must(f"umount {OFED}")
    site = json.loads((desk.state / "sites" / "virtual.json").read_text())
    found = {(finding["code"], finding["node"]) for finding in site["findings"]}
    assert ("OFED-SKEW", "vs001") in found


def test_what_is_wrong_with_nodes_is_found_and_keeps_sweeps_out(desk: Desk) -> None:
    """A cut picture, a GPU, an InfiniBand port and a blocked port: each error names its node.

    A picture that is cut in place is found by --recount; one that is mended, also without.
    """
    nodes, inventory = desk.cluster.nodes, str(desk.cluster.inventory)
    picture = "/data/image/train/n01440764/n01440764_0.JPEG"
    stubs = "/run/testbed/stubs"
    xml, port = f"{stubs}/nvidia-smi.xml", f"{stubs}/ibstat.txt"
    nodes[1].must(f"cp -p {picture} /tmp/whole && : > {picture}")
    nodes[2].must(
        f"sed '/<gpu id=\"00000000:B2/,/<.gpu>/d' {xml} >/tmp/7 && mount --bind /tmp/7 {xml}"
    )
    nodes[3].must(
        f"sed 's/State: Active/State: Down/' {port} >/tmp/d && mount --bind /tmp/d {port}"
    )
    try:
        with rule(nodes[0], "INPUT -p tcp --dport 22333 -s 10.11.0.4 -j DROP"):
            said = desk.json("provision", inventory, "--recount", code=5)
    finally:
        nodes[1].must(f"cat /tmp/whole > {picture}")
        nodes[2].must(f"umount {xml}")
        nodes[3].must(f"umount {port}")
    errors = {
        finding["code"]: finding["node"] + finding["seen"]
        for finding in said["site"]["findings"]
        if finding["severity"] == "error"
    }
    wrong = {"DATA-DIFF": "vs002", "GPU-COUNT": "vs003", "IB-PORT": "vs004", "NET-BLOCKED": "vs003"}
    assert {code: node in errors.get(code, "") for code, node in wrong.items()} == dict.fromkeys(
        wrong, True
    )
    assert "vs001" in errors["NET-BLOCKED"]
    # A sweep does not look there itself: what provisioning found stops it until it looks again.
    refused = desk.must("sweep", "rn50-amp", "--case", "4x8", *desk.on(), code=5)
    assert "ERROR NET-BLOCKED" in refused.stderr
    assert "provision again" in refused.stderr
    desk.json("provision", inventory)
    desk.must("sweep", "rn50-amp", "--case", "1x1", "--repeats", "1", *desk.on())


def test_without_a_lock_the_table_says_what_is_missing(desk: Desk) -> None:
    """DOWNLOAD-UNLOCKED is an error of the table, with its fix, and not only a last line."""
    inventory = desk.inventory()
    (desk.folder / "mine.lock.json").unlink()
    said = desk.must("provision", str(inventory), code=5)
    (row,) = [line for line in said.stdout.splitlines() if "DOWNLOAD-UNLOCKED" in line]
    assert row.split()[0] == "error"
    assert "provision --lock" in said.stdout
    assert "Not fit to measure" in said.stderr
