"""results.json, results.csv and DLPerf's result files: what is not known is said nowhere."""

import json
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LoneLog
from tests.reported import (
    LOG,
    PUBLISHED,
    SEED_AMP,
    SHA256,
    csv_rows,
    folder,
    logged,
    results,
    section,
    sweep,
    tables,
)

COLUMNS = [
    *("node_num", "gpu_num_per_node", "batch_size_per_device", "precision", "device"),
    *("global_batch_size", "accumulation_steps", "tensor_parallel", "pipeline_parallel"),
    *("params", "median_samples_per_s", "mean_samples_per_s", "min_samples_per_s"),
    *("max_samples_per_s", "spread", "interval_low", "interval_high"),
    *("interval_coverage", "speedup", "efficiency", "trials_valid", "trials", "marks"),
    *("transport", "name", "latency_s", "memory_mib", "tflops_per_gpu"),
    *("published_samples_per_s", "published_framework", "published_source", "difference"),
    *("published_hardware", "energy_per_sample_j", "energy_source", "speedup_low"),
    *("speedup_high", "speedup_coverage", "others_cpus"),
]


def test_csv_has_a_row_for_each_case_with_unrounded_numbers() -> None:
    """Every statistic of the case as a reader of numbers needs it."""
    found = sweep(results(SEED_AMP, params=(("loss_scale", "dynamic"),)))
    rows = csv_rows(found)
    assert len(rows) == 3
    largest = rows[2]
    assert [*largest] == COLUMNS
    expected = {
        "node_num": "4",
        "gpu_num_per_node": "8",
        "batch_size_per_device": "256",
        "precision": "amp",
        "device": "cuda",
        "global_batch_size": "8192",
        "accumulation_steps": "1",
        "tensor_parallel": "1",
        "pipeline_parallel": "1",
        "params": "loss_scale=dynamic",
        "median_samples_per_s": "22551.16",
        "min_samples_per_s": "22053.98",
        "max_samples_per_s": "23049.75",
        "interval_low": "22053.98",
        "interval_high": "23049.75",
        "interval_coverage": "0.9375",
        "trials_valid": "5",
        "trials": "5",
        "marks": "",
        "transport": "",
    }
    assert {key: largest[key] for key in expected} == expected
    assert float(largest["speedup"]) == 22551.16 / 802.9
    assert float(largest["efficiency"]) == 22551.16 / 802.9 / 32
    assert float(largest["mean_samples_per_s"]) == pytest.approx(22599.43)


def test_csv_leaves_empty_what_is_not_known() -> None:
    """No zero, no nan: a failed case has no number, and one without a 1x1 no speedup."""
    failed, alone = csv_rows(sweep(results({"1x4": (None,), "1x8": (6154.66,)})))
    numbers = COLUMNS[COLUMNS.index("median_samples_per_s") :][:10]
    assert {failed[column] for column in numbers} == {""}
    assert (failed["trials_valid"], failed["trials"]) == ("0", "1")
    assert (alone["median_samples_per_s"], alone["speedup"], alone["efficiency"]) == (
        *("6154.66", "", ""),
    )


def test_a_single_trial_has_no_spread_and_no_interval_in_any_file() -> None:
    """One number is a median, and nothing of how trials scatter."""
    found = sweep(results({"1x1": (802.9,)}))
    (row,) = csv_rows(found)
    columns = ("median_samples_per_s", "spread", "interval_low", "interval_high")
    assert [row[name] for name in (*columns, "interval_coverage")] == ["802.9", "", "", "", ""]
    (result,) = json.loads(json.dumps(report.document(found)))["cases"]
    assert [result[name] for name in ("median", "spread", "interval")] == [802.9, None, None]
    (_, cells) = tables(section(report.markdown(found), "Cases at a glance"))[0]
    assert cells == ["1x1", "802.90", "n/a", "n/a", "1.00", "100.0%", "1/5"]


def test_csv_of_logs_has_a_row_for_each_log() -> None:
    """By their own headers; with cases in the folder, the table of cases is the only one."""
    bare = LoneLog("b.txt", replace(LOG, config={}), None, ())
    lone = (LoneLog("gpu8.txt", LOG, 6098.37, ()), bare)
    assert report.csv_text(folder(*lone)) == (
        "log,world_size,micro_batch_size,precision,samples_per_s\n"
        "gpu8.txt,8,128,amp,6098.37\n"
        "b.txt,,,,\n"
    )
    both = csv_rows(folder(*lone, found=results({"1x1": (802.9,)})))
    assert [row["median_samples_per_s"] for row in both] == ["802.9"]
    assert report.csv_text(folder()) == ""


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd|' /C calc'!A1", "'=cmd|' /C calc'!A1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
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


def test_json_has_every_number_unrounded_with_its_evidence() -> None:
    """From the median down to the lines of each log."""
    said = report.document(sweep(results(SEED_AMP)))
    document = json.loads(json.dumps(said, allow_nan=False))
    assert document == said
    largest = document["cases"][2]
    assert largest["case"]["placement"] == "4x8"
    assert (largest["case"]["world_size"], largest["case"]["global_batch_size"]) == (32, 8192)
    assert (largest["median"], largest["min"], largest["max"]) == (22551.16, 22053.98, 23049.75)
    assert largest["speedup"] == 22551.16 / 802.9
    assert largest["efficiency"] == 22551.16 / 802.9 / 32
    assert largest["interval"] == {"low": 22053.98, "high": 23049.75, "coverage": 0.9375}
    assert (largest["trials_planned"], largest["trials_valid"]) == (5, 5)
    assert largest["trials"][2] == {
        "trial": "4n8g-r50_b256_amp_3",
        "repeat": 3,
        "attempt": 1,
        "state": "valid",
        "throughput": 22978.13,
        "rate_mean": 22978.13,
        "measured_s": None,
        "latency_s": None,
        "memory_mib": None,
        "transport": None,
        "nodes": [],
        "beside": [],
        "problems": [],
        "marks": [],
        "log": "logs/4n8g/r50_b256_amp_3.log",
        "lines": [40, 140],
        "sha256": SHA256,
        "rule": "clock",
        "window": None,
        "provenance": {"driver": "440.33.01"},
        "machines": [],
        "energy_j": None,
        "energy_per_sample_j": None,
        "energy_source": None,
    }
    assert document["method"]["repeats"] == 5
    assert (document["window"], document["rule"]) == ([25, 125], "clock")


def test_json_says_null_for_what_is_not_known() -> None:
    """Absent is null: never 0, 1.0 or NaN."""
    document = report.document(sweep(results({"1x4": (None,)})))
    (case,) = json.loads(json.dumps(document, allow_nan=False))["cases"]
    absent = ("median", "mean", "min", "max", "spread", "interval", "speedup", "efficiency")
    assert {case[key] for key in absent} == {None}
    trial = case["trials"][0]
    assert (trial["throughput"], trial["log"], trial["lines"], trial["sha256"]) == (None,) * 4
    assert trial["problems"][0]["code"] == "PROGRAM-FAILED"


def test_json_of_logs_says_what_each_gave() -> None:
    """A log without the window has no lines; one without rates no rate."""
    bare = replace(LOG, start=None, rate=None, window=None, lines=None)
    problem = Problem("WINDOW", "why")
    found = folder(LoneLog("gpu8.txt", LOG, 6098.37, ()), LoneLog("b.txt", bare, None, (problem,)))
    document = json.loads(json.dumps(report.document(found), allow_nan=False))
    assert document["method"] is None
    assert document["cases"] == []
    assert document["logs"][0] == {
        "log": "gpu8.txt",
        "config": {"world_size": 8, "micro_batch_size": 128, "precision": "amp"},
        "steps": 99,
        "first_iteration": 1,
        "last_iteration": 99,
        "window": [20, 60],
        "rule": "clock",
        "throughput": 6098.37,
        "latency_s": None,
        "memory_mib": None,
        "transport": None,
        "rate": {"count": 99, "mean": 6011.64, "median": 6275.76},
        "lines": [40, 80],
        "sha256": SHA256,
        "problems": [],
    }
    second = document["logs"][1]
    assert [second[key] for key in ("throughput", "rate", "lines", "window")] == [None] * 4
    assert second["problems"] == [{"code": "WINDOW", "message": "why"}]


def test_transport_stands_in_every_row() -> None:
    """What a gang ran over is seen beside its number in JSON and CSV too."""
    one, two = results({"1x1": (800.0,), "2x8": (11991.94, 9000.0)})
    fast, slow = two.trials
    both = (
        replace(fast, transport="IB mlx5_0"),
        replace(slow, state="invalid", transport="Socket ib0"),
    )
    said = sweep((one, replace(two, trials=both)))
    assert [row["transport"] for row in csv_rows(said)] == ["", "IB mlx5_0"]
    cases = json.loads(json.dumps(report.document(said)))["cases"]
    assert [case["transport"] for case in cases] == [None, "IB mlx5_0"]
    assert [trial["transport"] for trial in cases[1]["trials"]] == ["IB mlx5_0", "Socket ib0"]


def test_trials_planned_are_those_that_are_there_where_no_plan_says() -> None:
    """A folder of three logs of a case promises three."""
    found = folder(found=results({"1x1": (800.0, None, 804.0)}))
    cases = json.loads(json.dumps(report.document(found)))["cases"]
    assert cases[0]["trials_planned"] == 3


def test_published_results_are_in_json_all_and_in_csv_the_first() -> None:
    """With the difference of the measured median; none, where there is no median."""
    found = sweep(results({"1x1": (None,), "4x8": (24806.276,)}))
    failed, four = (result.case for result in found.results)
    older = replace(PUBLISHED, framework="ngc-pytorch-2023", throughput=21259.81)
    known = {four: (PUBLISHED, older), failed: (replace(PUBLISHED, throughput=802.9),)}
    found = replace(found, published=known)
    cases = json.loads(json.dumps(report.document(found), allow_nan=False))["cases"]
    assert [result["framework"] for result in cases[1]["published"]] == [
        *("ngc-pytorch", "ngc-pytorch-2023"),
    ]
    assert cases[1]["published"][0] == {
        "suite": "dlperf",
        "framework": "ngc-pytorch",
        "model": "resnet50v1.5",
        "precision": "amp-dynamic",
        "batch": "256",
        "throughput": 22551.16,
        "unit": "images/sec",
        "source": "DLPerf README",
        "hardware": "V100-SXM2-16GB",
        "interconnect": None,
        "difference": pytest.approx(0.1, abs=1e-9),
    }
    assert cases[0]["published"][0]["difference"] is None
    columns = ("published_samples_per_s", "published_framework", "published_source")
    first, second = csv_rows(found)
    assert [second[column] for column in columns] == ["22551.16", "ngc-pytorch", "DLPerf README"]
    assert float(second["difference"]) == pytest.approx(0.1, abs=1e-9)
    assert (first["published_hardware"], second["published_hardware"]) == ("V100-SXM2-16GB",) * 2
    assert (first["published_samples_per_s"], first["difference"]) == ("802.9", "")
    (bare,) = csv_rows(sweep(results({"1x1": (802.9,)})))
    assert {bare[column] for column in (*columns, "difference")} == {""}


def test_latency_memory_and_operations_are_kept_unrounded() -> None:
    """OneFlow GPT's 2D_PP_2x4x4 of seed 002: 13.117188 s and 11958 MiB; names and TFLOP/s too."""
    (found,) = results({"4x8": (512 / 13.117188,)}, accumulation_steps=1)
    trial = logged(found.trials[0], latency_s=13.117188, memory_mib=11958)
    found = replace(found, trials=(trial,))
    said = sweep(
        (found,), names={found.case: "2D_PP_2x4x4_512_2304x24"}, step_flops={found.case: 8192e12}
    )
    (case,) = json.loads(json.dumps(report.document(said)))["cases"]
    assert (case["latency_s"], case["memory_mib"]) == (13.117188, 11958)
    assert (case["trials"][0]["latency_s"], case["trials"][0]["memory_mib"]) == (13.117188, 11958)
    assert case["name"] == "2D_PP_2x4x4_512_2304x24"
    # 8192 samples a step, so many operations a sample, over 32 GPUs: 39.03 / 32 TFLOP/s.
    assert case["tflops_per_gpu"] == pytest.approx(512 / 13.117188 / 32)
    (row,) = csv_rows(said)
    assert (row["name"], row["latency_s"], row["memory_mib"]) == (
        *("2D_PP_2x4x4_512_2304x24", "13.117188", "11958"),
    )
    assert float(row["tflops_per_gpu"]) == case["tflops_per_gpu"]
    (plain,) = json.loads(json.dumps(report.document(sweep((found,)))))["cases"]
    assert (plain["name"], plain["tflops_per_gpu"], plain["published"]) == (None, None, [])
    assert (
        sweep((), step_flops=said.step_flops).tflops_per_gpu(replace(found, statistics=None))
        is None
    )


def test_result_file_has_dlperfs_form() -> None:
    """Seed 003 prints this dictionary for these trials; numbers are rounded as there."""
    assert report.exports(sweep(results(SEED_AMP))) == {
        "_result.json": {
            "r50": {
                "1n1g": {
                    "average_speed": 801.31,
                    "batch_size_per_device": 256,
                    "median_speed": 802.9,
                    "speedup": 1.0,
                },
                "1n4g": {
                    "average_speed": 3133.7,
                    "batch_size_per_device": 256,
                    "median_speed": 3137.44,
                    "speedup": 3.91,
                },
                "4n8g": {
                    "average_speed": 22599.43,
                    "batch_size_per_device": 256,
                    "median_speed": 22551.16,
                    "speedup": 28.09,
                },
            }
        }
    }


def test_result_files_never_mix_precisions_or_batches() -> None:
    """One file for each, where DLPerf's scripts put all under one key; loss scales count too."""
    fp32 = results({"1x1": (367.29,)}, precision="fp32", micro_batch_size=128)
    dynamic = results({"1x1": (802.9,)}, params=(("loss_scale", "dynamic"),))
    static = results({"1x1": (827.86,)}, params=(("loss_scale", 128.0),))
    found = report.exports(sweep((*fp32, *dynamic, *static)))
    said = {name: document["r50"]["1n1g"]["median_speed"] for name, document in found.items()}  # type: ignore[index,call-overload] # JSON of a known form
    assert said == {
        "fp32_b128_result.json": 367.29,
        "amp_b256_lossscaledynamic_result.json": 802.9,
        "amp_b256_lossscale128.0_result.json": 827.86,
    }


def test_result_files_whose_names_would_be_one_are_numbered() -> None:
    """File names hold letters, digits and dots; what values hold beyond that must not be lost."""
    one = results({"1x1": (367.29,)}, params=(("scale", "1e-4"),))
    other = results({"1x1": (368.29,)}, params=(("scale", "1e4"),))
    assert list(report.exports(sweep((*one, *other)))) == [
        *("amp_b256_scale1e4_1_result.json", "amp_b256_scale1e4_2_result.json"),
    ]


def test_result_files_say_nothing_of_what_is_not_known() -> None:
    """No 0 for a failed case, and null instead of 1.0 for a speedup without a 1n1g case."""
    found = report.exports(sweep(results({"1x4": (None,), "1x8": (6154.66,)})))
    assert found == {
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
    assert report.exports(folder()) == {}


def test_result_file_of_named_cases_has_their_names() -> None:
    """Two cases of one placement are two; without names they are told apart by files."""
    small = results({"1x8": (38.28,)}, params=(("group", "DP"),))
    large = results({"1x8": (24.92,)}, params=(("group", "MP"),))
    found = sweep((*small, *large), layout=Layout(kind="groups"), log_prefix="gpt")
    names = {small[0].case: "DP_8x1x1_16_1536x16", large[0].case: "MP_1x8x1_16_1536x16"}
    (document,) = report.exports(replace(found, names=names)).values()
    assert list(document["gpt"]) == list(names.values())  # type: ignore[index,call-overload,arg-type] # JSON of a known form
    assert list(report.exports(found)) == [
        *("amp_b256_groupDP_result.json", "amp_b256_groupMP_result.json"),
    ]
    assert report.exports(replace(found, results=())) == {}
