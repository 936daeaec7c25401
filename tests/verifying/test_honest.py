"""verify raises no alarm over sweeps that nobody forged, whatever happened in them."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from orchestrator.model.experiment import Method
from orchestrator.report import Language
from orchestrator.state import archives, contents
from orchestrator.state.archives import opened
from orchestrator.state.files import dumps
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep
from tests.verifying import honest, sweeps
from tests.verifying.forging import RESULTS, edit

FEW, MANY = range(12), range(12, 412)


def check(folder: Path, seed: int) -> None:
    """Draw a sweep by a seed: nothing differs."""
    chance = Random(f"honest {seed}")
    recorded, strict = honest.drawn(chance), chance.random() < 0.2
    language: Language = "zh" if chance.random() < 0.5 else "en"
    sweep = sweeps.collected(Store(folder / str(seed)), recorded, language, strict=strict)
    assert check_sweep(sweep).differences == [], (seed, recorded.workload, recorded.method)


@pytest.mark.parametrize("seed", FEW)
def test_nothing_differs_in_an_honest_sweep(tmp_path: Path, seed: int) -> None:
    """Of damaged logs, retried and interrupted trials, torn observers, in either language."""
    check(tmp_path, seed)


@pytest.mark.cluster
@pytest.mark.long
def test_nothing_differs_in_many_honest_sweeps(tmp_path: Path) -> None:
    """Some minutes, for the combinations that nobody thought of."""
    for seed in MANY:
        check(tmp_path, seed)


@pytest.mark.parametrize("name", sweeps.ALL)
def test_all_numbers_of_an_untouched_sweep_are_derived(
    untouched: dict[str, Sweep], name: str
) -> None:
    """Of every workload."""
    findings = check_sweep(untouched[name])
    assert findings.differences == []
    files = [path for path in untouched[name].folder.rglob("*") if path.is_file()]
    assert findings.files == len(files) - 1  # the list of checksums has none of its own
    assert findings.numbers > 20
    assert findings.not_derived == {}


def collect(
    folder: Path, recorded: sweeps.Recorded, language: Language = "en", *, strict: bool = False
) -> tuple[Sweep, Any]:
    """Collect a sweep in which nothing differs; return it with its results.json."""
    sweep = sweeps.collected(Store(folder), recorded, language, strict=strict)
    assert check_sweep(sweep).differences == []
    return sweep, json.loads((sweep.folder / RESULTS).read_text())


@pytest.mark.parametrize("name", ["pytorch", "gpt", "marked", "on_cpus", "failed"])
def test_nothing_differs_in_chinese_reports(tmp_path: Path, name: str) -> None:
    collect(tmp_path, {**sweeps.ALL, "failed": sweeps.failed}[name](), "zh")


def test_nothing_differs_where_every_trial_failed(tmp_path: Path) -> None:
    """No trial has a log, so no table has a column for it."""
    collect(tmp_path, sweeps.failed())


def test_marks_keep_trials_out_of_a_strict_report(tmp_path: Path) -> None:
    _, document = collect(tmp_path, sweeps.marked(), strict=True)
    assert [case["trials_valid"] for case in document["cases"]] == [4, 4, 7]


NEW, OLD, OTHER = "5.10", "4.19", "6.1"


@pytest.mark.parametrize(
    ("kernels", "valid"),
    [
        ((OLD, NEW, NEW, NEW, NEW, NEW, NEW), 6),
        ((OLD, OLD, OLD, OLD, NEW, NEW, NEW), 4),
        ((OLD, OLD, OLD, NEW, NEW, NEW, NEW), 4),
        ((OLD, OLD, OLD, NEW, NEW, NEW, OTHER), 0),
    ],
)
def test_the_kernel_of_most_trials_is_the_case_s(
    tmp_path: Path, kernels: tuple[str, ...], valid: int
) -> None:
    """Without a majority no trial counts."""
    names = (f"1n1g-r50_b128_fp32_{repeat}" for repeat in range(1, 8))
    recorded = replace(sweeps.oneflow(), kernels=dict(zip(names, kernels, strict=True)))
    _, document = collect(tmp_path, recorded)
    case = document["cases"][0]
    assert (case["trials_valid"], case["median"] is None) == (valid, valid == 0)


@pytest.mark.parametrize("rule", ["rates", "arithmetic"])
def test_a_mean_of_rates_is_derived(tmp_path: Path, rule: str) -> None:
    """By the rule of TensorFlow's playbooks too; another throughput is wrong by it."""
    method = Method.model_validate(
        {"repeats": 3, "iterations": 140, "window": (19, 119), "rule": rule}
    )
    sweep, _ = collect(tmp_path, replace(sweeps.bert(), method=method))
    assert check_sweep(sweep).not_derived == {}
    edit(sweep.folder / RESULTS, lambda it: it["cases"][1]["trials"][0].update(throughput=9))
    derived = [it.derived for it in check_sweep(sweep).differences if it.written == "9"]
    assert derived
    assert all(float(it) == pytest.approx(150.5) for it in derived)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_telemetry_that_cannot_be_placed_is_marked(tmp_path: Path, language: Language) -> None:
    """The program of one trial sets a zone of its own, eight hours away: no window is guessed."""
    recorded = sweeps.marked()
    name = "1n1g-r50_b256_amp_5"
    seen = {**recorded.seen, name: replace(recorded.seen[name], went_at=1e9)}
    _, document = collect(tmp_path, replace(recorded, seen=seen), language)
    trial = document["cases"][0]["trials"][4]
    (mark,) = [it for it in trial["marks"] if it["code"] == "NOT-PLACED"]
    assert "telemetry not placed: the log's clock is not that of node vs1" in mark["message"]
    assert [state["span"] for state in trial["machines"]] == ["run"]
    assert trial["energy_j"] is None


def test_trials_that_were_not_needed_are_derived(tmp_path: Path) -> None:
    """By the interval of the others."""
    sweep, document = collect(tmp_path, sweeps.settled())
    states = [trial["state"] for trial in document["cases"][0]["trials"]]
    assert states == ["valid"] * 5 + ["not-needed"] * 2
    document["cases"][0]["trials"][6]["state"] = "planned"
    (sweep.folder / RESULTS).write_text(dumps(document))
    found = check_sweep(sweep).differences
    assert {"cases[0].trials[6].state", "sha256"} == {difference.place for difference in found}


def test_nothing_differs_in_an_archive(untouched: dict[str, Sweep], tmp_path: Path) -> None:
    archives.pack(untouched["bert"], tmp_path / "bert.tar.zst")
    with opened(Store(tmp_path), str(tmp_path / "bert.tar.zst")) as opening:
        findings = check_sweep(opening.sweep)
    assert findings.differences == []
    assert findings.files == check_sweep(untouched["bert"]).files


def test_a_renamed_folder_is_the_same_sweep(pytorch: Sweep, tmp_path: Path) -> None:
    """Its name is no evidence: verify and collect go by the id in its record."""
    pytorch.folder.rename(tmp_path / "published")
    renamed = Store(tmp_path).sweep(str(tmp_path / "published"))
    assert renamed.id == pytorch.id
    assert check_sweep(renamed).differences == []


def test_reports_of_another_version_agree_and_its_code_is_named(pytorch: Sweep) -> None:
    edit(pytorch.folder / RESULTS, lambda it: it["written"].update(code="0" * 64))
    contents.keep_sums(pytorch)
    findings = check_sweep(pytorch)
    assert findings.differences == []
    assert "one version" in findings.not_derived


def test_a_workload_that_is_not_installed_is_no_difference(pytorch: Sweep) -> None:
    """Checksums and numbers are checked; reports are not made again."""
    edit(pytorch.folder / "sweep.json", lambda it: it["plan"].update(workload="gone"))
    contents.keep_sums(pytorch)
    findings = check_sweep(pytorch)
    assert findings.differences == []
    assert findings.not_derived["reports"]
