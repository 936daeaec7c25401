"""Gangs that fail, stall, run too long or print too much: each ends, and its outcome says why."""

import json
import os
import time

import pytest

from tests.conftest import Place
from tests.processes import wait_for
from tests.sweeping.kept import FLOOD, outcome, running

pytestmark = pytest.mark.cluster
ONE, TWO = ("1x1", "1n1g/toy_b4_fp32_1.log"), ("2x2", "2n2g/toy_b4_fp32_1.log")
LIMITED = "method: {{repeats: 1, iterations: 11, window: [2, 8], {}: 1}}"


@pytest.mark.parametrize(
    ("behaviour", "limit", "case", "ended", "code", "words"),
    [
        ("fails", "", TWO, ("failed", 1), "PROGRAM-FAILED", "this rank fails on purpose"),
        ("killed", "", ONE, ("infra-lost", 3), "KILLED", ""),
        ("short", "", ONE, ("invalid", 1), "TRUNCATED", ""),
        ("hangs", "stall_limit_s", TWO, ("infra-lost", 2), "STALLED", "method.stall_limit_s"),
        ("hangs", "time_limit_s", TWO, ("infra-lost", 2), "DEADLINE", "method.time_limit_s"),
    ],
)
def test_a_gang_that_does_not_end_well_ends_as_a_whole_and_says_why(
    place: Place,
    behaviour: str,
    limit: str,
    case: tuple[str, str],
    ended: tuple[str, int],
    code: str,
    words: str,
) -> None:
    """A failed rank ends its peers; a loss that may pass is tried again; none gives a number."""
    method = {"method": LIMITED.format(limit)} if limit else {}
    place.rewrite(params=f"params: {{behaviour: {behaviour}}}", **method)
    placement, log = case
    began = time.monotonic()
    done = place.must("sweep", "toy", "--case", placement, "--max-fail", "1", "--json", code=3)
    assert time.monotonic() - began < 60
    found = outcome(place, log)
    assert (found["state"], found["attempt"]) == ended
    assert code in {problem["code"] for problem in found["problems"]}
    assert words in str(found["problems"])
    assert json.loads(done.stdout)["cases"][0]["median"] is None
    assert "1 trial without a valid outcome; no further one was started (--max-fail 1)" in (
        done.stderr
    )
    assert {event["trial"] for event in place.events("intent")} == {found["trial"]}
    assert place.pids() == []


def test_a_container_that_lost_its_gpus_is_tried_again(place: Place) -> None:
    """The program is not to blame: a new attempt has the GPUs again, and its number counts."""
    place.rewrite(params="params: {behaviour: detached}")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    said = [(event["state"], event["code"]) for event in place.events("outcome")]
    assert said == [("infra-lost", "GPU-DETACHED"), ("valid", "")]


def test_a_supervisor_that_cannot_be_identified_leaves_nothing_at_its_gate(place: Place) -> None:
    """Its start time is missing: START quotes the pid file, and the gang ends."""
    stubs = place.folder / "stubs"
    stubs.mkdir()
    without = """/bin/sed -i 's/"[$][$] [$]start /"$$ /' "$1" """
    stub = f'#!/bin/sh\ncase $1 in */supervise.sh) {without};; esac\nexec /bin/sh "$@"\n'
    (stubs / "sh").write_text(stub)
    (stubs / "sh").chmod(0o755)
    path = f"{stubs}:{os.environ['PATH']}"
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", code=3, PATH=path)
    assert place.pids() == []
    found = outcome(place, ONE[1])
    assert found["state"] == "infra-lost"
    assert "r0.pid: " in str(found["problems"])
    assert "needed pid, start time and boot id" in str(found["problems"])


def test_the_time_limit_is_kept_without_the_controller(place: Place) -> None:
    """A supervisor ends its program and records how, though no controller asks for it."""
    method = "method: {repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 3}"
    place.rewrite(params="params: {behaviour: hangs}", method=method)
    process = place.start("sweep", "toy", "--case", "2x2")
    wait_for(lambda: running(place, 1), "both tasks run")
    process.kill()
    process.wait()
    wait_for(lambda: not place.pids(), "the supervisors have ended everything", 20)
    ends = [path.read_text() for path in (place.files or place.state).rglob("r?.exit")]
    assert [text.split()[1] for text in ends] == ["deadline", "deadline"]


@pytest.mark.parametrize("left", [3 << 20, 1 << 40], ids=["ended", "still printing"])
def test_a_program_that_floods_its_log_has_one_attempt_and_a_cut_log(
    place: Place, left: int
) -> None:
    """The log is cut at the inventory's max_log_size."""
    with open(place.folder / "inventory/two.yaml", "a") as file:
        file.write("max_log_size: 1m\n")
    (place.folder / "images/toy/program.py").write_text(FLOOD.format(left=left))
    done = place.must("sweep", "toy", "--repeats", "1", "--case", "2x2", code=3)
    assert "at most 1 MiB of each task by max_log_size" in done.stderr + done.stdout
    kept = outcome(place, TWO[1])
    assert (kept["state"], kept["attempt"]) == ("failed", 1)
    assert "'LOG-TOO-LARGE'" in str(kept["problems"])
    (folder,) = place.sweep().glob("attempts/*/a*")
    logs = [folder / f"r{rank}.log" for rank in (0, 1)]
    assert max(log.stat().st_size for log in logs) == 1 << 20
    # A rank that is ended with the first may not have come so far.
    assert all(b"DLL begins\nx".startswith(log.read_bytes()[:12]) for log in logs)
