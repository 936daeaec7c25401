"""What keeps a command from starting anything on the virtual cluster, named and left alone."""

import json
from pathlib import Path

import pytest

from tests.cluster import Node
from tests.commands import told
from tests.virtual import TRIAL, Desk, rule
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
OFED = "/run/testbed/stubs/ofed_info"


def test_nodes_that_do_not_answer_are_named_all_at_once(desk: Desk) -> None:
    """Two nodes in the dark: exit 4 names both, and nothing starts."""
    dark = desk.cluster.nodes[1:3]
    for node in dark:
        node.cut()
    try:
        said = desk.run("provision", str(desk.cluster.inventory))
    finally:
        for node in dark:
            node.heal()
    assert said.returncode == 4, said.stderr
    assert said.stderr.count("ERROR ") == 1  # what is the same of several is said once
    assert "ERROR SSH-UNREACHABLE node=vs[002-003] address=10.11.0.[3-4]: port 22" in said.stderr


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


def test_an_image_that_is_gone_from_a_node_starts_nothing(desk: Desk) -> None:
    """IMAGE-MISSING names the node and no container is made; provision carries it there again."""
    node = desk.cluster.node(2)
    tag = node.must(
        "docker images --format '{{.Repository}}:{{.Tag}}' 'dlperf/ngc-pytorch*'"
    ).strip()
    node.must(f"docker rmi {tag}")
    try:
        said = desk.again(code=5).stderr
        assert "ERROR IMAGE-MISSING node=vs003" in said
        assert not desk.sweeps()
        assert not desk.left()
    finally:
        done = desk.json("provision", str(desk.cluster.inventory))
    assert [(action["kind"], action["node"]) for action in done["actions"]] == [("carry", "vs003")]


def test_a_name_that_is_taken_is_nobodys_to_remove(desk: Desk) -> None:
    """A foreign container with the name of ours: exit 5 NAME-TAKEN, and it runs on."""
    desk.again()
    node, name = desk.cluster.node(1), desk.container(1, TRIAL.replace("amp_1", "amp_2"))
    image = node.must("docker images -q 'dlperf/ngc-pytorch*'").split()[0]
    foreign = node.must(f"docker run -d --network none --name {name} {image} sleep 600").strip()
    try:
        said = desk.must("sweep", "quick", *desk.on(), "--repeats", "2", code=5)
        assert "ERROR NAME-TAKEN node=vs002" in said.stderr
        running = node.must(f"docker inspect -f '{{{{.State.Running}}}}' {foreign}")
        assert running == "true\n"
    finally:
        node.must(f"docker rm -f {foreign}")
    assert desk.states()[-1] == ("infra-lost", "NAME-TAKEN")
    assert not desk.left()


def test_a_port_that_is_blocked_between_two_nodes_is_found(desk: Desk) -> None:
    """SSH is fine and ranks could not meet: exit 5 NET-BLOCKED names who cannot reach whom."""
    block = "INPUT -p tcp --dport 22333 -s 10.11.0.4 -j DROP"
    with rule(desk.cluster.node(0), block):
        said = desk.json("provision", str(desk.cluster.inventory), code=5)
    (found,) = [finding for finding in said["site"]["findings"] if finding["severity"] == "error"]
    assert found["code"] == "NET-BLOCKED"
    assert "vs003" in found["node"] + found["seen"]
    assert "vs001" in found["node"] + found["seen"]
    # A sweep does not look there itself: what provisioning found stops it until it looks again.
    inventory = ("--inventory", str(desk.cluster.inventory))
    refused = desk.must("sweep", "rn50-amp", "--case", "4x8", *inventory, code=5)
    assert "ERROR NET-BLOCKED" in refused.stderr
    assert "provision again" in refused.stderr
    desk.json("provision", str(desk.cluster.inventory))
    desk.must("sweep", "rn50-amp", "--case", "1x1", "--repeats", "1", *inventory)


def test_a_data_set_that_was_mended_is_counted_anew(desk: Desk) -> None:
    """A file cut in place is found by --recount; mended in place, it is found without."""
    node, picture = desk.cluster.node(1), "/data/image/train/n01440764/n01440764_0.JPEG"
    provision = ("provision", str(desk.cluster.inventory))
    node.must(f"cp -p {picture} /tmp/whole && : > {picture}")
    try:
        said = desk.json(*provision, "--recount", code=5)
        wrong = {
            finding["code"]
            for finding in said["site"]["findings"]
            if finding["severity"] == "error"
        }
        assert wrong == {"DATA-DIFF"}
    finally:
        node.must(f"cat /tmp/whole > {picture}")
    desk.json(*provision)


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


def test_what_differs_between_nodes_is_found(desk: Desk) -> None:
    """One data set, one GPU and one InfiniBand port: each is an error that names its node."""
    nodes = desk.cluster.nodes
    picture = "/data/image/train/n01440764/n01440764_0.JPEG"
    stubs = "/run/testbed/stubs"
    xml, port = f"{stubs}/nvidia-smi.xml", f"{stubs}/ibstat.txt"
    nodes[1].must(f"mv {picture} /tmp/kept")
    nodes[2].must(
        f"sed '/<gpu id=\"00000000:B2/,/<.gpu>/d' {xml} >/tmp/7 && mount --bind /tmp/7 {xml}"
    )
    nodes[3].must(
        f"sed 's/State: Active/State: Down/' {port} >/tmp/d && mount --bind /tmp/d {port}"
    )
    try:
        said = desk.json("provision", str(desk.cluster.inventory), code=5)
    finally:
        nodes[1].must(f"mv /tmp/kept {picture}")
        nodes[2].must(f"umount {xml}")
        nodes[3].must(f"umount {port}")
    errors = [finding for finding in said["site"]["findings"] if finding["severity"] == "error"]
    found = {(error["code"], error["node"]) for error in errors}
    assert {("GPU-COUNT", "vs003"), ("IB-PORT", "vs004")} <= found
    (data,) = [error for error in errors if error["code"] == "DATA-DIFF"]
    assert "vs002" in data["node"] + data["seen"]


def test_two_controllers_do_not_measure_at_once(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A second one, from a state folder of its own, is refused and told who is there."""
    process = desk.begun()
    other = Desk.made(desk.cluster, tmp_path_factory.mktemp("other"))
    other.adopt(desk)
    # GPUs are the machine's: another folder on the nodes is no other place to measure.
    elsewhere = other.inventory(**{"  user: root\n": "  user: root\n  folder: /var/tmp/else\n"})
    with desk.held():
        said = other.again(code=6).stderr
        refused = other.run("provision", str(elsewhere))
    assert "ERROR LOCKED node=vs[001-004]: in use by" in said
    assert f"pid {process.pid} of root on " in said
    assert "ERROR LOCKED node=vs[001-004]: in use by" in refused.stderr
    told(process)
    assert desk.states() == [("valid", "")]


def test_without_a_lock_the_table_says_what_is_missing(desk: Desk) -> None:
    """DOWNLOAD-UNLOCKED is an error of the table, with its fix, and not only a last line."""
    inventory = desk.inventory()
    (desk.folder / "mine.lock.json").unlink()
    said = desk.must("provision", str(inventory), code=5)
    (row,) = [line for line in said.stdout.splitlines() if "DOWNLOAD-UNLOCKED" in line]
    assert row.split()[0] == "error"
    assert "provision --lock" in said.stdout
    assert "Not fit to measure" in said.stderr
