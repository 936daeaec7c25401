"""Data sets are counted where the first look has found them, and only there."""

from pathlib import Path

import pytest

from orchestrator.console import Voice
from orchestrator.fleet import Fleet
from orchestrator.model.site import DataState, NodeFacts
from orchestrator.provisioning import last_checks
from orchestrator.transports.local import LocalTransport
from tests.checks.facts import HOST
from tests.model.test_cluster import cluster


@pytest.mark.parametrize("state", ["hung", "missing", "unreadable", "empty"])
def test_what_the_first_look_did_not_find_is_not_counted(state: DataState, tmp_path: Path) -> None:
    """It is told already, and a mount that hangs would hold up all nodes for an hour."""
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "part-0").write_bytes(b"x")
    data = {"good": str(tmp_path / "good"), "bad": str(tmp_path / "bad")}
    here: dict[str, object] = {
        "name": "here",
        "address": "127.0.0.1",
        "transport": "local",
        "data": data,
    }
    here["folder"] = str(tmp_path / "dlperf")
    fleet = Fleet(cluster([here]), {"here": LocalTransport("here")})
    facts = {"here": NodeFacts(HOST, data={"good": "present", "bad": state})}
    findings, digests = last_checks.check_nodes(fleet, Voice(as_json=True), facts, recount=True)
    assert findings == ()
    assert {name: [*held] for name, held in digests.items()} == {"good": ["here"]}
