"""The other commands on the virtual cluster: status, logs, stop, clean, and parts of it."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests import TESTS
from tests.cluster import Node
from tests.commands import told
from tests.virtual import QUICK, TRIAL, Desk
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.cluster

LABELLED = "docker ps -aq --filter label=dlperf.sweep"


def image(node: Node) -> str:
    """The name of the image that provisioning put on a node."""
    return node.must(
        "docker images --format '{{.Repository}}:{{.Tag}}' 'dlperf/ngc-pytorch*'"
    ).split()[0]


def has(node: Node) -> set[str]:
    """Everything that a node's engine has: images and containers."""
    listed = "docker images -a --no-trunc --format '{{.ID}} {{.Repository}}:{{.Tag}}'"
    return set(node.must(f"{listed}; docker ps -aq --no-trunc").splitlines())


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
    process, node = desk.begun(), desk.cluster.node(1)
    asleep = f"docker run -d --network none {image(node)} sleep 600"
    plain = node.must(asleep).strip()
    label = "--label dlperf.sweep=theirs --name dlp-theirs-1n1g-x-a1-r0"
    theirs = node.must(asleep.replace("-d", f"-d {label}", 1)).strip()
    pid = node.must("python3 -c 'import time; time.sleep(600)' >/dev/null 2>&1 & echo $!").strip()
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


def test_stop_ends_what_a_dead_controller_left(desk: Desk) -> None:
    """Without a controller the containers run on; stop names the attempt and ends them."""
    process = desk.begun()
    process.kill()
    process.communicate()
    said = desk.json("stop")
    assert said["controller"] is None
    assert said["ended"] == [f"{TRIAL} a1"]
    assert not any(node.must(LABELLED) for node in desk.cluster.nodes)


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


@pytest.mark.long
def test_a_sweep_whose_state_folder_is_lost_is_told_and_ended(desk: Desk, tmp_path: Path) -> None:
    """From another folder: provision, sweep and clean name it, its owner and its deadline."""
    process = desk.begun(iteration_s=5)
    sweep, folder = desk.sweeps()[-1].name, desk.state
    process.kill()
    process.communicate()
    shutil.copytree(folder / "sites", tmp_path / "sites")
    shutil.rmtree(folder)
    desk.state.mkdir()
    shutil.copytree(tmp_path / "sites", desk.state / "sites")
    assert "NO-SWEEP" in desk.run("stop").stderr
    document = desk.json("provision", str(desk.cluster.inventory), code=5)
    (found,) = (one for one in document["site"]["findings"] if one["code"] == "OTHER-GANG")
    assert found["node"] == "vs[001-002]"
    for word in (sweep, "of root on ", f"state folder {folder};", "it ends by itself at 20"):
        assert word in found["seen"], word
    command = f"dlperf-orch stop {sweep} --on {desk.cluster.inventory}"
    assert command in found["fix"]
    refused = desk.again(code=5).stderr
    assert "ERROR OTHER-GANG node=vs[001-002]" in refused
    assert command in refused
    assert command in desk.must("clean", *desk.on()).stderr
    ended = desk.json(*command.split()[1:])["ended"]
    assert ended == [f"dlp-{sweep}-{TRIAL}-a1-r{rank}" for rank in (0, 1)]
    assert not any(node.must(LABELLED) for node in desk.cluster.nodes)
    desk.again()


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


def test_nodes_can_be_left_out(desk: Desk) -> None:
    """--nodes by glob and by !NAME: a case of two nodes takes the first two that are left."""
    done = desk.json("provision", str(desk.cluster.inventory), "--nodes", "vs00[23]")
    assert list(done["site"]["nodes"]) == ["vs002", "vs003"]
    assert done["actions"] == []
    desk.must("sweep", desk.playbook("quick", QUICK), *desk.on(), "--nodes", "!vs001")
    nodes = [end["node"] for end in desk.outcomes()[TRIAL]["tasks"]]
    assert nodes == ["vs002", "vs003"]


@pytest.mark.parametrize("verb", ["provision", "sweep"])
def test_a_node_that_is_not_there_is_a_mistake(desk: Desk, verb: str) -> None:
    """An unknown name is exit 2, with the names that there are."""
    words = (str(desk.cluster.inventory),) if verb == "provision" else ("rn50-amp", *desk.on())
    done = desk.must(verb, *words, "--nodes", "vs9*", code=2)
    assert "ERROR NO-NODE: no node fits 'vs9*'; there are vs001, vs002, vs003, vs004" in done.stderr


def test_a_dry_run_of_provision_changes_nothing(desk: Desk) -> None:
    """What would be carried is said; no engine has an image or a container more, or less."""
    node = desk.cluster.node(3)
    node.must(f"docker rmi {image(node)}")
    before = [has(node) for node in desk.cluster.nodes]
    said = desk.json("provision", str(desk.cluster.inventory), "--dry-run")
    assert [(action["kind"], action["node"]) for action in said["actions"]] == [("carry", "vs004")]
    assert [has(node) for node in desk.cluster.nodes] == before
    done = desk.json("provision", str(desk.cluster.inventory))
    assert [(action["kind"], action["node"]) for action in done["actions"]] == [("carry", "vs004")]


def test_verbose_shows_the_commands_that_the_debug_log_holds(desk: Desk) -> None:
    """-v says on standard error what is run where; the log in the state folder holds it too."""
    done = desk.must("sweep", desk.playbook("quick", QUICK), *desk.on(), "-v")
    log = (desk.state / "debug.log").read_text()
    for words in ("docker system dial-stdio", "vs002"):
        assert words in done.stderr
        assert words in log
    quiet = desk.run("status")
    assert "docker system" not in quiet.stderr


def test_a_sweep_wants_what_was_never_prepared(desk: Desk) -> None:
    """Another image than provisioning knows is exit 5 before anything starts, with what to do."""
    text = QUICK.replace("ngc-pytorch-20.03", "mine")
    folder = desk.folder / "images" / "mine"
    folder.mkdir()
    recipe = (desk.folder / "images/ngc-pytorch-20.03/image.yaml").read_text()
    (folder / "image.yaml").write_text(recipe.replace("ngc-pytorch-20.03", "mine", 1))
    (folder / "Dockerfile").write_text("ARG BASE\nFROM $BASE\n")
    done = desk.must("sweep", desk.playbook("other", text), *desk.on(), code=5)
    assert "ERROR IMAGE-NOT-PROVISIONED" in done.stderr
    assert "dlperf-orch provision" in done.stderr
    assert not desk.sweeps()


def test_an_edited_inventory_is_provisioned_again(desk: Desk) -> None:
    """What was prepared for another description of the nodes does not count: exit 5."""
    edited = desk.inventory(**{"shm_size: 1g": "shm_size: 512m"})
    name = desk.playbook("quick", QUICK)
    done = desk.must("sweep", name, "--inventory", str(edited), code=5)
    assert "ERROR IMAGE-NOT-PROVISIONED" in done.stderr
    assert "was edited after it was provisioned. Fix: dlperf-orch provision " in done.stderr
    assert desk.json("provision", str(edited))["actions"] == []
    desk.must("sweep", name)


def test_host_keys_are_trusted_by_people(desk: Desk) -> None:
    """Unknown is refused with the fingerprint, --fingerprint adds it, another key is refused."""
    known = desk.folder / "known_hosts"
    text = desk.cluster.inventory.read_text()
    pins = [
        line.rpartition("host_key: '")[2][:-2] for line in text.splitlines() if "SHA256" in line
    ]
    changes = {f", host_key: '{pin}'": "" for pin in pins}
    changes[f"{desk.cluster.folder}/known_hosts"] = str(known)
    inventory = str(desk.inventory(**changes))
    refused = desk.must("provision", inventory, "--dry-run", code=4)
    for index, pin in enumerate(pins):
        line = next(line for line in refused.stderr.splitlines() if f"node=vs00{index + 1}" in line)
        assert "ERROR SSH-HOSTKEY-UNKNOWN" in line
        assert pin in line
    vouched = [word for pin in pins for word in ("--fingerprint", pin)]
    said = desk.json("trust", inventory, *vouched)
    assert [key["state"] for key in said["keys"]] == ["trusted"] * 4
    desk.must("provision", inventory, "--dry-run")
    swap_keys(known)
    for words in (("provision", inventory, "--dry-run"), ("trust", inventory, *vouched)):
        refused = desk.must(*words, code=4)
        assert "ERROR SSH-HOSTKEY-CHANGED node=vs001" in refused.stderr


def swap_keys(known_hosts: Path) -> None:
    """Give the first two machines each other's key."""
    first, second, *others = [line.split() for line in known_hosts.read_text().splitlines()]
    first[2], second[2] = second[2], first[2]
    known_hosts.write_text("".join(" ".join(line) + "\n" for line in (first, second, *others)))


def test_a_hangup_is_a_signal_like_others(desk: Desk) -> None:
    """A terminal that is closed ends the gang in good order, and nothing is left."""
    process = desk.begun()
    began = time.monotonic()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    assert time.monotonic() - began < 15
    assert json.loads(desk.run("status", "--json").stdout)["trials"] == {TRIAL: "interrupted"}
    assert not desk.left()


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
