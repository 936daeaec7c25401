"""The same hardware under other names and addresses: the same sweep; never another machine."""

import json
from pathlib import Path

import pytest

from tests.conftest import Place
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SLOW = "params: {step_s: 0.3}"


def inventory(place: Place) -> Path:
    return place.folder / "inventory" / "two.yaml"


def killed(place: Place) -> None:
    """A sweep whose controller is killed while a gang of both nodes runs."""
    place.rewrite(params=SLOW)
    process = place.start("sweep", "toy", "--case", "2x2", "--repeats", "1")
    wait_for(lambda: list(place.state.glob("sweeps/*/attempts/*/*/r1.go")), "both tasks run")
    process.kill()
    process.wait()


def edit(place: Place, old: str, new: str) -> None:
    path = inventory(place)
    path.write_text(path.read_text().replace(old, new))


def test_a_sweep_goes_on_under_other_names_addresses_and_order(place: Place) -> None:
    """What was measured counts; the next trials run on the nodes as they are called now."""
    place.must("sweep", "toy", "--repeats", "1")
    before = place.sweep()
    inventory(place).write_text(
        "name: two\ndefaults: {transport: local, runtime: process}\nnodes:\n"
        "  - {name: east, address: 127.0.0.7}\n  - {name: west, address: 127.0.0.5}\n"
    )
    again = place.must("sweep", "toy", "--repeats", "2", "--json")
    assert place.sweep() == before
    cases = {case["case"]["placement"]: case for case in json.loads(again.stdout)["cases"]}
    assert [trial["nodes"] for trial in cases["2x2"]["trials"]] == [
        ["left", "right"],
        ["east", "west"],
    ]
    assert [trial["attempt"] for trial in cases["2x2"]["trials"]] == [1, 1]
    assert cases["2x2"]["trials_valid"] == 2
    assert [*json.loads(again.stdout)["environment"]] == ["left", "right", "east", "west"]
    assert "NODE-SETS" in [mark["code"] for mark in cases["2x2"]["marks"]]


def test_leaving_a_node_out_goes_on_with_the_same_sweep(place: Place) -> None:
    """The cases that need it are skipped, and run when it is back."""
    alone = place.must("sweep", "toy", "--repeats", "1", "--nodes", "!left")
    assert "skipped, since they need more than 1 node: 2x2" in alone.stderr
    cases = place.json("sweep", "toy", "--repeats", "1")["cases"]
    trials = [trial for case in cases for trial in case["trials"]]
    assert [trial["nodes"] for trial in trials] == [["right"], ["left", "right"]]
    assert len(list(place.state.glob("sweeps/*"))) == 1


def test_a_name_that_means_another_machine_now_is_an_error(place: Place) -> None:
    """What an earlier run left is looked for where it was started, and stopped there."""
    killed(place)
    edit(place, "127.0.0.3", "127.0.0.9")
    refused = place.must("sweep", "toy", "--case", "2x2", "--repeats", "1", code=5)
    assert "ERROR NODE-MOVED node=right" in refused.stderr
    assert "at 127.0.0.3; the inventory gives that node the address 127.0.0.9" in refused.stderr
    place.must("stop")
    assert place.pids() == []
    place.must("sweep", "toy", "--case", "2x2", "--repeats", "1")
    (attempt,) = place.state.glob("sweeps/*/attempts/*/a2/attempt.json")
    assert [seat["address"] for seat in json.loads(attempt.read_text())["seats"]] == [
        "127.0.0.1",
        "127.0.0.9",
    ]


def test_what_may_run_on_a_node_that_is_gone_is_never_taken_for_ended(place: Place) -> None:
    """Its other tasks are ended; the attempt stays open until the node can be asked again."""
    killed(place)
    text = inventory(place).read_text()
    edit(place, "name: right", "name: new")
    done = place.must("sweep", "toy", "--case", "2x2", "--repeats", "1")
    assert "a1 was ended, except on right, left out this time" in done.stderr
    status = json.loads(place.run("status", "--json").stdout)
    assert status["trials"] == {"2n2g-toy_b4_fp32_1": "open"}
    inventory(place).write_text(text)
    place.must("sweep", "toy", "--case", "2x2", "--repeats", "1")
    status = json.loads(place.run("status", "--json").stdout)
    assert status["trials"] == {"2n2g-toy_b4_fp32_1": "valid"}
    assert place.pids() == []
