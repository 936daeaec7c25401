"""What breaks while a gang trains on the virtual cluster, and what the command makes of it."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster import Node
from tests.conftest import wait_for
from tests.virtual import TRIAL, Desk

pytestmark = pytest.mark.cluster

FREE = "flock -n /var/tmp/dlperf-root/lock true"
SSHD_SESSIONS = "ps -o pid= --ppid $(cat /run/testbed/sshd.pid)"


def ended(process: "subprocess.Popen[str]", limit_s: float = 60.0) -> tuple[int, str]:
    """Exit code of a command and what it said on standard error."""
    _, said = process.communicate(timeout=limit_s)
    return process.returncode, said


def states(desk: Desk) -> list[tuple[str, str]]:
    """State and code of every attempt that has an outcome, in order."""
    return [(each["state"], each["code"]) for each in desk.said("outcome")]


def has_ended(desk: Desk, node_rank: int) -> bool:
    """Whether a task's supervisor has written its last word, or all of it is gone."""
    return all(log.with_suffix(".end").exists() for log in desk.raw_logs(node_rank))


@contextmanager
def rule(node: Node, words: str) -> Iterator[None]:
    """A rule of the node's firewall, within the block."""
    node.must(f"iptables -w -I {words}")
    try:
        yield
    finally:
        node.must(f"iptables -w -D {words}")


def test_a_rank_that_dies_ends_the_gang_and_is_shown(desk: Desk) -> None:
    """The other node waits for ever for its peer: it is ended, and the dead rank's words kept."""
    desk.cluster.switch(die={"rank": 1, "iteration": 10})
    began = time.monotonic()
    desk.again(code=3)
    assert time.monotonic() - began < 25
    outcome = desk.outcomes()[TRIAL]
    assert (outcome["state"], outcome["attempt"]) == ("failed", 1)
    (problem,) = outcome["problems"]
    assert problem["code"] == "PROGRAM-FAILED"
    assert "node vs002, node_rank 1: exit status 1; its last lines:" in problem["message"]
    assert "NCCL INFO NET/IB" in problem["message"]
    assert {end["node"]: end["why"] for end in outcome["tasks"]}["vs001"] == "stopped"
    assert not desk.left()


def test_a_program_killed_from_outside_is_tried_again(desk: Desk) -> None:
    """Nobody blames a program that got SIGKILL: the gang ends within 15 s, attempt 2 counts."""
    process = desk.begun()
    node, name = desk.cluster.node(1), desk.container(1)
    node.must(
        f"kill -KILL $(docker top {name} -o pid,args | awk '$2 ~ /^python/ && /multiproc/ {{print $1}}')"
    )
    wait_for(lambda: has_ended(desk, 0), "the gang has ended on the other node", 15)
    code, said = ended(process)
    assert code == 0, said
    assert states(desk) == [("infra-lost", "KILLED"), ("valid", "")]
    assert "node vs002, node_rank 1: exit status 137" in desk.said("outcome")[0]["message"]
    assert not desk.left()


def test_a_container_killed_from_outside_is_tried_again(desk: Desk) -> None:
    """`docker kill` on a node that is not the leader is told as what it is, where it was."""
    process = desk.begun()
    desk.cluster.node(1).must(f"docker kill {desk.container(1)}")
    wait_for(lambda: has_ended(desk, 0), "the gang has ended on the other node", 15)
    code, said = ended(process)
    assert code == 0, said
    assert states(desk) == [("infra-lost", "KILLED"), ("valid", "")]
    words = "node vs002, node_rank 1: its container was killed from outside"
    assert desk.said("outcome")[0]["message"] == words
    assert not desk.left()


def test_a_node_that_is_cut_off_is_named_and_finished_later(desk: Desk) -> None:
    """Within 15 s the gang ends where it can; exit 7 names the rest; the same command finishes."""
    process = desk.begun()
    name, silent = desk.container(1), desk.cluster.node(1)
    silent.cut()
    try:
        wait_for(lambda: has_ended(desk, 0), "the gang has ended on the other node", 15)
        code, said = ended(process)
    finally:
        silent.heal()
    assert code == 7, said
    assert "ERROR LEFTOVER node=vs002" in said
    assert f"{name} on vs002" in said
    assert "Fix: run the same command again" in said
    desk.again()
    assert states(desk)[-1] == ("valid", "")
    assert desk.outcomes()[TRIAL]["attempt"] == 2
    assert not desk.left()


def test_nodes_that_do_not_answer_are_named_all_at_once(desk: Desk) -> None:
    """Two nodes in the dark: exit 4 names both within the connect limit, and nothing starts."""
    dark = desk.cluster.nodes[1:3]
    for node in dark:
        node.cut()
    began = time.monotonic()
    try:
        said = desk.run("provision", str(desk.cluster.inventory))
    finally:
        for node in dark:
            node.heal()
    assert said.returncode == 4, said.stderr
    assert time.monotonic() - began < 20
    for name in ("vs002", "vs003"):
        assert f"ERROR SSH-UNREACHABLE node={name}" in said.stderr


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
    errors = [each for each in said["site"]["findings"] if each["severity"] == "error"]
    found = {(each["code"], each["node"]) for each in errors}
    assert found == {("DOCKER-DOWN", "vs002"), ("DOCKER-HUNG", "vs003")}
    assert list(said["site"]["nodes"]) == ["vs001", "vs002", "vs003", "vs004"]


def test_a_killed_controller_is_followed_by_the_next(desk: Desk) -> None:
    """The gang goes on without it; the next adopts it: one attempt, one container a rank."""
    begin = int(time.time()) - 1
    process = desk.begun(iteration_s=0.1)
    process.kill()
    ended(process)
    assert "adopted from the run before" in desk.again().stderr
    assert states(desk) == [("valid", "")]
    assert len(desk.said("intent")) == 1
    made = f"docker events --since {begin} --until $(date +%s) --filter event=create"
    label = f"label=dlperf.sweep={desk.sweeps()[-1].name}"
    for node in desk.cluster.nodes[:2]:
        assert len(node.must(f"{made} --filter {label}").splitlines()) == 1
    assert not desk.left()


def test_one_interrupt_ends_in_good_order(desk: Desk) -> None:
    """Ctrl-C: exit 130, nothing left on any node, and the same command goes on."""
    process = desk.begun()
    process.send_signal(signal.SIGINT)
    code, said = ended(process, 20)
    assert code == 130, said
    assert states(desk) == [("interrupted", "INTERRUPTED")]
    assert not desk.left()
    desk.again()
    assert states(desk)[-1] == ("valid", "")


def test_two_interrupts_leave_at_once_and_say_what_runs(desk: Desk) -> None:
    """Exit 7 names each container with its node; the next command deals with them."""
    process = desk.begun()
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, said = ended(process, 10)
    assert code == 7, said
    assert all(f"{desk.container(rank)} on vs00{rank + 1}" in said for rank in (0, 1))
    desk.again()
    assert states(desk)[-1] == ("valid", "")
    assert not desk.left()


def test_a_node_that_reboots_is_not_the_programs_fault(desk: Desk) -> None:
    """A new boot id tells it; the trial is run again by the same command."""
    process = desk.begun()
    node = desk.cluster.node(1)
    node.power_off()
    node.power_on()
    code, said = ended(process)
    assert code == 0, said
    assert states(desk) == [("infra-lost", "REBOOTED"), ("valid", "")]
    assert "node vs002, node_rank 1" in desk.said("outcome")[0]["message"]
    assert not desk.left()


def test_a_docker_that_restarts_is_not_the_programs_fault(desk: Desk) -> None:
    """An engine killed and started anew takes its containers along; the trial is run again."""
    process = desk.begun()
    node = desk.cluster.node(1)
    node.signal("dockerd", "KILL")
    node.revive("dockerd")
    code, said = ended(process)
    assert code == 0, said
    assert states(desk) == [("infra-lost", "DOCKER-RESTARTED"), ("valid", "")]
    assert "node vs002, node_rank 1" in desk.said("outcome")[0]["message"]
    assert not desk.left()


def test_connections_that_are_reset_cost_nothing(desk: Desk) -> None:
    """Resets by a firewall, and a killed sshd session: the trial goes on, and counts."""
    process = desk.begun(iteration_s=0.15)
    with rule(desk.cluster.node(1), "OUTPUT -p tcp --sport 22 -j REJECT --reject-with tcp-reset"):
        time.sleep(1.5)
    first = desk.cluster.node(0)
    first.must(f"kill -KILL $({SSHD_SESSIONS})")
    wait_for(lambda: first.sh(FREE).returncode, "the lock of the node is held again", 5)
    code, said = ended(process)
    assert code == 0, said
    assert states(desk) == [("valid", "")]
    assert not desk.left()


def test_an_image_that_is_gone_from_a_node_starts_nothing(desk: Desk) -> None:
    """IMAGE-MISSING names the node and no container is made; provision carries it there again."""
    node = desk.cluster.node(2)
    tag = node.must("docker images --format '{{.Repository}}:{{.Tag}}' 'dlperf/ngc*'").strip()
    node.must(f"docker rmi {tag}")
    try:
        said = desk.again(code=5).stderr
        assert "ERROR IMAGE-MISSING node=vs003" in said
        assert not desk.sweeps()
        assert not desk.left()
    finally:
        done = desk.json("provision", str(desk.cluster.inventory))
    assert [(each["kind"], each["node"]) for each in done["actions"]] == [("carry", "vs003")]


@pytest.mark.parametrize(
    ("transport", "code"), [("sockets", "TRANSPORT"), ("silent", "TRANSPORT-UNPROVEN")]
)
def test_a_number_without_infiniband_is_not_counted(desk: Desk, transport: str, code: str) -> None:
    """The case asks for InfiniBand: sockets, or no word about it, make the trial invalid."""
    desk.cluster.switch(transport=transport)
    desk.again(code=3)
    assert states(desk) == [("invalid", code)]
    assert not desk.left()


def test_a_name_that_is_taken_is_nobodys_to_remove(desk: Desk) -> None:
    """A foreign container with the name of ours: exit 5 NAME-TAKEN, and it runs on."""
    desk.again()
    node, name = desk.cluster.node(1), desk.container(1, TRIAL.replace("amp_1", "amp_2"))
    image = node.must("docker images -q 'dlperf/ngc*'").split()[0]
    foreign = node.must(f"docker run -d --network none --name {name} {image} sleep 600").strip()
    try:
        said = desk.run("sweep", "quick", *desk.on(), "--repeats", "2")
        assert said.returncode == 5, said.stderr
        assert "ERROR NAME-TAKEN node=vs002" in said.stderr
        running = node.must(f"docker inspect -f '{{{{.State.Running}}}}' {foreign}")
        assert running == "true\n"
    finally:
        node.must(f"docker rm -f {foreign}")
    assert states(desk)[-1] == ("infra-lost", "NAME-TAKEN")
    assert not desk.left()


def test_a_port_that_is_blocked_between_two_nodes_is_found(desk: Desk) -> None:
    """SSH is fine and ranks could not meet: exit 5 NET-BLOCKED names who cannot reach whom."""
    block = "INPUT -p tcp --dport 22333 -s 10.11.0.4 -j DROP"
    with rule(desk.cluster.node(0), block):
        said = desk.json("provision", str(desk.cluster.inventory), code=5)
    (found,) = [each for each in said["site"]["findings"] if each["severity"] == "error"]
    assert found["code"] == "NET-BLOCKED"
    assert "vs003" in found["node"] + found["seen"]
    assert "vs001" in found["node"] + found["seen"]


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
    errors = [each for each in said["site"]["findings"] if each["severity"] == "error"]
    found = {(each["code"], each["node"]) for each in errors}
    assert {("GPU-COUNT", "vs003"), ("IB-PORT", "vs004")} <= found
    (data,) = [each for each in errors if each["code"] == "DATA-DIFF"]
    assert "vs002" in data["node"] + data["seen"]


def test_two_controllers_do_not_measure_at_once(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A second one, from a state folder of its own, is refused and told who is there."""
    process = desk.begun()
    other = Desk.made(desk.cluster, tmp_path_factory.mktemp("other"))
    other.adopt(desk)
    said = other.again(code=6).stderr
    assert "ERROR LOCKED node=vs001" in said
    assert f"pid {process.pid}" in said
    code, said = ended(process)
    assert code == 0, said
    assert states(desk) == [("valid", "")]


def test_want_of_memory_is_told_as_such(desk: Desk) -> None:
    """The kernel ends a rank of a container: OOM, by the engine's own word, and no retry."""
    process = desk.begun()
    node, name = desk.cluster.node(1), desk.container(1)
    node.must(f"docker update --memory 96m --memory-swap 96m {name}")
    node.sh(f"docker exec {name} python -c 'bytearray(300 << 20)'")
    code, said = ended(process)
    assert code == 3, said
    assert states(desk) == [("failed", "OOM")]
    assert not desk.left()
