"""Tasks run in UTC, so that what their logs print is the clock of their nodes."""

import json
from datetime import UTC, datetime

import pytest

from tests.conftest import Place

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "EST5EDT", ""])
def test_a_log_has_the_clock_of_its_node_whatever_zone_it_is_in(place: Place, zone: str) -> None:
    """The toy prints local time; its window is placed in what was observed of its node."""
    place.rewrite(params="params: {step_s: 0.15}")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", TZ=zone)
    folder = next((place.sweep() / "attempts").glob("1n1g*/a1"))
    (task,) = json.loads((folder / "attempt.json").read_text())["tasks"]
    assert task["env"]["TZ"] == "UTC0"
    (step, *_) = [line for line in (folder / "r0.log").read_text().splitlines() if "DLL" in line]
    printed = datetime.fromisoformat(step[4:30]).replace(tzinfo=UTC).timestamp()
    assert 0 <= printed - float((folder / "r0.go").read_text()) < 60
    (trial,) = json.loads((place.sweep() / "results.json").read_text())["cases"][0]["trials"]
    assert [state["span"] for state in trial["machines"]] == ["window"]
    assert "NOT-PLACED" not in str(trial["marks"])
