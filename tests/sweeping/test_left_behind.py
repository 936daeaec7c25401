"""Find and end what sweeps left behind, on nodes left out or moved, or without a state folder."""

import json
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.case import Case
from orchestrator.model.plan import Trial
from orchestrator.state.store import Store
from orchestrator.sweeping import observed_sweep
from orchestrator.verbs import clean
from tests import processes
from tests.conftest import Place
from tests.processes import wait_for
from tests.state.test_store import ENDED, INTENT, RECORD
from tests.sweeping.elsewhere import attempt

WORDS = ("sweep", "toy", "--case", "2x2", "--repeats", "1")
TRIAL = "2n2g-toy_b4_fp32_1"
CASE = Case(nodes=1, gpus_per_node=1, micro_batch_size=4, precision="fp32", device="cpu")


def test_what_is_left_is_listed_by_cluster_and_lock_and_damage_hides_nothing(
    tmp_path: Path,
) -> None:
    """Open attempts of a sweep without a controller; `clean` touches settled sweeps alone."""
    store = Store(tmp_path)
    plan = replace(RECORD.plan, trials=(Trial("t", 1, CASE, "t.log", 0),))
    names = ("settled", "left", "held", "apart", "damaged")
    sweeps = {name: store.new_sweep(replace(RECORD, plan=plan)) for name in names}
    sweeps["apart"].keep_record(replace(sweeps["apart"].record(), cluster="three"))
    for name, sweep in sweeps.items():
        sweep.keep_attempt(attempt(sweep, tmp_path / name), {})
        sweep.append(INTENT)
    sweeps["settled"].append(ENDED)
    (sweeps["damaged"].folder / "events.jsonl").write_text("no event\n")
    token = f"dlp-{sweeps['left'].id}-t-a1-r0 on left"
    with sweeps["held"].lock():
        listed = observed_sweep.list_left(store, "two")
        found = {sweep.id: (len(left), error and error.code) for sweep, left, error in listed}
        assert found == {
            sweeps["settled"].id: (0, None),
            sweeps["left"].id: (1, None),
            sweeps["damaged"].id: (0, "STORE-DAMAGED"),
        }
        every = {sweep.id for sweep, *_ in observed_sweep.list_left(store, None, held=True)}
        assert every == {sweep.id for sweep in sweeps.values()}
        assert observed_sweep.orphaned_tasks(store, "two") == [token]
        settled, why = clean.split(store, RECORD.inventory)
    assert settled == [sweeps["settled"].id]
    assert set(why) == {sweeps["left"].id, sweeps["damaged"].id}
    with pytest.raises(errors.LeftoverError, match=re.escape(token)):
        observed_sweep.refuse_left(store, "two")
    (sweeps["left"].folder / "sweep.json").write_text("{}")  # its cluster is unknown then
    _, why = clean.split(store, RECORD.inventory)
    assert sweeps["left"].id in why


def killed(place: Place, params: str) -> None:
    """Kill the controller of a sweep while a gang of two nodes runs."""
    place.rewrite(params=params)
    process = place.start(*WORDS)
    wait_for(lambda: place.opened(0) and place.opened(1), "both tasks run")
    process.kill()
    process.wait()


def states(place: Place) -> dict[str, str]:
    return dict(json.loads(place.run("status", "--json").stdout)["trials"])


def inventory(place: Place) -> Path:
    return place.folder / "inventory" / "two.yaml"


def begun(place: Place) -> str:
    """Kill the sweep of one trial on two of three nodes; return the second one."""
    path = inventory(place)
    path.write_text(path.read_text() + "  - {name: third, address: 127.0.0.7}\n")
    killed(place, "params: {step_s: 0.3}")
    (bound,) = place.state.rglob("attempt.json")
    return str(json.loads(bound.read_text())["seats"][-1]["node"])


def events(place: Place, kind: str) -> list[tuple[int, str]]:
    """Return attempts and the states in which they ended."""
    return [(event["attempt"], event.get("state", "")) for event in place.events(kind)]


@pytest.mark.cluster
def test_an_attempt_closed_late_takes_nothing_from_the_one_that_counts(place: Place) -> None:
    """Its gang is ended where nodes can be reached; a later attempt is valid, and stays so."""
    last = begun(place)
    without = place.must(*WORDS, "--json", "--nodes", f"!{last}")
    assert f"{TRIAL} a1 was ended, except on {last}, left out" in without.stderr
    assert states(place) == {TRIAL: "open"}
    whole = place.must(*WORDS, "--json")
    assert json.loads(whole.stdout)["cases"] == json.loads(without.stdout)["cases"]
    assert events(place, "intent") == [(1, ""), (2, "")]
    assert events(place, "outcome") == [(2, "valid"), (1, "infra-lost")]
    assert states(place) == {TRIAL: "valid"}
    assert place.pids() == []


@pytest.mark.cluster
def test_stop_ends_what_runs_on_a_node_that_the_inventory_has_no_more(place: Place) -> None:
    """The sweep has the node as long as an attempt on it is open; what counts still does."""
    last = begun(place)
    path = inventory(place)
    lines = [line for line in path.read_text().splitlines() if f"name: {last}," not in line]
    path.write_text("\n".join(lines) + "\n")
    place.must(*WORDS)
    place.must("stop")
    assert events(place, "outcome") == [(2, "valid"), (1, "interrupted")]
    assert states(place) == {TRIAL: "valid"}
    assert place.pids() == []


@pytest.mark.cluster
def test_a_task_on_a_node_with_another_address_is_never_taken_for_ended(place: Place) -> None:
    """Its other tasks are ended; the attempt stays open until the node can be asked again."""
    killed(place, "params: {step_s: 0.3}")
    path = inventory(place)
    text = path.read_text()
    path.write_text(text.replace("127.0.0.3", "127.0.0.9"))
    done = place.must(*WORDS)
    assert "a1 was ended, except on right, left out this time" in done.stderr
    assert states(place) == {TRIAL: "open"}
    path.write_text(text)
    place.must(*WORDS)
    assert states(place) == {TRIAL: "valid"}
    assert place.pids() == []


@pytest.mark.cluster
def test_a_sweep_goes_on_with_fewer_nodes_and_under_other_names(place: Place) -> None:
    """Cases that need a node left out run when it is back; measured trials count ever after."""
    alone = place.must("sweep", "toy", "--repeats", "1", "--nodes", "!left")
    assert "skipped, since they need more than 1 node: 2x2" in alone.stderr
    before, cases = place.sweep(), place.json("sweep", "toy", "--repeats", "1")["cases"]
    trials = [trial for case in cases for trial in case["trials"]]
    assert [trial["nodes"] for trial in trials] == [["right"], ["left", "right"]]
    inventory(place).write_text(
        "name: two\ndefaults: {transport: local, runtime: process}\nnodes:\n"
        "  - {name: east, address: 127.0.0.7}\n  - {name: west, address: 127.0.0.5}\n"
    )
    document = place.json("sweep", "toy", "--repeats", "2")
    assert place.sweep() == before
    (two,) = (case for case in document["cases"] if case["case"]["placement"] == "2x2")
    assert [trial["nodes"] for trial in two["trials"]] == [["left", "right"], ["east", "west"]]
    assert [trial["attempt"] for trial in two["trials"]] == [1, 1]
    assert two["trials_valid"] == 2
    assert [*document["environment"]] == ["right", "left", "east", "west"]
    assert "NODE-SETS" in [mark["code"] for mark in two["marks"]]


def carried(sweep: str) -> list[int]:
    """Return the processes of that sweep."""
    return processes.carrying(f"=dlp-{sweep}-".encode())


@pytest.mark.cluster
def test_what_runs_without_its_state_folder_is_found_and_ended(place: Place) -> None:
    """OTHER-GANG names owner, folder, sweep and deadline; its command ends it; then all is well."""
    killed(place, "params: {behaviour: hangs}")
    lost = place.sweep().name
    shutil.rmtree(place.state)
    refused = place.must("provision", "two", code=5)
    document = place.json("provision", "two", code=5)
    (found,) = (one for one in document["site"]["findings"] if one["code"] == "OTHER-GANG")
    assert found["severity"] == "error"
    assert f"sweep {lost} runs on the node, started by pid " in found["seen"]
    assert f"state folder {place.state};" in found["seen"]
    until = re.search(r"by itself at (\S+ \S+) UTC", found["seen"])
    assert until is not None
    left_s = time.mktime(time.strptime(until[1], "%Y-%m-%d %H:%M:%S")) - time.mktime(time.gmtime())
    assert 0 < left_s < 24 * 3600
    assert "Not fit to measure" in refused.stderr
    said = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", code=5).stderr
    assert "ERROR OTHER-GANG" in said
    command = f"dlperf-orch stop {lost} --on "
    assert command in said
    cleaned = place.must("clean", "--inventory", "two").stderr
    assert command in cleaned
    assert carried(lost)
    (words,) = re.findall(f"`({re.escape(command)}.*?)`", cleaned)
    done = place.json(*words.split()[1:])
    assert len(done["ended"]) >= 2
    assert carried(lost) == []
    assert place.json(*words.split()[1:])["ended"] == []
    place.rewrite(params="params: {}")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")


@pytest.mark.parametrize("name", ["toy", "toy-20260101-000000-abcdef;id", "", "its own"])
def test_stop_on_nodes_needs_the_whole_id_of_a_lost_sweep(place: Place, name: str) -> None:
    """A prefix could be somebody else's; a sweep of this folder is stopped by its record."""
    own = Store(place.state).new_sweep(RECORD).id
    said = place.must("stop", own if name == "its own" else name, "--on", "two", code=2).stderr
    assert "ERROR USAGE" in said
    assert "leave out --on" in said
