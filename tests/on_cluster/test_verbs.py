"""The other commands on the virtual cluster: status, logs, stop, clean, and parts of it."""

import json
import os
import shutil

import pytest

from tests import TESTS
from tests.cluster import Node
from tests.commands import told
from tests.people import QUICK, TRIAL, Desk
from tests.processes import PATIENCE_S

pytestmark = pytest.mark.cluster


def image(node: Node) -> str:
    """The name of the image that provisioning put on a node."""
    return node.must(
        "docker images --format '{{.Repository}}:{{.Tag}}' 'dlperf/ngc-pytorch*'"
    ).split()[0]


@pytest.mark.long
def test_a_sweep_is_watched_from_another_terminal(desk: Desk) -> None:
    """status and logs say what runs where; --follow ends with it, and its bytes are the log's."""
    process = desk.begun()
    follower = desk.start("logs", "--follow")
    with desk.held():
        said = desk.json("status")
        leader, other = desk.run("logs").stdout, desk.run("logs", TRIAL, "--rank", "1").stdout
    assert said["trials"] == {TRIAL: "running"}
    assert f"pid {process.pid} " in said["controller"]
    seen = [(task["node"], task["node_rank"], task["phase"]) for task in said["tasks"]]
    assert seen == [("vs001", 0, "running"), ("vs002", 1, "running")]
    assert said["tasks"][0]["log_bytes"] > 0
    (going,) = said["running"]
    assert (going["trial"], going["iterations"]) == (TRIAL, 40)
    assert 3 <= going["iteration"] <= 40
    assert going["left_s"] >= 0
    assert said["tasks"][1]["name"] == desk.container(1)
    told(process)
    kept = [
        (desk.sweeps()[-1] / "attempts" / TRIAL / "a1" / f"r{rank}.log").read_text()
        for rank in (0, 1)
    ]
    assert follower.communicate(timeout=PATIENCE_S)[0] == kept[0]
    assert follower.returncode == 0
    assert "Iteration: 3 " in leader
    assert kept[0].startswith(leader)
    assert "vs002:" in other
    assert kept[1].startswith(other)
    assert desk.run("logs", TRIAL, "--rank", "1", "--attempt", "1").stdout == kept[1]
    after = desk.json("status")
    assert (after["trials"], after["tasks"], after["controller"]) == ({TRIAL: "valid"}, [], None)
    assert "1 valid" in desk.run("status").stdout


def test_stop_ends_what_is_ours_and_nothing_else(desk: Desk) -> None:
    """The controller ends with 143; containers and processes of others are as before.

    Beside another's gang nothing is measured: OTHER-GANG until that has ended.
    """
    process, node = desk.begun(iteration_s=1.0), desk.cluster.node(1)
    asleep = f"docker run -d --network none {image(node)} sleep 600"
    label = "--label dlperf.sweep=theirs --name dlp-theirs-1n1g-x-a1-r0"
    other = "python3 -c 'import time; time.sleep(600)' >/dev/null 2>&1 & echo $!"
    with desk.held():
        plain = node.must(asleep).strip()
        theirs = node.must(asleep.replace("-d", f"-d {label}", 1)).strip()
        pid = node.must(other).strip()
    try:
        said = desk.json("stop")
        _, words = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 143, words
        assert said["controller"] == process.pid
        assert "docker rm --force dlp-theirs-1n1g-x-a1-r0" in desk.must("clean", *desk.on()).stderr
        assert desk.left() == {"vs002": theirs[:12]}
        running = node.must(f"docker inspect -f '{{{{.State.Running}}}}' {plain} {theirs}")
        assert running.split() == ["true", "true"]
        node.must(f"kill -0 {pid}")
        assert "ERROR OTHER-GANG node=vs002" in desk.again(code=5).stderr
    finally:
        node.must(f"docker rm -f {plain} {theirs}; kill {pid}")
    desk.again()
    assert not desk.left()


def test_clean_removes_what_finished_sweeps_left(desk: Desk) -> None:
    """First it says what, then it does it; an image that a site needs stays."""
    desk.again()
    node, sweep = desk.cluster.node(2), desk.sweeps()[-1].name
    tag = image(node)
    old = f"{tag.partition(':')[0]}:0123456789abcdef"
    node.must(
        f"mkdir -p /var/tmp/dlperf-root/{sweep}/attempts/{TRIAL}/a1 && docker tag {tag} {old}"
    )
    node.must(f"docker create --name {desk.container()} --label dlperf.sweep={sweep} {tag} true")
    nameless = node.must(f"printf 'FROM {tag}\\nENV A=1' | DOCKER_BUILDKIT=0 docker build -q -")
    state = desk.folder / ".dlperf" / "identity"
    assert not state.exists()  # this folder has made no image so far
    desk.json("clean", "--images", *desk.on(), "--dry-run")
    made = "printf 'FROM {tag}\\nLABEL dlperf.state={state}\\n' | DOCKER_BUILDKIT=0 docker build -q"
    ours = "dlperf/ours:0123456789abcdef"
    node.must(f"{made.format(tag=tag, state=state.read_text())} -t {ours} -")
    mine = node.must(f"{made.format(tag=ours, state=state.read_text())} -").strip()
    words = ("clean", "--images", *desk.on())
    document = desk.json(*words, "--dry-run")
    said = document["nodes"]
    assert said["vs003"]["folders"] == [f"/var/tmp/dlperf-root/{sweep}"]
    assert said["vs003"]["containers"] == [desk.container()]
    assert set(said["vs003"]["images"]) <= {ours, mine}
    assert ours in said["vs003"]["images"]
    # Whoever provisioned first made these; others that tests before made may be there too.
    assert {old, nameless.strip()} <= set(document["images_of_others"]["vs003"])
    assert document["images_of_others"]["vs003"][old].startswith("root on ")
    shown = desk.run(*words, "--dry-run").stdout
    assert f"docker rmi {old}" in shown
    assert not any(tag in node["images"] for node in said.values())
    assert desk.left()
    assert desk.json(*words)["nodes"] == said
    assert not desk.left()
    assert node.must(f"docker images -q {ours}") == ""
    assert node.must(f"docker images -q {old}")
    assert nameless.strip() in node.must("docker images -aq --no-trunc")
    assert node.must(f"docker images -q {tag}")
    assert desk.json(*words)["nodes"] == {}
    node.must(f"docker rmi {old} {nameless}")


def test_what_a_killed_sweep_left_is_named_and_goes_with_stop(desk: Desk) -> None:
    """clean: exit 7 with containers and folders by node; stop ends them, and no folder stays.

    A folder that a kill kept us from removing after its outcome goes with the sweep's next run.
    """
    process, sweep = desk.begun(), desk.sweeps()[-1].name
    process.kill()
    process.communicate()
    kept = desk.json("clean", *desk.on(), code=7)["kept"]
    assert kept["vs002"]["tasks"] == [desk.container(1)]
    assert kept["vs002"]["folders"] == [f"/var/tmp/dlperf-root/{sweep}"]
    assert f"dlperf-orch stop {sweep}" in desk.run("clean", *desk.on()).stderr
    assert desk.left()
    desk.json("stop")
    assert not desk.left()
    desk.cluster.node(1).must(f"mkdir -p /var/tmp/dlperf-root/{sweep}/attempts/{TRIAL}/a1")
    desk.again()
    assert not desk.left()


def test_an_edited_inventory_is_provisioned_again(desk: Desk) -> None:
    """What was prepared for another description of the nodes does not count: exit 5."""
    edited = desk.inventory(**{"shm_size: 1g": "shm_size: 512m"})
    name = desk.playbook("quick", QUICK)
    done = desk.must("sweep", name, "--inventory", str(edited), code=5)
    assert "ERROR IMAGE-NOT-PROVISIONED" in done.stderr
    assert "was edited after it was provisioned. Fix: dlperf-orch provision " in done.stderr
    assert desk.json("provision", str(edited))["actions"] == []
    desk.must("sweep", name)


def test_plain_processes_run_on_nodes_that_are_elsewhere(desk: Desk) -> None:
    """Transport ssh with runtime process: the program is pushed, run, and nothing of it stays."""
    toy = TESTS / "toy"
    image, playbook = desk.folder / "images/toy", toy / "place/playbooks/toy.yaml"
    shutil.copytree(toy / "place/images/toy", image)
    with open(image / "image.yaml", "a") as file:
        file.write("python: python3\n")
    text = desk.cluster.cpu_inventory.read_text()
    kept = [line for line in text.splitlines() if not line.startswith(("images:", "registry:"))]
    inventory = desk.folder / "plain.yaml"
    inventory.write_text("\n".join(kept).replace("runtime: docker", "runtime: process") + "\n")
    name = desk.playbook("plain", playbook.read_text().replace("inventory: two\n", ""))
    seeing = f"{toy}{os.pathsep}{desk.env['PYTHONPATH']}"
    words = ("sweep", name, "--inventory", str(inventory), "--json")
    done = desk.must(*words, PYTHONPATH=seeing)
    rows = {case["case"]["placement"]: case for case in json.loads(done.stdout)["cases"]}
    assert all(rows[placement]["trials_valid"] == 2 for placement in ("1x1", "2x2"))
    ranks = [(end["node"], end["status"]) for end in desk.outcomes()["2n2g-toy_b4_fp32_1"]["tasks"]]
    assert ranks == [("vs001", 0), ("vs002", 0)]
    assert not desk.left()
