"""Docker dies, hangs or is another on one node of the virtual cluster, at all times of a sweep."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

import pytest

from tests.cluster import Node
from tests.people import Desk
from tests.processes import PATIENCE_S, wait_for

pytestmark = pytest.mark.cluster

OURS = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^DLPERF_TASK=dlp-"
CONTAINERD = "sh /etc/testbed/daemon.sh containerd </dev/null >>/var/log/containerd.log 2>&1 &"


@contextmanager
def faulty(node: Node, word: str, *daemons: str) -> Iterator[None]:
    """The daemons of a node got a signal; afterwards they run again."""
    for daemon in daemons:
        node.signal(daemon, word)
    try:
        yield
    finally:
        if word == "STOP":
            for daemon in daemons:
                node.signal(daemon, "CONT")
        else:
            if "containerd" in daemons:
                node.sh(CONTAINERD)
            node.revive("dockerd")


@contextmanager
def heard(process: "Popen[str]") -> Iterator[list[str]]:
    """The lines that a command prints on standard error, as they come."""
    lines: list[str] = []

    def hear() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)

    hearing = threading.Thread(target=hear)
    hearing.start()
    try:
        yield lines
    finally:
        if process.poll() is None:
            process.kill()
        hearing.join()


@pytest.mark.parametrize(
    ("word", "daemons", "code"),
    [
        ("KILL", ("dockerd",), "DOCKER-DOWN"),
        pytest.param("TERM", ("dockerd",), "DOCKER-DOWN", marks=pytest.mark.long),
        pytest.param("KILL", ("dockerd", "containerd"), "DOCKER-DOWN", marks=pytest.mark.long),
        ("STOP", ("dockerd",), "DOCKER-HUNG"),
        pytest.param("STOP", ("containerd",), "DOCKER-HUNG", marks=pytest.mark.long),
    ],
)
def test_an_engine_that_goes_in_the_middle_is_told_within_15_s(
    desk: Desk, word: str, daemons: tuple[str, ...], code: str
) -> None:
    """The node is not blamed; its task is ended without Docker; the same command goes on later."""
    process = desk.begun(iteration_s=1.0)
    node = desk.cluster.node(1)
    with faulty(node, word, *daemons):
        with heard(process) as lines:
            wait_for(lambda: f"{code} vs002: Docker" in "".join(lines), f"{code} is said", 15)
            process.wait(PATIENCE_S)
        said = "".join(lines)
        assert process.returncode == 5, said
        assert f"ERROR {code} node=vs002" in said
        assert "UNREACHABLE" not in said
        assert not node.sh(OURS).stdout
        assert f"ERROR {code} node=vs002" in desk.again(code=5).stderr  # nothing is started
    assert {outcome["code"] for outcome in desk.said("outcome")} == {code}
    desk.again()
    assert desk.states()[-1] == ("valid", "")
    assert not desk.left()
