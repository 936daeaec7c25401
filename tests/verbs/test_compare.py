"""compare on the command line: what it compares, refuses and writes."""

import json
from collections.abc import Iterator

import pytest

from orchestrator.verbs.compare import percent
from tests.cli.here import Here
from tests.comparing.reports import SLOWER, TRIALS, Told
from tests.conftest import Place, this_machine


def lay(bare: Here, name: str, told: Told) -> str:
    """Write a results.json in a file of that name; its name."""
    bare.write(f"{name}.json", json.dumps(told.document))
    return f"{name}.json"


def test_files_are_compared_and_reports_written(bare: Here) -> None:
    """One document of JSON, and Markdown; exit 3, since a case is slower."""
    first = lay(bare, "a", Told({"1x1": TRIALS, "2x8": TRIALS}))
    second = lay(bare, "b", Told({"1x1": SLOWER, "2x8": TRIALS}, source="sweep-b"))
    words = ("compare", first, second, "--fail-if-slower", "3%", "--markdown", "page.md")
    told = bare(*words, "--json", code=3).document
    assert [case["verdict"] for case in told["cases"]] == ["different", "same"]
    assert told["cases"][0]["bound"]["how"] == "usual"
    assert "FAILED: 1 case slower by more than 3.00%" in (bare.folder / "page.md").read_text()
    assert "FAILED: 1 case slower by more than 3.00%\n" in bare(*words, code=3).out


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
def test_what_cannot_be_compared_is_refused(bare: Here, second: str, code: str) -> None:
    first = lay(bare, "a", Told({"1x1": TRIALS}))
    lay(bare, "other", Told({"2x8": TRIALS}))
    lay(bare, "unit", Told({"1x1": TRIALS}, report={"unit": "sequences/s"}))
    bare.write("broken.json", '{"version": 1}')
    assert bare("compare", first, second, "--json", code=2).codes == [code]


@pytest.mark.parametrize(("text", "share"), [("3%", 0.03), ("0.5", 0.005)])
def test_percent(text: str, share: float) -> None:
    assert percent(text) == share


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
    said = "4 trials on both sides tell nothing of two runs: compare with another sweep"
    assert said in done.stdout
    assert "NO PASS" in done.stdout
