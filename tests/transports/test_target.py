"""Where a node's sshd is, and the machine in between."""

import pytest

from orchestrator.model.node import Node
from orchestrator.transports.ssh import find_jump_host


@pytest.mark.parametrize(
    ("jump", "gate"),
    [
        ("gate", ("gate", "gate", "root", 22)),
        ("u@gate:23", ("gate:23", "gate", "u", 23)),
        ("u@fd00::9", ("fd00::9", "fd00::9", "u", 22)),
        ("[fd00::9]:23", ("[fd00::9]:23", "fd00::9", "root", 23)),
    ],
)
def test_a_jump_host_is_a_target_of_its_own(jump: str, gate: tuple[str, str, str, int]) -> None:
    """With the node's user unless it has one; an IPv6 address is not cut at a colon."""
    found = find_jump_host(Node(name="n1", address="10.0.0.1", jump=jump, folder="/tmp"))
    assert found is not None
    assert (found.name, found.address, found.user, found.port) == gate
