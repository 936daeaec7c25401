"""compare --interleave: two playbooks take turns, trial by trial, and go on after a kill."""

import json
import os
import shutil
import signal

import pytest

from tests.conftest import Place
from tests.people import events
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
PLAYBOOK = """\
workload: toy
image: toy
device: cpu
method: {{repeats: 2, iterations: 11, window: [2, 10]}}
grid: {{placement: [1x1, 2x1], precision: [fp32], micro_batch_size: [4]}}
params: {{step_s: {step_s}}}
"""
TURNS = ("compare", "--interleave", "before", "after", "--inventory", "two")


def lay(place: Place) -> None:
    """Write two playbooks; the second has slower steps."""
    for name, step_s in (("before", 0.01), ("after", 0.03)):
        (place.folder / "playbooks" / f"{name}.yaml").write_text(PLAYBOOK.format(step_s=step_s))
    place.must("provision", "two")


def begun(place: Place) -> list[tuple[str, str]]:
    """Return playbook and trial of each attempt, in the order in which they began."""
    begun = [
        (event["at"], path.parent.name.partition("-")[0], event["trial"])
        for path in place.state.glob("sweeps/*/events.jsonl")
        for event in events(path.parent, "intent")
    ]
    return [(side, trial) for _, side, trial in sorted(begun)]


def test_turns_change_who_begins_and_survive_a_kill(place: Place) -> None:
    """A B for each case, then B A; what was measured before the kill is not measured again."""
    lay(place)
    process = place.start(*TURNS)
    wait_for(lambda: len(begun(place)) == 4, "four turns have begun")
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = place.must(*TURNS, "--json")
    order = list(dict.fromkeys(begun(place)))
    one, two = "1n1g-toy_b4_fp32", "2n1g-toy_b4_fp32"
    assert order == [
        *(("before", f"{one}_1"), ("after", f"{one}_1")),
        *(("before", f"{two}_1"), ("after", f"{two}_1")),
        *(("after", f"{one}_2"), ("before", f"{one}_2")),
        *(("after", f"{two}_2"), ("before", f"{two}_2")),
    ]
    document = json.loads(done.stdout.splitlines()[-1] if done.stdout[0] != "{" else done.stdout)
    assert [len(case["first"]["throughputs"]) for case in document["cases"]] == [2, 2]
    assert {case["verdict"] for case in document["cases"]} == {"unknown"}  # 2 and 2 tell nothing
    assert len(list(place.state.glob("sweeps/*/sweep.json"))) == 2
    assert not list(place.state.glob("turns/*"))
    assert place.pids() == []


def test_turns_observe_their_nodes_once(place: Place) -> None:
    """Eight turns on two nodes: connected, locked and looked at as for one sweep."""
    lay(place)
    shim, looked = place.folder / "bin" / "mktemp", place.folder / "looked"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho >>"{looked}"\nexec {shutil.which("mktemp")} "$@"\n')
    shim.chmod(0o755)
    done = place.must(*TURNS, PATH=f"{shim.parent}:{os.environ['PATH']}")
    assert "turn 8 of 8" in done.stderr
    assert looked.read_text().count("\n") == 2
    assert done.stderr.count("warnings as before") <= 1


def test_one_playbook_takes_turns_in_two_images(place: Place) -> None:
    """PLAYBOOK=IMAGE: the same cases by another image's program, which is told as what differs."""
    lay(place)
    images = place.folder / "images"
    shutil.copytree(images / "toy", images / "next")
    definition, program = images / "next" / "image.yaml", images / "next" / "program.py"
    definition.write_text(definition.read_text().replace("name: toy", "name: next"))
    program.write_text(
        program.read_text().replace("def meet", 'print("the next one")\n\n\ndef meet')
    )
    words = ("compare", "--interleave", "before", "before=next", "--inventory", "two")
    document = place.json(*words, "--repeats", "1")
    assert [len(case["first"]["throughputs"]) for case in document["cases"]] == [1, 1]
    assert ("image", "toy", "next") in [
        (found["what"], found["first"], found["second"]) for found in document["differences"]
    ]
    for path in place.state.glob("sweeps/*/sweep.json"):
        image = json.loads(path.read_text())["plan"]["image"]
        logs = [log.read_text() for log in path.parent.glob("logs/*/*.log")]
        assert len(logs) == 2
        assert {"the next one" in log for log in logs} == {image == "next"}


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("placement: [1x1, 2x1]", "placement: [1x1]", "one side alone has 2n1g-toy_b4_fp32"),
        ("repeats: 2,", "repeats: 2, canary: true,", "after has a canary"),
        ("workload: toy", "inventory: three\nworkload: toy", "two inventories"),
        ("", "", "both sides are before"),
    ],
)
def test_what_cannot_take_turns_is_refused(place: Place, old: str, new: str, cause: str) -> None:
    """Before a gang starts."""
    for name in ("before", "after"):
        text = PLAYBOOK.format(step_s=0.01)
        text = f"inventory: two\n{text}" if name == "before" else text.replace(old, new)
        (place.folder / "playbooks" / f"{name}.yaml").write_text(text)
    two = place.folder / "inventory" / "two.yaml"
    two.with_stem("three").write_text(two.read_text().replace("name: two", "name: three"))
    place.must("provision", "three")
    place.must("provision", "two")
    sides = ("before", "before" if "both" in cause else "after")
    refused = place.must("compare", "--interleave", *sides, code=2)
    assert "NO-TURNS" in refused.stderr
    assert cause in refused.stderr
    assert not list(place.state.glob("sweeps/*"))


def test_a_pair_of_an_edited_playbook_begins_anew(place: Place) -> None:
    """Trials measured before the edit stay in sweeps of their own."""
    lay(place)
    process = place.start(*TURNS)
    wait_for(lambda: len(begun(place)) == 2, "two turns have begun")
    process.send_signal(signal.SIGTERM)
    process.wait()
    for path in (place.folder / "playbooks").glob("*.yaml"):
        path.write_text(path.read_text().replace("iterations: 11", "iterations: 12"))
    document = place.json(*TURNS, "--repeats", "1")
    assert [len(case["first"]["throughputs"]) for case in document["cases"]] == [1, 1]
    assert len(list(place.state.glob("sweeps/*/sweep.json"))) == 4
