"""results.json, results.csv and DLPerf's result files: what is not known is said nowhere."""

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies
from syrupy.assertion import SnapshotAssertion

from orchestrator import report
from orchestrator.model.report import Layout, LoneLog, Report
from tests.report.pages import REPORTS
from tests.report.test_numbers import DRAWN
from tests.reported import LOG, SEED_AMP, csv_rows, folder, results, sweep

SEED_DRAWN = strategies.integers(0, len(DRAWN) - 1)
PLACE = ("placement", "nodes", "gpus_per_node", "world_size", "global_batch_size", "data_parallel")


def read(found: Report) -> Any:
    """Return results.json as any reader of JSON gets it."""
    document = report.document(found)
    read_again = json.loads(json.dumps(document, allow_nan=False))
    assert read_again == document
    return read_again


def middle(values: list[float]) -> float | None:
    """Return the median, None of nothing."""
    ordered, half = sorted(values), len(values) // 2
    if not ordered:
        return None
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


@pytest.mark.parametrize("name", ["stopped", "logs"])
def test_files_for_programs_read_as_recorded(name: str, snapshot: SnapshotAssertion) -> None:
    """Which fields there are, and where; their numbers are computed again below."""
    found = REPORTS[name]()
    document = json.dumps(report.document(found), indent=1, allow_nan=False, ensure_ascii=False)
    assert {"json": document.splitlines(), "csv": report.csv_text(found).splitlines()} == snapshot


@pytest.mark.parametrize("number", range(len(DRAWN)))
def test_numbers_of_cases_follow_from_their_trials(number: int) -> None:
    """Unrounded, and null, never 0 or 1.0, where trials do not give them."""
    found = DRAWN[number]()
    document = read(found)
    bases = {
        settings(case): case["median"]
        for case in document["cases"]
        if case["case"]["world_size"] == 1
    }
    for case, result in zip(document["cases"], found.results, strict=True):
        valid = [trial for trial in case["trials"] if trial["state"] == "valid"]
        values, ranks = [trial["throughput"] for trial in valid], case["case"]["world_size"]
        median, base = middle(values), bases.get(settings(case))
        assert case["median"] == median
        assert case["mean"] == (pytest.approx(math.fsum(values) / len(values)) if values else None)
        assert [case["min"], case["max"]] == ([min(values), max(values)] if values else [None] * 2)
        several = median is not None and len(values) > 1
        assert case["spread"] == ((max(values) - min(values)) / median if several else None)
        covered = 1 - 2 * 0.5 ** len(values)  # of at most 7 values, as the seeds' tables say
        ends = {"low": min(values), "high": max(values), "coverage": covered} if several else None
        assert case["interval"] == ends
        speedup = median / base if median and base else None
        assert (case["speedup"], case["efficiency"]) == (speedup, speedup and speedup / ranks)
        interval = case["speedup_interval"]
        assert not interval or interval["low"] < speedup < interval["high"]
        needed = sum(trial["state"] != "not-needed" for trial in case["trials"])
        assert case["trials_planned"] == (found.trials_planned or needed)
        assert case["trials_valid"] == len(values)
        for key, of_trials in (("latency_s", middle), ("energy_per_sample_j", middle)):
            assert case[key] == of_trials([it[key] for it in valid if it[key] is not None])
        known = [it["memory_mib"] for it in valid if it["memory_mib"] is not None]
        assert case["memory_mib"] == max(known, default=None)
        flops, batch = found.step_flops.get(result.case), case["case"]["global_batch_size"]
        each = flops * median / batch / ranks / 1e12 if flops and median else None
        assert case["tflops_per_gpu"] == (each and pytest.approx(each))
        for one in case["published"]:
            assert one["difference"] == (median and pytest.approx(median / one["throughput"] - 1))


def settings(case: Mapping[str, Any]) -> str:
    """Return all that a case has in common with the 1x1 case of its speedup."""
    return str([(key, value) for key, value in case["case"].items() if key not in PLACE])


@hypothesis.given(SEED_DRAWN)
def test_csv_has_the_numbers_of_results_json(number: int) -> None:
    """A row for each case; what is null there is empty here."""
    found = DRAWN[number]()
    for row, case in zip(csv_rows(found), read(found)["cases"], strict=bool(found.results)):
        first: dict[str, Any] = next(iter(case["published"]), {})
        parts = ("low", "high", "coverage")
        expected = {
            **{f"{key}_samples_per_s": case[key] for key in ("median", "mean", "min", "max")},
            **{f"interval_{key}": (case["interval"] or {}).get(key) for key in parts},
            **{f"speedup_{key}": (case["speedup_interval"] or {}).get(key) for key in parts},
            **{key: case[key] for key in ("spread", "speedup", "efficiency", "trials_valid")},
            **{key: case[key] for key in ("latency_s", "memory_mib", "tflops_per_gpu")},
            "energy_per_sample_j": case["energy_per_sample_j"],
            "published_samples_per_s": first.get("throughput"),
            "difference": first.get("difference"),
            "node_num": case["case"]["nodes"],
            "gpu_num_per_node": case["case"]["gpus_per_node"],
            "batch_size_per_device": case["case"]["micro_batch_size"],
            "global_batch_size": case["case"]["global_batch_size"],
            "trials": len(case["trials"]),
        }
        assert {key: float(row[key]) if row[key] else None for key in expected} == expected
        words = ("name", "transport", "energy_source")
        assert [row[key] for key in words] == [case[key] or "" for key in words]
        assert row["marks"].split() == [mark["code"] for mark in case["marks"]]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd|' /C calc'!A1", "'=cmd|' /C calc'!A1"),
        *[(f"{sign}SUM(A1)", f"'{sign}SUM(A1)") for sign in "+-@"],
        ("\t=1", "' =1"),
        ("\r=1", "' =1"),
        ("  =1", "'  =1"),
        ("a\r=1", "a =1"),
        ("a\n=1", "a =1"),
        ('a,"=1"', 'a,"=1"'),
        ("a=1", "a=1"),
    ],
)
def test_csv_has_no_cell_that_a_spreadsheet_would_run(text: str, cell: str) -> None:
    """Text that begins like a formula gets an apostrophe, and no text begins a row of its own."""
    lone = LoneLog(text, replace(LOG, config={"precision": text}), 1.0, ())
    (row,) = csv_rows(folder(lone))
    assert (row["log"], row["precision"]) == (cell, cell)
    (row,) = csv_rows(sweep(results({"1x1": (1.0,)}, device=text, params=((text, 1),))))
    assert (row["device"], row["params"]) == (cell, f"{cell}=1")


def test_csv_of_logs_has_a_row_for_each_log_if_there_is_no_case() -> None:
    bare = LoneLog("b.txt", replace(LOG, config={}), None, ())
    lone = (LoneLog("gpu8.txt", LOG, 6098.37, ()), bare)
    assert report.csv_text(folder(*lone)) == (
        "log,world_size,micro_batch_size,precision,samples_per_s\n"
        "gpu8.txt,8,128,amp,6098.37\n"
        "b.txt,,,,\n"
    )
    text = report.csv_text(folder(*lone, found=results({"1x1": (802.9,)})))
    assert [row["median_samples_per_s"] for row in csv.DictReader(io.StringIO(text))] == ["802.9"]
    assert report.csv_text(folder()) == ""


def test_transports_are_those_of_valid_trials_else_of_all() -> None:
    one, two = results({"1x1": (800.0,), "2x8": (11991.94, 9000.0)})
    fast, slow = two.trials
    slow = replace(slow, state="invalid", transport="Socket ib0")
    both = replace(two, trials=(replace(fast, transport="IB mlx5_0"), slow))
    cases = read(sweep((one, both)))["cases"]
    assert [case["transport"] for case in cases] == [None, "IB mlx5_0"]
    lost = replace(two, trials=(slow, replace(fast, state="invalid", transport="-")))
    assert lost.transport == "Socket ib0"


def medians(found: Report) -> dict[str, dict[str, float]]:
    """Return the medians in DLPerf's result files by file, then by case."""
    files: Any = report.exports(found)
    return {
        file: {
            case: numbers["median_speed"]
            for cases in it.values()
            for case, numbers in cases.items()
        }
        for file, it in files.items()
    }


SMALL = results({"1x8": (38.28,)}, params=(("group", "DP"),))
LARGE = results({"1x8": (24.92,)}, params=(("group", "MP"),))
NAMED = {SMALL[0].case: "DP_8x1x1_16", LARGE[0].case: "MP_1x8x1_16"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            sweep(
                (
                    *results({"1x1": (367.29,)}, precision="fp32", micro_batch_size=128),
                    *results({"1x1": (802.9,)}, params=(("loss_scale", "dynamic"),)),
                    *results({"1x1": (827.86,)}, params=(("loss_scale", 128.0),)),
                )
            ),
            {
                "fp32_b128_result.json": {"1n1g": 367.29},
                "amp_b256_lossscaledynamic_result.json": {"1n1g": 802.9},
                "amp_b256_lossscale128.0_result.json": {"1n1g": 827.86},
            },
        ),
        (
            sweep(
                (
                    *results({"1x1": (367.29,)}, params=(("scale", "1e-4"),)),
                    *results({"1x1": (368.29,)}, params=(("scale", "1e4"),)),
                )
            ),
            {
                "amp_b256_scale1e4_1_result.json": {"1n1g": 367.29},
                "amp_b256_scale1e4_2_result.json": {"1n1g": 368.29},
            },
        ),
        (
            sweep((*SMALL, *LARGE), layout=Layout(kind="groups"), names=NAMED),
            {
                "_result.json": {"DP_8x1x1_16": 38.28, "MP_1x8x1_16": 24.92},
            },
        ),
        (
            sweep((*SMALL, *LARGE), layout=Layout(kind="groups")),
            {
                "amp_b256_groupDP_result.json": {"1n8g": 38.28},
                "amp_b256_groupMP_result.json": {"1n8g": 24.92},
            },
        ),
        (folder(), {}),
    ],
    ids=["loss scales", "equal names", "named", "named without names", "no case"],
)
def test_result_files_of_dlperf_never_mix_cases(
    found: Report, expected: dict[str, dict[str, float]]
) -> None:
    """Each has a file of its own, where DLPerf's scripts put all under one key."""
    assert json.dumps(medians(found)) == json.dumps(expected)  # in the same order


def test_result_files_of_dlperf_say_nothing_of_what_is_not_known() -> None:
    """No 0 for a failed case, and null instead of 1.0 for a speedup without a 1n1g case."""
    assert report.exports(sweep(results({"1x4": (None,), "1x8": (6154.66,)}))) == {
        "_result.json": {
            "r50": {
                "1n8g": {
                    "average_speed": 6154.66,
                    "batch_size_per_device": 256,
                    "median_speed": 6154.66,
                    "speedup": None,
                }
            }
        }
    }


def test_json_of_the_seeds_largest_case_has_its_printed_numbers() -> None:
    """Seed 003 prints 22551.16 and 28.09 for 4x8."""
    largest = read(sweep(results(SEED_AMP)))["cases"][2]
    assert (largest["median"], largest["min"], largest["max"]) == (22551.16, 22053.98, 23049.75)
    assert largest["speedup"] == 22551.16 / 802.9
    assert largest["interval"] == {"low": 22053.98, "high": 23049.75, "coverage": 0.9375}
