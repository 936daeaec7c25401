"""A state folder that was damaged, edited or lost in part: refused or mended, never misread."""

import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.conftest import Place, this_machine
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster

DEEP = b"[" * 100_000 + b"]" * 100_000
COLLECT = ("collect", "--json")
READERS = (("status", "--json"), ("list", "sweeps", "--json"), ("logs",), ("stop",))


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
    """By trial, the numbers that count."""
    return {
        trial["trial"]: trial["throughput"]
        for case in document["cases"]
        for trial in case["trials"]
        if trial["state"] == "valid"
    }


def intents(place: Place) -> list[tuple[str, int]]:
    return [(event["trial"], event["attempt"]) for event in place.events("intent")]


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """A JSON file with something of it changed."""
    document = json.loads(path.read_bytes())
    changed = change(document)
    path.write_text(json.dumps(document if changed is None else changed))


RECORDS: dict[str, Callable[[Path], object]] = {
    "deep": lambda path: path.write_bytes(DEEP),
    "deep within": lambda path: edit(
        path, lambda it: it.update(site=json.loads("[" * 200 + "]" * 200))
    ),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
    "no plan": lambda path: edit(path, lambda it: it.pop("plan") and None),
    "no inputs": lambda path: edit(path, lambda it: it.pop("inputs") and None),
    "plan of text": lambda path: edit(path, lambda it: it.update(plan="x")),
    "another's": lambda path: edit(path, lambda it: it.update(id="toy-20260101-000000-abcdef")),
    "another window": lambda path: edit(
        path, lambda it: it["plan"]["method"].update(window=[3, 7])
    ),
    "NaN": lambda path: edit(path, lambda it: it.update(created=float("nan"))),
    "half a character": lambda path: edit(path, lambda it: it.update(created="\ud800")),
    "gone": lambda path: path.unlink(),
}


def copies(place: Place, damages: Mapping[str, Callable[[Path], object]], file: str) -> list[str]:
    """Copies of the state folder, a file of their sweep damaged in these ways; their names."""
    names = [f"state{number}" for number in range(len(damages))]
    for name, damage in zip(names, damages.values(), strict=True):
        state = place.folder / name
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(place.folder / "whole", state)
        damage(state / "sweeps" / place.sweep().name / file)
    return names


def test_a_damaged_record_is_exit_6_and_nobodys_new_sweep(swept: Place) -> None:
    """Whoever reads it names the file, `sweep` does not pass it over, and --new is offered."""
    name = swept.sweep().name
    verbs = (("collect", "--json"), ("status",), ("logs",), ("stop",), ("collect", name))
    said: list[tuple[int, str, str]] = []
    states = copies(swept, RECORDS, "sweep.json")
    lines = [(*verb, "--state", state) for state in states for verb in (*verbs, ("sweep", "toy"))]
    said = warm.run(swept, lines)
    for words, (code, _, err) in zip(lines, said, strict=True):
        assert code == 6, (words, err)
        assert "ERROR STORE-DAMAGED" in err or "ERROR STORE-RIGHTS" in err
        assert f"{name}/sweep.json" in err
        if words[0] == "sweep":
            assert f"sweep {name} may be the one to resume" in err
            assert "start a new sweep with --new" in err
    listed = warm.run(swept, [("list", "sweeps", "--json", "--state", state) for state in states])
    for _, out, _ in listed:
        (row,) = json.loads(out)
        assert (row["sweep"], row["cluster"]) == (name, "damaged")


@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_new_sweep_beside_a_damaged_one_touches_nothing_of_it(swept: Place, how: str) -> None:
    """--new measures elsewhere and says what it passes over; not one byte of the old is lost."""
    sweep = swept.sweep()
    RECORDS[how](sweep / "sweep.json")
    before = {path: path.read_bytes() for path in sweep.rglob("*") if path.is_file()}
    new = swept.must("sweep", "toy", "--new", "--json")
    assert json.loads(new.stdout)["sweep"] != sweep.name
    assert f"sweep {sweep.name} is skipped" in new.stderr
    assert {path: path.read_bytes() for path in before} == before
    swept.must("collect")


OUTCOMES: dict[str, Callable[[Path], object]] = {
    "failed": lambda path: edit(path, lambda it: it.update(state="failed")),
    "nothing": lambda path: path.write_text("{}"),
    "a list": lambda path: path.write_text("[]"),
    "deep": lambda path: path.write_bytes(DEEP),
    "another trial": lambda path: edit(path, lambda it: it.update(trial="1n1g-toy_b4_fp32_1")),
    "attempt of text": lambda path: edit(path, lambda it: it.update(attempt="x")),
    "another attempt": lambda path: edit(path, lambda it: it.update(attempt=7)),
    "another image": lambda path: edit(path, lambda it: it["provenance"].update(image="other")),
    "gone": lambda path: path.unlink(),
    "a folder": lambda path: path.rename(path.with_suffix(".was")) and path.mkdir(),  # type: ignore[func-returns-value] # both are done
}


def test_an_edited_outcome_counts_for_nobody_and_is_measured_again(swept: Place) -> None:
    """`collect` exits 3 and says which; `sweep` agrees, measures it anew, and all is well."""
    states = copies(swept, OUTCOMES, "logs/2n2g/toy_b4_fp32_1.json")
    verbs = (("collect", "--json"), ("sweep", "toy", "--json"), ("collect", "--json"))
    said = warm.run(swept, [(*verb, "--state", state) for state in states for verb in verbs])
    for number, how in enumerate(OUTCOMES):
        first, again, last = said[3 * number : 3 * number + 3]
        assert first[0] == 3, (how, first)
        (trial,) = json.loads(first[1])["cases"][1]["trials"]
        assert (trial["state"], trial["problems"][-1]["code"]) == ("invalid", "OUTCOME-CHANGED")
        assert again[0] == 0, (how, again)
        assert "2n2g-toy_b4_fp32_1: measured again: OUTCOME-CHANGED" in again[2]
        assert "2 trials, 1 valid already, 1 to run" in again[2]
        assert "2n2g-toy_b4_fp32_1 a2: valid" in again[2]
        assert last[0] == 0, (how, last)


LOGS: dict[str, Callable[[Path], object]] = {
    "edited": lambda path: path.write_bytes(path.read_bytes() + b"NCCL INFO NET/IB : Using [0]\n"),
    "gone": lambda path: path.unlink(),
    "a folder": lambda path: path.rename(path.with_suffix(".was")) and path.mkdir(),  # type: ignore[func-returns-value] # both are done
}


def test_a_ranks_log_is_evidence_too(swept: Place) -> None:
    """What a rank said proves the transport: edited, it proves nothing and is measured again."""
    states = copies(swept, LOGS, "attempts/2n2g-toy_b4_fp32_1/a1/r1.log")
    verbs = (("collect", "--json"), ("sweep", "toy", "--json"))
    said = warm.run(swept, [(*verb, "--state", state) for state in states for verb in verbs])
    for number, how in enumerate(LOGS):
        first, again = said[2 * number : 2 * number + 2]
        assert first[0] == 3, (how, first)
        (trial,) = json.loads(first[1])["cases"][1]["trials"]
        (problem,) = trial["problems"]
        assert problem["code"] == "LOG-CHANGED"
        assert problem["message"].startswith("r1.log of right: its sha256 is not the one")
        assert again[0] == 0, (how, again)
        assert "2n2g-toy_b4_fp32_1: measured again: LOG-CHANGED: r1.log of right" in again[2]


def test_a_log_that_is_a_folder_is_moved_aside_and_measured_again(swept: Place) -> None:
    """Nothing in it is removed, and nothing is refused for ever."""
    log = swept.sweep() / "logs/2n2g/toy_b4_fp32_1.log"
    log.unlink()
    log.mkdir()
    (log / "somebody's").write_text("file\n")
    (trial,) = swept.json("collect", code=3)["cases"][1]["trials"]
    assert (trial["state"], trial["problems"][0]["code"]) == ("invalid", "MISSING")
    swept.must("sweep", "toy")
    assert log.is_file()
    (kept,) = log.parent.glob("toy_b4_fp32_1.log.*.folder/somebody's")
    assert kept.read_text() == "file\n"


def test_attempt_numbers_outlive_the_events(swept: Place) -> None:
    """With events.jsonl gone, what lies in attempts/ still counts as begun: no raw log is lost.

    What ended well here, and lies here whole, is taken up again as the attempt that it was.
    """
    raw = {path: path.read_bytes() for path in swept.sweep().glob("attempts/*/a1/*.log")}
    first = numbers(json.loads(swept.run("collect", "--json").stdout))
    (swept.sweep() / "events.jsonl").unlink()
    assert numbers(swept.json("collect", code=3)) == {}
    done = swept.must("sweep", "toy", "--json")
    assert done.stderr.count("events.jsonl has no entry for it") == 2
    assert numbers(json.loads(done.stdout)) == first
    assert {path: path.read_bytes() for path in raw} == raw
    # A line that is lost at the end cannot be seen; its number is not used again all the same.
    events = swept.sweep() / "events.jsonl"
    events.write_bytes(b"")
    (swept.sweep() / "attempts/2n2g-toy_b4_fp32_1/a1/r1.go").unlink()
    swept.must("sweep", "toy")
    assert ("2n2g-toy_b4_fp32_1", 2) in intents(swept)
    assert {path: path.read_bytes() for path in raw} == raw


@pytest.mark.parametrize("file", ["events.jsonl", "sweep.json"])
def test_a_damaged_file_of_an_old_sweep_blocks_nothing_and_its_gang_is_ended(
    place: Place, file: str
) -> None:
    """The gang of a killed sweep is found by the sweep's name; others on the machine go on."""
    place.rewrite(params="params: {step_s: 2}")
    process = place.start("sweep", "toy", "--case", "2x2")
    gates = lambda: list(place.state.glob("sweeps/*/attempts/*/*/r1.go"))  # noqa: E731 - one look
    wait_for(gates, "both tasks run")
    process.kill()
    process.wait()
    old = place.sweep()
    assert place.pids() != []
    (old / file).write_bytes(b'{"event": "intent"\n' + (old / file).read_bytes())
    place.rewrite(params="params: {step_s: 0.01}")
    done = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1", "--new")
    assert f"sweep {old.name} is skipped" in done.stderr
    assert f"dlp-{old.name}-2n2g-toy_b4_fp32_1-a1-r0" in done.stderr
    assert place.pids() == []
    assert (old / file).read_bytes().startswith(b'{"event": "intent"\n')
    rows = json.loads(place.run("list", "sweeps", "--json").stdout)
    assert len(rows) == 2


def test_clean_names_what_a_killed_sweep_left_running(place: Place) -> None:
    """Exit 7, the tasks by name and the command that ends them; after it, nothing is left."""
    place.rewrite(params="params: {behaviour: hangs}")
    process = place.start("sweep", "toy", "--case", "1x1")
    wait_for(lambda: list(place.state.glob("sweeps/*/attempts/*/*/r0.go")), "the task runs")
    process.kill()
    process.wait()
    name = place.sweep().name
    for words in (("clean",), ("clean", "--dry-run")):
        done = place.must(*words, "--inventory", "two", code=7)
        assert "is left on" not in done.stdout
        assert f"dlp-{name}-1n1g-toy_b4_fp32_1-a1-r0" in done.stderr
        assert f"dlperf-orch stop {name}" in done.stderr
    document = json.loads(place.run("clean", "--inventory", "two", "--json").stdout)
    assert document["exit_code"] == 7
    assert document["kept"]["left"]["tasks"] == [f"dlp-{name}-1n1g-toy_b4_fp32_1-a1-r0"]
    assert place.pids() != []
    place.must("stop", name)
    done = place.run("clean", "--inventory", "two", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["kept"] == {}
    assert name not in done.stdout


def mutations(dice: random.Random, content: bytes) -> Iterator[bytes]:
    """Ways in which a file may be damaged."""
    yield from (b"", b"\x00" * 64, b"\xff\xfe", b"null", b"7", b'"x"', b"[]", b"{}", DEEP)
    yield from (content[: dice.randrange(len(content))] for _ in range(4))
    yield content[dice.randrange(1, len(content)) :]
    at = dice.randrange(len(content))
    yield content[:at] + bytes([content[at] ^ 1 << dice.randrange(8)]) + content[at + 1 :]
    yield content + content
    yield b"\n" + content


def paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where values lie in a document."""
    items: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, child in items:
        yield (*path, key)
        yield from paths(child, (*path, key))


def rewritten(dice: random.Random, content: bytes, count: int) -> Iterator[bytes]:
    """The JSON lines of a file with values at random places deleted or of another type."""
    lines = content.splitlines() if content.count(b'"event"') else [content]
    for _ in range(count):
        at = dice.randrange(len(lines))
        document = json.loads(lines[at])
        *way, last = dice.choice(list(paths(document)))
        parent = document
        for step in way:
            parent = parent[step]
        if dice.random() < 0.3:
            del parent[last]
        else:
            choices: tuple[object, ...] = (
                None,
                7,
                -1,
                1e300,
                "x",
                "",
                [],
                {},
                True,
                "\ud800",
                10**30,
                [[[]]],
            )
            parent[last] = dice.choice(choices)
        changed = json.dumps(document).encode()
        yield b"\n".join((*lines[:at], changed, *lines[at + 1 :])) + b"\n"


@pytest.mark.parametrize("share", [0.4, pytest.param(1.0, marks=pytest.mark.long)])
def test_no_damage_is_a_bug_or_a_wrong_number(swept: Place, share: float) -> None:
    """Each file of a state folder, damaged in many ways: exit 0, 2, 3 or 6, and numbers as before.

    Then the sweep itself, over some of them: it refuses, or ends with what can be relied on.
    """
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown by pytest when the test fails
    dice = random.Random(seed)
    sweep, whole = swept.sweep(), swept.folder / "whole"
    right = numbers(json.loads((sweep / "results.json").read_text()))
    files = ["sweep.json", "events.jsonl", "logs/2n2g/toy_b4_fp32_1.json", "results.json"]
    files += ("attempts/2n2g-toy_b4_fp32_1/a1/attempt.json", "logs/1n1g/toy_b4_fp32_1.log")
    damages: list[tuple[str, bytes]] = []
    for file in files:
        content = (sweep / file).read_bytes()
        damages += [(file, damage) for damage in mutations(dice, content)]
        if not file.endswith(".log"):
            damages += [(file, damage) for damage in rewritten(dice, content, 8)]
    damages = dice.sample(damages, round(share * len(damages)))
    lines: list[tuple[str, ...]] = []
    for number, (file, damage) in enumerate(damages):
        state = swept.folder / f"fuzz{share:g}-{number}"
        shutil.copytree(whole, state)
        (state / "sweeps" / sweep.name / file).write_bytes(damage)
        lines += [(*words, "--state", state.name) for words in (COLLECT, dice.choice(READERS))]
        if number % 16 == 0:
            lines.append(("sweep", "toy", "--json", "--state", state.name))
    for words, (code, out, err) in zip(lines, warm.run(swept, lines), strict=True):
        file, damage = damages[int(words[-1].removeprefix(f"fuzz{share:g}-"))]
        what = (words, file, damage[:200], code, err)
        assert code in (0, 2, 3, 6), what
        assert "Traceback" not in err, what
        if words[0] == "collect" and code in (0, 3):
            assert numbers(json.loads(out)).items() <= right.items(), what
        if words[0] == "sweep" and code == 0:
            assert len(numbers(json.loads(out))) == len(right), what
