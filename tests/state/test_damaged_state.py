"""A state folder that was damaged, edited or lost in part: refused or mended, never misread."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests import warm
from tests.conftest import Place, this_machine
from tests.processes import wait_for
from tests.state.damage import DEEP, damages

pytestmark = pytest.mark.cluster

TRIAL = "2n2g-toy_b4_fp32_1"
SWEEP = ("sweep", "toy", "--json")
READERS = (("status", "--json"), ("list", "sweeps", "--json"), ("logs",), ("stop",))
Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place with a sweep of two cases, each measured once."""
    place = Place.made(tmp_path_factory.mktemp("finished") / "place")
    place.rewrite(method="method: {repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 60}")
    with this_machine():
        done = place.run("sweep", "toy")
    assert done.returncode == 0, done.stderr
    shutil.copytree(place.state, place.folder / "whole")
    return place


@pytest.fixture
def swept(finished: Place, machine: None) -> Place:  # noqa: ARG001 - what is damaged is swept again
    """That place, its state folder as it was then: to be damaged."""
    shutil.rmtree(finished.state)
    shutil.copytree(finished.folder / "whole", finished.state)
    return finished


def numbers(document: dict[str, Any]) -> dict[str, float]:
    """Return the numbers that count, by trial."""
    return {
        trial["trial"]: trial["throughput"]
        for case in document["cases"]
        for trial in case["trials"]
        if trial["state"] == "valid"
    }


def edit(**values: object) -> Damage:
    """Return what changes values of a JSON file."""

    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}))

    return change


def replace_by_folder(path: Path) -> None:
    path.rename(path.with_suffix(".was"))
    path.mkdir()


def copy(place: Place, name: str, file: str, damage: Damage) -> str:
    """Make a copy of the state folder with one file of its sweep damaged; return its name."""
    shutil.copytree(place.folder / "whole", place.folder / name)
    damage(place.folder / name / "sweeps" / place.sweep().name / file)
    return name


RECORDS: dict[str, Damage] = {
    "deep": lambda path: path.write_bytes(DEEP),
    "another's": edit(id="toy-20260101-000000-abcdef"),
    "gone": Path.unlink,
}


def test_a_damaged_record_is_exit_6_and_no_new_sweep_starts(swept: Place) -> None:
    """Whoever reads it names the file, `sweep` does not pass it over, and --new is offered."""
    name = swept.sweep().name
    verbs = (("collect", "--json"), ("status",), ("logs",), ("stop",), ("collect", name))
    states = [copy(swept, f"r{how}", "sweep.json", damage) for how, damage in RECORDS.items()]
    lines = [(*verb, "--state", state) for state in states for verb in (*verbs, ("sweep", "toy"))]
    for words, (code, _, err) in zip(lines, warm.run(swept, lines), strict=True):
        assert code == 6, (words, err)
        assert "ERROR STORE-DAMAGED" in err
        assert f"{name}/sweep.json" in err
        if words[0] == "sweep":
            assert f"sweep {name} may be the one to resume" in err
            assert "start a new sweep with --new" in err
    listed = warm.run(swept, [("list", "sweeps", "--json", "--state", state) for state in states])
    for _, out, _ in listed:
        (row,) = json.loads(out)
        assert (row["sweep"], row["cluster"]) == (name, "damaged")


def test_a_new_sweep_leaves_a_damaged_one_unchanged(swept: Place) -> None:
    """--new measures elsewhere and says what it passes over; not one byte of the old is lost."""
    sweep = swept.sweep()
    (sweep / "sweep.json").unlink()
    before = {path: path.read_bytes() for path in sweep.rglob("*") if path.is_file()}
    new = swept.must("sweep", "toy", "--new", "--json")
    assert json.loads(new.stdout)["sweep"] != sweep.name
    assert f"sweep {sweep.name} is skipped" in new.stderr
    assert {path: path.read_bytes() for path in before} == before
    swept.must("collect")


OUTCOME, LOG = "logs/2n2g/toy_b4_fp32_1.json", f"attempts/{TRIAL}/a1/r1.log"
COUNTED = "logs/2n2g/toy_b4_fp32_1.log"
EVIDENCE: list[tuple[str, Damage, str]] = [
    (OUTCOME, edit(state="failed"), "OUTCOME-CHANGED"),
    (OUTCOME, edit(attempt=7), "OUTCOME-CHANGED"),
    (OUTCOME, lambda path: path.write_bytes(DEEP), "OUTCOME-CHANGED"),
    (OUTCOME, Path.unlink, "OUTCOME-CHANGED"),
    (LOG, lambda path: path.write_bytes(path.read_bytes() + b"NCCL INFO\n"), "LOG-CHANGED"),
    (LOG, Path.unlink, "LOG-CHANGED"),
    (LOG, replace_by_folder, "LOG-CHANGED"),
    (COUNTED, Path.unlink, "MISSING"),
]


def test_a_trial_with_changed_evidence_is_measured_again(swept: Place) -> None:
    """`collect` exits 3 and says which; `sweep` agrees, measures it anew, and all is well."""
    states = [
        copy(swept, f"e{number}", file, damage) for number, (file, damage, _) in enumerate(EVIDENCE)
    ]
    verbs = (("collect", "--json"), ("sweep", "toy", "--json"), ("collect", "--json"))
    said = warm.run(swept, [(*verb, "--state", state) for state in states for verb in verbs])
    for number, (file, _, problem) in enumerate(EVIDENCE):
        first, again, last = said[3 * number : 3 * number + 3]
        assert first[0] == 3, (file, first)
        (trial,) = json.loads(first[1])["cases"][1]["trials"]
        assert (trial["state"], trial["problems"][-1]["code"]) == ("invalid", problem)
        assert again[0] == 0, (file, again)
        assert f"{TRIAL}: measured again: {problem}" in again[2]
        assert "2 trials, 1 valid already, 1 to run" in again[2]
        assert f"{TRIAL} a2: valid" in again[2]
        assert last[0] == 0, (file, last)


def test_attempt_numbers_outlive_the_events(swept: Place) -> None:
    """With events.jsonl gone, what lies in attempts/ still counts as begun: no raw log is lost.

    What ended well here, and lies here whole, is taken up again as the attempt that it was.
    """
    raw = {path: path.read_bytes() for path in swept.sweep().glob("attempts/*/a1/*.log")}
    first = numbers(json.loads(swept.run("collect", "--json").stdout))
    (swept.sweep() / "events.jsonl").unlink()
    assert numbers(swept.json("collect", code=3)) == {}
    done = swept.must("sweep", "toy", "--json")
    assert numbers(json.loads(done.stdout)) == first
    assert {path: path.read_bytes() for path in raw} == raw
    # A line that is lost at the end cannot be seen; its number is not used again all the same.
    (swept.sweep() / "events.jsonl").write_bytes(b"")
    (swept.sweep() / f"attempts/{TRIAL}/a1/r1.go").unlink()
    swept.must("sweep", "toy")
    assert (TRIAL, 2) in [(event["trial"], event["attempt"]) for event in swept.events("intent")]
    assert {path: path.read_bytes() for path in raw} == raw


@pytest.mark.parametrize("file", ["events.jsonl", "sweep.json"])
def test_a_damaged_file_of_an_old_sweep_blocks_nothing_and_its_gang_is_ended(
    place: Place, file: str
) -> None:
    """The gang of a killed sweep is found by the sweep's name; others on the machine go on."""
    place.rewrite(params="params: {step_s: 2}")
    process = place.start("sweep", "toy", "--case", "2x2")
    wait_for(lambda: place.opened(1), "both tasks run")
    process.kill()
    process.wait()
    old = place.sweep()
    assert place.pids() != []
    (old / file).write_bytes(b'{"event": "intent"\n' + (old / file).read_bytes())
    place.rewrite(params="params: {step_s: 0.01}")
    done = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", "--new")
    assert f"sweep {old.name} is skipped" in done.stderr
    assert f"dlp-{old.name}-{TRIAL}-a1-r0" in done.stderr
    assert place.pids() == []
    assert (old / file).read_bytes().startswith(b'{"event": "intent"\n')
    assert len(json.loads(place.run("list", "sweeps", "--json").stdout)) == 2


def test_clean_names_tasks_that_a_killed_sweep_left_running(place: Place) -> None:
    """Exit 7, the tasks by name and the command that ends them; after it, nothing is left."""
    place.rewrite(params="params: {behaviour: hangs}")
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(place.opened, "the task runs")
    process.kill()
    process.wait()
    name = place.sweep().name
    task = f"dlp-{name}-1n1g-toy_b4_fp32_1-a1-r0"
    for words in (("clean",), ("clean", "--dry-run")):
        done = place.must(*words, "--inventory", "two", code=7)
        assert "is left on" not in done.stdout
        assert task in done.stderr
        assert f"dlperf-orch stop {name}" in done.stderr
    document = json.loads(place.run("clean", "--inventory", "two", "--json").stdout)
    assert document["exit_code"] == 7
    assert document["kept"]["left"]["tasks"] == [task]
    assert place.pids() != []
    place.must("stop", name)
    done = place.run("clean", "--inventory", "two", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["kept"] == {}
    assert name not in done.stdout


# The first example of hypothesis is the simplest: all files are empty. The others are drawn.
@settings(max_examples=3, phases=[Phase.generate])
@given(data=st.data())
def test_no_damage_is_a_bug_or_a_wrong_number(finished: Place, data: st.DataObject) -> None:
    """Each file of a state folder, damaged in any way: exit 0, 2, 3 or 6, and numbers as before."""
    name = finished.sweep().name
    whole = finished.folder / "whole"
    right = numbers(json.loads((whole / "sweeps" / name / "results.json").read_text()))
    files = [path for path in sorted(whole.rglob("*")) if path.is_file()]
    lines: list[tuple[str, ...]] = []
    written: list[bytes] = []
    for number, file in enumerate(files):
        state = finished.folder / f"fuzz{number}"
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(whole, state)
        written.append(data.draw(damages(file.read_bytes())))
        (state / file.relative_to(whole)).write_bytes(written[-1])
        reader = SWEEP if number % 12 == 5 else READERS[number % len(READERS)]
        lines += [(*words, "--state", state.name) for words in (("collect", "--json"), reader)]
    with this_machine():
        said = warm.run(finished, lines)
    for number, (code, out, err) in enumerate(said):
        what = (lines[number], files[number // 2], written[number // 2][:200], code, err)
        assert code in (0, 2, 3, 6), what
        assert "Traceback" not in err, what
        if lines[number][0] == "collect" and code in (0, 3):
            assert numbers(json.loads(out)).items() <= right.items(), what
        if lines[number][0] == "sweep" and code == 0:
            assert len(numbers(json.loads(out))) == len(right), what
