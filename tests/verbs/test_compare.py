"""compare on the command line: what it compares, refuses and writes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from orchestrator import errors
from orchestrator.cli.command import Face, load
from orchestrator.console import Voice
from orchestrator.verbs import compare as verb
from orchestrator.verbs.compare import percent
from tests.comparing.reports import SLOWER, TRIALS, Told
from tests.conftest import Place, this_machine

VOICE = Voice(as_json=True)  # one for all: it keeps its own copy of standard error open


def lay(folder: Path, name: str, told: Told) -> str:
    """A results.json in a file of that name; its path."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(told.document))
    return str(path)


def compared(folder: Path, first: str, second: str, **options: Any) -> int:
    """The exit code of the command."""
    face = Face(load("compare"))
    face.state, face.voice = folder / "state", VOICE
    return verb.compare(face, first, second, **options)


def test_files_are_compared_and_reports_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One document of JSON, and Markdown; exit 3, since a case is slower."""
    first = lay(tmp_path, "a", Told({"1x1": TRIALS, "2x8": TRIALS}))
    second = lay(tmp_path, "b", Told({"1x1": SLOWER, "2x8": TRIALS}, source="sweep-b"))
    page = tmp_path / "page.md"
    assert compared(tmp_path, first, second, fail_if_slower=0.03, markdown=page) == 3
    told = json.loads(capsys.readouterr().out)
    assert [case["verdict"] for case in told["cases"]] == ["different", "same"]
    assert told["cases"][0]["bound"]["how"] == "usual"
    assert "FAILED: 1 case slower by more than 3.00%" in page.read_text()


@pytest.mark.parametrize(
    ("second", "code"),
    [
        ("nothing", "NO-SWEEP"),
        ("gone.json", "NO-SWEEP"),
        ("other.json", "NOT-COMPARABLE"),
        ("unit.json", "NOT-COMPARABLE"),
        ("broken.json", "NO-RESULTS"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, second: str, code: str) -> None:
    """With a code, and exit 2."""
    first = lay(tmp_path, "a", Told({"1x1": TRIALS}))
    lay(tmp_path, "other", Told({"2x8": TRIALS}))
    lay(tmp_path, "unit", Told({"1x1": TRIALS}, report={"unit": "sequences/s"}))
    (tmp_path / "broken.json").write_text('{"version": 1}')
    named = str(tmp_path / second) if second.endswith(".json") else second
    with pytest.raises(errors.UsageError) as refused:
        compared(tmp_path, first, named, fail_if_slower=0.03)
    assert (refused.value.code, refused.value.exit_code) == (code, 2)


@pytest.mark.parametrize(("text", "share"), [("3%", 0.03), ("0.5", 0.005)])
def test_percent(text: str, share: float) -> None:
    """With or without its sign."""
    assert percent(text) == share


@pytest.mark.parametrize("text", ["-3%", "100%", "3 percent", "", "nan"])
def test_what_is_no_percent_is_refused(text: str) -> None:
    """It names what was needed."""
    with pytest.raises(typer.BadParameter, match="needed percent below 100"):
        percent(text)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two sweeps that took turns, the second with steps that are twice as long."""
    with this_machine():
        place = Place.made(tmp_path_factory.mktemp("turns") / "place")
        toy = (place.folder / "playbooks/toy.yaml").read_text().replace("[1x1, 2x2]", "[1x1]")
        for name, step_s in (("before", 0.03), ("after", 0.06)):
            text = f"{toy}params: {{step_s: {step_s}}}\n"
            (place.folder / f"playbooks/{name}.yaml").write_text(text)
        place.must("provision", "two")
        for name, repeats in (("before", 1), ("after", 1), ("after", 4), ("before", 4)):
            place.must("sweep", name, "--repeats", str(repeats))
        yield place
        place.end()


@pytest.mark.cluster
def test_two_sweeps_in_turns_are_told_apart(swept: Place) -> None:
    """4 trials of each suffice for one case; what differs is named, the gate ends with 3."""
    told = swept.json("compare", "before", "after", "--fail-if-slower", "3%", code=3)
    (case,) = told["cases"]
    assert (case["verdict"], case["gate"], case["shared_trials"]) == ("different", "slower", 0)
    assert len(case["first"]["throughputs"]) == len(case["second"]["throughputs"]) == 4
    assert case["p"] == pytest.approx(2 / 70)
    assert {"params.step_s", "playbook"} <= {item["what"] for item in told["differences"]}


@pytest.mark.cluster
def test_an_archive_is_compared_like_its_sweep(swept: Place) -> None:
    """Measured again from the logs in it."""
    swept.must("archive", "after", "--output", "after.tar.zst")
    pair = [
        json.loads(swept.run("compare", "before", second, "--json").stdout)["cases"]
        for second in ("after", "after.tar.zst")
    ]
    assert pair[0] == pair[1]


@pytest.mark.cluster
def test_a_sweep_beside_itself_is_no_pass(swept: Place) -> None:
    """Its trials are on both sides, so the gate has measured nothing."""
    done = swept.must("compare", "before", "before", "--fail-if-slower", "3%", code=5)
    assert (
        "4 trials on both sides tell nothing of two runs: compare with another sweep" in done.stdout
    )
    assert "NO PASS" in done.stdout
