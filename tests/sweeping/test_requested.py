"""What was requested of a sweep: `sweep`, `collect`, `status` and the live view agree on it."""

import json
import os
import re
import signal
from collections import Counter

import pytest

from tests.conftest import Place
from tests.processes import wait_for

pytestmark = pytest.mark.cluster


def collected(place: Place) -> tuple[int, dict[str, int], str]:
    """Return the exit code of `collect`, its trials by placement, and its messages."""
    done = place.run("collect", "--json")
    cases = json.loads(done.stdout)["cases"]
    assert {case["trials_planned"] - len(case["trials"]) for case in cases} == {0}
    counts = {case["case"]["placement"]: case["trials_planned"] for case in cases}
    return done.returncode, counts, done.stderr


def states(place: Place) -> dict[str, int]:
    """Return how many trials `status` counts, by state."""
    document = json.loads(place.run("status", "--json").stdout)
    return dict(Counter(document["trials"].values()))


def test_what_was_requested_grows_and_never_shrinks(place: Place) -> None:
    """Cases and repeats of later commands are added; a narrower command loses none."""
    done = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert re.findall(r"\[(\d)/(\d)\].*started", done.stderr) == [("1", "1")]
    assert states(place) == {"valid": 1}
    code, counts, said = collected(place)
    assert (code, counts) == (0, {"1x1": 1})
    assert "have not been run" not in said
    assert "INCOMPLETE" not in (place.sweep() / "report.md").read_text()
    place.must("sweep", "toy", "--case", "2x2")
    assert (states(place), collected(place)[:2]) == ({"valid": 3}, (0, {"1x1": 1, "2x2": 2}))
    grown = place.must("sweep", "toy", "--repeats", "3")
    assert "6 trials, 3 valid already, 3 to run" in grown.stderr
    assert (states(place), collected(place)[:2]) == ({"valid": 6}, (0, {"1x1": 3, "2x2": 3}))
    narrow = place.must("sweep", "toy", "--repeats", "2", "--json")
    assert "4 of 6 trials, 4 valid already, nothing left" in narrow.stderr
    assert [case["trials_planned"] for case in json.loads(narrow.stdout)["cases"]] == [3, 3]
    assert len(list(place.state.glob("sweeps/*/sweep.json"))) == 1


def test_what_was_requested_outlives_an_interruption(place: Place) -> None:
    """After Ctrl-C, and after a narrower command, all commands count the 4 requested trials."""
    place.rewrite(params="params: {step_s: 0.1}")
    process = place.start("sweep", "toy")
    wait_for(lambda: list(place.state.glob("sweeps/*/attempts/*/*/r0.go")), "a task runs")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert sum(states(place).values()) == 4
    code, counts, said = collected(place)
    assert (code, counts) == (3, {"1x1": 2, "2x2": 2})
    assert "4 planned trials have not been run" in said
    part = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert "1 of 4 trials, 0 valid already, 1 to run" in part.stderr
    assert (states(place)["valid"], collected(place)[0]) == (1, 3)


def test_a_request_for_many_trials_is_read_at_once(place: Place) -> None:
    """20,000 trials take seconds until the first mistake of the command is told, not minutes."""
    batches = [*range(1, 11)]
    place.rewrite(micro_batch_size=f"  micro_batch_size: {batches}")
    before = os.times().children_user
    done = place.run("sweep", "toy", "--repeats", "1000", "--requeue")
    assert "--requeue is of jobs of Slurm's" in done.stderr
    assert os.times().children_user - before < 10
