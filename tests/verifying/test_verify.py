"""verify finds nothing in an untouched sweep, and every byte that was changed."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.experiment import Method
from orchestrator.model.log import Rule
from orchestrator.report import Language
from orchestrator.state import archives
from orchestrator.state.archives import opened
from orchestrator.state.files import dumps
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep
from tests.verifying import sweeps
from tests.verifying.forging import edit, found, of_case, reseal

BYTES = {"bert": 70, "tensorflow": 60, "gpt": 60, "pytorch": 30}
"""How many random bytes are changed in the files of each."""


@pytest.mark.parametrize("name", sweeps.ALL)
def test_nothing_differs_in_an_untouched_sweep(untouched: dict[str, Sweep], name: str) -> None:
    """Of every workload; all numbers are derived, and its states too."""
    findings = check_sweep(untouched[name])
    assert findings.differences == []
    files = [path for path in untouched[name].folder.rglob("*") if path.is_file()]
    assert findings.files == len(files) - 1  # the list of checksums has none of its own
    assert findings.numbers > 20
    assert not {"how gangs ended", "some reasons"} & findings.not_derived.keys()


@pytest.mark.parametrize("name", ["pytorch", "gpt", "marked", "on_cpus"])
def test_nothing_differs_in_chinese_reports(tmp_path: Path, name: str) -> None:
    """Heads, states and meanings of codes are other words; the numbers are found all the same."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.ALL[name](), "zh")
    findings = check_sweep(sweep)
    assert findings.differences == []
    english = sweeps.collected(Store(tmp_path / "en"), sweeps.ALL[name]())
    assert findings.numbers == check_sweep(english).numbers


def test_reports_in_both_languages_are_checked(tmp_path: Path) -> None:
    """Where the Chinese one stands beside the English one, a change of either is found."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.ALL["gpt"]())
    sweep = sweeps.collected_again(sweep, "zh")
    assert check_sweep(sweep).differences == []
    for name in ("report.md", "report.zh.md", "report.html", "report.zh.html"):
        path = sweep.folder / name
        content = path.read_bytes()
        path.write_bytes(content.replace(b"39.03", b"93.03"))
        assert name in {difference.file for difference in check_sweep(sweep).differences}
        path.write_bytes(content)
    (sweep.folder / "figures/scaling.fr.svg").write_text("<svg/>")
    stale = {difference.file for difference in check_sweep(sweep).differences}
    assert "figures/scaling.fr.svg" in stale


def test_marks_that_keep_trials_out_are_derived_too(tmp_path: Path) -> None:
    """By --strict, what happened to its machines is a reason."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.marked(), strict=True)
    assert check_sweep(sweep).differences == []
    document = json.loads((sweep.folder / "results.json").read_text())
    assert [case["trials_valid"] for case in document["cases"]] == [4, 4, 7]


@pytest.mark.parametrize(("old", "valid"), [((1,), 6), ((1, 2, 3, 4), 4), ((1, 2, 3), 4)])
def test_what_most_trials_ran_under_is_derived_too(
    tmp_path: Path, old: tuple[int, ...], valid: int
) -> None:
    """The kernel was updated after some of seven trials; the majority's is the case's."""
    name = "1n1g-r50_b128_fp32_{}"
    recorded = replace(sweeps.oneflow(), kernels={name.format(it): "4.19" for it in old})
    sweep = sweeps.collected(Store(tmp_path), recorded)
    assert check_sweep(sweep).differences == []
    document = json.loads((sweep.folder / "results.json").read_text())
    assert document["cases"][0]["trials_valid"] == valid


@pytest.mark.parametrize("rule", ["rates", "arithmetic"])
def test_means_of_rates_are_derived(tmp_path: Path, rule: Rule) -> None:
    """By the rule of TensorFlow's playbooks too; a throughput that was edited is wrong by it."""
    method = Method(repeats=3, iterations=140, window=(19, 119), rule=rule)
    sweep = sweeps.collected(Store(tmp_path), replace(sweeps.bert(), method=method))
    findings = check_sweep(sweep)
    assert findings.differences == []
    assert "throughputs" not in findings.not_derived
    edit(sweep.folder / "results.json", lambda it: of_case(it, 1)["trials"][0].update(throughput=9))
    derived = [it.derived for it in check_sweep(sweep).differences if it.written == "9"]
    assert derived
    assert all(float(it) == pytest.approx(150.5) for it in derived)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_telemetry_that_cannot_be_placed_is_marked(tmp_path: Path, language: Language) -> None:
    """The program of one trial sets a zone of its own, eight hours away: no window is guessed."""
    recorded = sweeps.marked()
    name = "1n1g-r50_b256_amp_5"
    seen = {**recorded.seen, name: replace(recorded.seen[name], went_at=1e9)}
    sweep = sweeps.collected(Store(tmp_path), replace(recorded, seen=seen), language)
    assert check_sweep(sweep).differences == []
    trials = json.loads((sweep.folder / "results.json").read_text())["cases"][0]["trials"]
    (mark,) = [it for it in trials[4]["marks"] if it["code"] == "NOT-PLACED"]
    assert "telemetry not placed: the log's clock is not that of node vs1" in mark["message"]
    assert [state["span"] for state in trials[4]["machines"]] == ["run"]
    assert trials[4]["energy_j"] is None


def test_a_median_without_a_majority_is_not_derived(tmp_path: Path) -> None:
    """Three of seven trials ran under each of two kernels, one under a third: none counts."""
    kernels = ("4.19", "4.19", "4.19", "5.10", "5.10", "5.10", "6.1")
    names = (f"1n1g-r50_b128_fp32_{repeat}" for repeat in range(1, 8))
    recorded = replace(sweeps.oneflow(), kernels=dict(zip(names, kernels, strict=True)))
    sweep = sweeps.collected(Store(tmp_path), recorded)
    assert check_sweep(sweep).differences == []
    document = json.loads((sweep.folder / "results.json").read_text())
    assert (document["cases"][0]["median"], document["cases"][0]["trials_valid"]) == (None, 0)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_differs_where_every_trial_failed(tmp_path: Path, language: Language) -> None:
    """No trial has a log, so no table has a column for it."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.failed(), language)
    assert check_sweep(sweep).differences == []


def test_trials_that_were_not_needed_are_derived_too(tmp_path: Path) -> None:
    """By the interval of the others; with a narrower one asked for, they were left out wrongly."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.settled())
    assert check_sweep(sweep).differences == []
    document = json.loads((sweep.folder / "results.json").read_text())
    states = [trial["state"] for trial in document["cases"][0]["trials"]]
    assert states == ["valid"] * 5 + ["not-needed"] * 2
    document["cases"][0]["trials"][6]["state"] = "planned"
    (sweep.folder / "results.json").write_text(dumps(document))
    found = check_sweep(sweep).differences
    assert {"cases[0].trials[6].state", "sha256"} == {difference.place for difference in found}


def test_lines_of_a_number_without_a_clock_are_derived(
    untouched: dict[str, Sweep], tmp_path: Path
) -> None:
    """Wrong lines of what a program reports are found."""
    name = "1n8g/r50_b256_amp_1"
    sweep = sweeps.copied(untouched["tensorflow"], tmp_path)
    outcome = sweep.folder / f"logs/{name}.json"
    assert json.loads(outcome.read_text())["lines"] == [335, 335]
    assert found(sweep, lambda it: reseal(it, name, lines=[334, 335])) == {f"logs/{name}.json"}


def test_nothing_differs_in_an_archive(untouched: dict[str, Sweep], tmp_path: Path) -> None:
    """Opened elsewhere, it is the same sweep."""
    archives.pack(untouched["bert"], tmp_path / "bert.tar.zst")
    with opened(Store(tmp_path), str(tmp_path / "bert.tar.zst")) as opening:
        findings = check_sweep(opening.sweep)
    assert findings.differences == []
    assert findings.files == check_sweep(untouched["bert"]).files


@pytest.mark.parametrize("name", BYTES)
def test_a_changed_byte_is_found_and_its_file_named(
    untouched: dict[str, Sweep], tmp_path: Path, name: str
) -> None:
    """One of any log, outcome, attempt, record, event or report: 220 random ones in all."""
    sweep, chance = sweeps.copied(untouched[name], tmp_path), random.Random(f"12 {name}")
    files = sorted(path for path in sweep.folder.rglob("*") if path.is_file())
    files = [path for path in files if path.name != "SHA256SUMS" and path.stat().st_size]
    for _ in range(BYTES[name]):
        path = chance.choice(files)
        content = path.read_bytes()
        at = chance.randrange(len(content))
        changed = bytes([content[at] ^ chance.randrange(1, 256)])
        path.write_bytes(content[:at] + changed + content[at + 1 :])
        named = {difference.file for difference in check_sweep(sweep).differences}
        assert path.relative_to(sweep.folder).as_posix() in named, (path, at, changed)
        path.write_bytes(content)
    assert check_sweep(sweep).differences == []


def test_a_changed_list_of_checksums_is_found(untouched: dict[str, Sweep], tmp_path: Path) -> None:
    """Each of its bytes; the file that a line is about is named, or the list itself."""
    sweep, chance = sweeps.copied(untouched["gpt"], tmp_path), random.Random(13)
    path = sweep.folder / "SHA256SUMS"
    content = path.read_bytes()
    for at in (chance.randrange(len(content)) for _ in range(40)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert check_sweep(sweep).differences, at
    path.unlink()
    (difference,) = check_sweep(sweep).differences
    assert (difference.file, difference.written) == ("SHA256SUMS", "no such file")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"cases": 3}', b"[" * 9000, b"\xff"])
@pytest.mark.parametrize("name", ["results.json", "sweep.json", "logs/1n1g/r50_b96_fp32_1.json"])
def test_documents_of_any_form_are_differences(
    untouched: dict[str, Sweep], tmp_path: Path, name: str, content: bytes
) -> None:
    """Whatever stands in a record, nothing breaks."""
    sweep = sweeps.copied(untouched["bert"], tmp_path)
    (sweep.folder / name).write_bytes(content)
    assert name in {difference.file for difference in check_sweep(sweep).differences}


def without_words(document: Any) -> None:
    """A mark that says nothing: one byte of its key is another."""
    mark = document["cases"][0]["marks"][0]
    mark["messagf"] = mark.pop("message")


def without_a_code(document: Any) -> None:
    mark = document["cases"][0]["marks"][0]
    mark["code "] = mark.pop("code")


def throughputs_of(value: float) -> Callable[[Any], None]:
    """Say that all valid trials have this throughput, which is none."""

    def change(document: Any) -> None:
        for case in document["cases"]:
            for trial in case["trials"]:
                trial["throughput"] = value

    return change


def without_a_rule(document: Any) -> None:
    document["cases"][0]["trials"][0]["rule"] = "sum"


def ranks_that_are_lists(document: Any) -> None:
    for end in document["tasks"]:
        end["node_rank"] = [end["node_rank"]]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("results.json", without_words),
        ("results.json", without_a_code),
        ("results.json", without_a_rule),
        *(("results.json", throughputs_of(it)) for it in (0, 0.0, -1.0, 10**400, 1e308, 5e-324)),
        ("logs/1n1g/r50_b256_amp_1.json", ranks_that_are_lists),
    ],
)
def test_values_of_any_kind_are_differences(
    untouched: dict[str, Sweep], tmp_path: Path, name: str, change: Callable[[Any], None]
) -> None:
    """A record that still is JSON, but holds nothing, or a list, where a word or number was."""
    sweep = sweeps.copied(untouched["marked"], tmp_path)
    edit(sweep.folder / name, change)
    assert name in {difference.file for difference in check_sweep(sweep).differences}
