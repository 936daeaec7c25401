"""Find and end what sweeps left behind, on nodes left out or moved, or without a state folder."""

import json
import os
import re
import shutil
import subprocess
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
from tests import proc
from tests.conftest import Place
from tests.state.test_store import ENDED, INTENT, RECORD
from tests.sweeping.elsewhere import attempt
from tests.waiting import wait_for

WORDS = ("sweep", "toy", "--case", "2x2", "--repeats", "1")
TRIAL = "2n2g-toy_b4_fp32_1"
SLOW, HANGS = "params: {step_s: 0.3}", "params: {behaviour: hangs}"
CASE = Case(nodes=1, gpus_per_node=1, micro_batch_size=4, precision="fp32", device="cpu")


def test_what_is_left_is_listed_by_cluster_and_lock_and_damage_is_no_absence(
    tmp_path: Path,
) -> None:
    """Open attempts of a sweep that nobody runs; `clean` touches what has settled alone."""
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
    (sweeps["left"].folder / "sweep.json").write_text("{}")  # whose cluster nobody knows then
    _, why = clean.split(store, RECORD.inventory)
    assert sweeps["left"].id in why


def killed(place: Place, params: str = SLOW) -> None:
    """A sweep whose controller is killed while a gang of both nodes runs."""
    place.rewrite(params=params)
    process = place.start(*WORDS)
    wait_for(lambda: place.opened(0) and place.opened(1), "both tasks run")
    process.kill()
    process.wait()


def states(place: Place) -> dict[str, str]:
    return dict(json.loads(place.run("status", "--json").stdout)["trials"])


def inventory(place: Place) -> Path:
    return place.folder / "inventory" / "two.yaml"


def begun(place: Place) -> tuple[str, ...]:
    """The sweep of one trial was killed while its gang ran; the nodes that it ran on."""
    path = inventory(place)
    third = "  - {name: third, address: 127.0.0.7}\n"
    path.write_text(path.read_text() + third)
    killed(place)
    (bound,) = place.state.rglob("attempt.json")
    return tuple(seat["node"] for seat in json.loads(bound.read_text())["seats"])


def events(place: Place, kind: str) -> list[tuple[int, str]]:
    """Attempts and what they came to."""
    return [(event["attempt"], event.get("state", "")) for event in place.events(kind)]


@pytest.mark.cluster
def test_an_attempt_closed_late_takes_nothing_from_the_one_that_counts(place: Place) -> None:
    """Its gang is ended where it can be reached; a later attempt is valid, and stays so."""
    _, last = begun(place)
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
    """The sweep knows it as long as an attempt on it is open; what counts still does."""
    _, last = begun(place)
    path = inventory(place)
    lines = [line for line in path.read_text().splitlines() if f"name: {last}," not in line]
    path.write_text("\n".join(lines) + "\n")
    place.must(*WORDS)
    place.must("stop")
    assert events(place, "outcome") == [(2, "valid"), (1, "interrupted")]
    assert states(place) == {TRIAL: "valid"}
    assert place.pids() == []


def edit(place: Place, old: str, new: str) -> None:
    path = inventory(place)
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.cluster
def test_a_sweep_goes_on_under_other_names_addresses_and_order(place: Place) -> None:
    """Measured trials count; the next ones run on the nodes under their present names."""
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


@pytest.mark.cluster
def test_leaving_a_node_out_goes_on_with_the_same_sweep(place: Place) -> None:
    """The cases that need it are skipped, and run when it is back."""
    alone = place.must("sweep", "toy", "--repeats", "1", "--nodes", "!left")
    assert "skipped, since they need more than 1 node: 2x2" in alone.stderr
    cases = place.json("sweep", "toy", "--repeats", "1")["cases"]
    trials = [trial for case in cases for trial in case["trials"]]
    assert [trial["nodes"] for trial in trials] == [["right"], ["left", "right"]]
    assert len(list(place.state.glob("sweeps/*"))) == 1


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("old", "new"),
    [("name: right", "name: new"), ("127.0.0.3", "127.0.0.9")],
    ids=["gone", "moved"],
)
def test_what_may_run_on_a_node_that_is_gone_is_never_taken_for_ended(
    place: Place, old: str, new: str
) -> None:
    """Its other tasks are ended; the attempt stays open until the node can be asked again."""
    killed(place)
    text = inventory(place).read_text()
    edit(place, old, new)
    done = place.must(*WORDS)
    assert "a1 was ended, except on right, left out this time" in done.stderr
    assert states(place) == {TRIAL: "open"}
    inventory(place).write_text(text)
    place.must(*WORDS)
    assert states(place) == {TRIAL: "valid"}
    assert place.pids() == []


def carried(sweep: str) -> list[int]:
    """Processes of that sweep."""
    return proc.carrying(f"=dlp-{sweep}-".encode())


@pytest.fixture
def lost(place: Place) -> str:
    """The id of a sweep whose tasks are all that there is of it."""
    killed(place, HANGS)
    sweep = place.sweep().name
    shutil.rmtree(place.state)
    return sweep


@pytest.mark.cluster
def test_what_runs_without_its_state_folder_is_told_and_ended(place: Place, lost: str) -> None:
    """OTHER-GANG names owner, folder, sweep and deadline; its command ends it; then all is well."""
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


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["toy", "toy-20260101-000000-abcdef;id", ""])
def test_only_a_whole_id_ends_a_lost_sweep(place: Place, name: str) -> None:
    """A prefix could be somebody else's."""
    assert "ERROR USAGE" in place.must("stop", name, "--on", "two", code=2).stderr


@pytest.mark.cluster
def test_a_sweep_of_this_folder_is_stopped_without_on(place: Place) -> None:
    """Its record says where it runs."""
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    said = place.must("stop", place.sweep().name, "--on", "two", code=2).stderr
    assert "leave out --on" in said


@pytest.mark.cluster
def test_words_of_strangers_in_the_owner_are_quoted(place: Place) -> None:
    """What a process says of its owner goes into a command only quoted, and without escapes."""
    folder = "/tmp/a b;$(id)"
    holder = {
        "process": {"host": "h", "pid": 1, "started": "1", "boot": "b"},
        "user": "eve",
        "since": "now",
        "folder": folder,
    }
    sweep = "toy-20260101-000000-abcdef"
    env = {
        **os.environ,
        "DLPERF_TASK": f"dlp-{sweep}-1n1g-a1-r0",
        "DLPERF_OWNER": json.dumps(holder),
        "DLPERF_DEADLINE": "9" * 30,
        "DLPERF_LOCK": place.env()["DLPERF_LOCK"],
    }
    process = subprocess.Popen(["sleep", "60"], env=env)
    try:
        said = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", code=5).stderr
    finally:
        process.kill()
        process.wait()
    assert f"--state '{folder}'` on h;" in said
    assert "it has no known deadline" in said
    assert not Path("/tmp/a b").exists()
