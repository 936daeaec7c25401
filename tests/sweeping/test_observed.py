"""The state of a machine during a trial is kept with the trial's log, and judged with --strict."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import Place
from tests.sweeping.kept import outcome

pytestmark = pytest.mark.cluster

LONG = "method: {repeats: 1, iterations: 41, window: [5, 38], time_limit_s: 120, stall_limit_s: 60}"
MACHINE = ("THROTTLED", "ALIEN-PROCESS", "CPU-LOADED")


@contextmanager
def loaded() -> Iterator[None]:
    """Load every processor of this machine within the block."""
    words = ("sh", "-c", "while :; do :; done")
    busy = [subprocess.Popen(words) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_the_state_of_this_machine_is_beside_its_number(place: Place) -> None:
    """A loaded CPU is reported; with --strict the trial does not count, and is measured again.

    Moments are those of the window, found by the log's clock; their file is hashed and kept.
    """
    place.rewrite(method=LONG, params="params: {step_s: 0.2}")
    with loaded():
        (case,) = place.json("sweep", "toy", "--case", "1x1", "--strict", code=3)["cases"]
    (trial,) = case["trials"]
    assert trial["state"] == "invalid"
    assert "CPU-LOADED" in {problem["code"] for problem in trial["problems"]}
    (case,) = place.json("sweep", "toy", "--case", "1x1")["cases"]
    (trial,) = case["trials"]
    (machine,) = trial["machines"]
    assert (trial["attempt"], machine["node"], machine["span"]) == (2, "left", "window")
    assert machine["moments"] >= 3
    assert machine["seconds"] > 6.5
    assert machine["others_cpus"] is not None
    assert (machine["power_w"], trial["energy_j"], case["energy_source"]) == (None, None, None)
    kept = outcome(place, trial["log"].removeprefix("logs/"))
    assert {mark["code"] for mark in kept["marks"]} <= set(MACHINE)
    (state,) = place.sweep().glob("attempts/*/a2/r0.state")
    assert kept["observed"] == {"r0.state": hashlib.sha256(state.read_bytes()).hexdigest()}
    assert "## State of the machines" in (place.sweep() / "report.md").read_text()
    state.write_bytes(state.read_bytes().replace(b"host", b"Host", 1))
    (case,) = place.json("collect")["cases"]
    assert [mark["code"] for mark in case["trials"][0]["marks"]] == ["STATE-CHANGED"]
    assert case["trials"][0]["machines"] == []
