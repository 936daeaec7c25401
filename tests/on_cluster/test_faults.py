"""What breaks while a gang trains on the virtual cluster, and what the command makes of it."""

import signal
import time

import pytest

from tests.commands import ended, told
from tests.people import TRIAL, Desk
from tests.processes import wait_for

pytestmark = pytest.mark.cluster


def has_ended(desk: Desk, node_rank: int) -> bool:
    """Whether a task's supervisor has written its last word, or all of it is gone."""
    return all(log.with_suffix(".end").exists() for log in desk.raw_logs(node_rank))


def test_a_rank_that_dies_ends_the_gang_and_is_shown(desk: Desk) -> None:
    """The other node waits for ever for its peer: it is ended, and the dead rank's words kept."""
    desk.cluster.switch(die={"rank": 1, "iteration": 10})
    desk.again(code=3)
    outcome = desk.outcomes()[TRIAL]
    assert (outcome["state"], outcome["attempt"]) == ("failed", 1)
    (problem,) = outcome["problems"]
    assert problem["code"] == "PROGRAM-FAILED"
    assert "node vs002, node_rank 1: exit status 1; its last lines:" in problem["message"]
    assert "NCCL INFO NET/IB" in problem["message"]
    assert {end["node"]: end["why"] for end in outcome["tasks"]}["vs001"] == "stopped"
    assert not desk.left()


def test_a_container_killed_from_outside_is_tried_again(desk: Desk) -> None:
    """`docker kill` on a node that is not the leader is told as what it is, where it was."""
    process = desk.begun()
    desk.cluster.node(1).must(f"docker kill {desk.container(1)}")
    wait_for(lambda: has_ended(desk, 0), "the gang has ended on the other node", 15)
    told(process)
    assert desk.states() == [("infra-lost", "KILLED"), ("valid", "")]
    words = "node vs002, node_rank 1: its container was killed from outside"
    assert desk.said("outcome")[0]["message"] == words
    lost = (desk.sweeps()[-1] / "attempts" / TRIAL / "a1" / "r1.log").read_text()
    assert "vs002:" in lost
    assert desk.run("logs", TRIAL, "--attempt", "1", "--rank", "1").stdout == lost
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
    assert "`dlperf-orch stop` tries again, and so does the same command" in said
    desk.again()
    assert desk.states()[-1] == ("valid", "")
    assert desk.outcomes()[TRIAL]["attempt"] == 2
    assert not desk.left()


def test_a_killed_controller_is_followed_by_the_next(desk: Desk) -> None:
    """The gang goes on without it; the next adopts it: one attempt, one container a rank."""
    begin = int(time.time()) - 1
    process = desk.begun(iteration_s=0.1)
    process.kill()
    ended(process)
    assert "adopted from an earlier run" in desk.again().stderr
    assert desk.states() == [("valid", "")]
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
    told(process, 130, limit_s=20)
    assert desk.states() == [("interrupted", "INTERRUPTED")]
    assert not desk.left()
    desk.again()
    assert desk.states()[-1] == ("valid", "")


def test_a_node_that_reboots_is_not_the_programs_fault(desk: Desk) -> None:
    """A new boot id tells it; the trial is run again by the same command."""
    process = desk.begun()
    node = desk.cluster.node(1)
    node.power_off()
    node.power_on()
    told(process)
    assert desk.states() == [("infra-lost", "REBOOTED"), ("valid", "")]
    assert "node vs002, node_rank 1" in desk.said("outcome")[0]["message"]
    assert not desk.left()


def test_a_number_over_sockets_is_not_counted(desk: Desk) -> None:
    """The case asks for InfiniBand."""
    desk.cluster.switch(transport="sockets")
    desk.again(code=3)
    assert desk.states() == [("invalid", "TRANSPORT")]
    assert not desk.left()
