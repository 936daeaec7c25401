"""What a node says of its hardware's health, and what it leaves out."""

import subprocess

import pytest

from orchestrator import errors
from orchestrator.model.health import HcaHealth
from orchestrator.probes import health
from tests import SAMPLES

FOLDER = SAMPLES / "health"


def test_the_doctored_answer_is_read_whole() -> None:
    """Ages of Xid errors are counted from the node's own uptime."""
    facts = health.parse((FOLDER / "node.txt").read_text())
    assert facts.governors == {"performance": 2, "powersave": 62}
    assert facts.swap_used_mib == 2047
    assert facts.xids is not None
    assert [(xid.number, xid.bus_id) for xid in facts.xids] == [
        (79, "0000:3b:00"),
        (119, "0002:00:00"),
        (13, "0000:af:00"),
    ]
    assert facts.xids[1].age_s == pytest.approx(3599.667785)
    words = (FOLDER / "azure_xid_119.txt").read_text().partition("] ")[2].strip()
    assert facts.xids[1].words == words
    counters = {
        "symbol_error": 3,
        "link_error_recovery": 0,
        "link_downed": 12,
        "port_rcv_errors": 0,
    }
    assert facts.hcas == (
        HcaHealth("mlx5_0", 8, 16, 16.0, 16.0, counters),
        HcaHealth("mlx5_9", None, None, None, None, {}),
    )


def test_what_cannot_be_read_is_not_known() -> None:
    """A kernel's log that the user may not read is no empty one."""
    facts = health.parse(
        "uptime 5.00\ngovernor x\nSwapTotal much\nhca mlx5_0\nkernel words\nelse\n"
    )
    assert (facts.governors, facts.swap_used_mib, facts.xids, facts.hcas) == ({}, None, None, ())
    assert health.parse("uptime 5.00\nkernel_log\nkernel words\n").xids == ()


def test_an_answer_without_uptime_is_none() -> None:
    """Then no age of any error is known."""
    with pytest.raises(errors.LogError, match="how long it is up") as raised:
        health.parse("governor performance 2\n")
    assert raised.value.code == "HEALTH-FACTS"


def test_the_script_runs_on_this_machine() -> None:
    """Whatever this kernel has; with sudo, which may not be there, it says no less."""
    for sudo in (False, True):
        probe = health.probe(sudo=sudo)
        done = subprocess.run(probe.argv, capture_output=True, text=True, check=True, timeout=60)
        facts = probe.parse(done.stdout)
        assert facts.swap_used_mib is not None
        assert done.stderr == ""
