"""Reports: the seed's shape, nothing hidden, nothing rounded in JSON, nothing that is obeyed."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from orchestrator import measure, report
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric, Moment, Port, Rate, TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.report import LoneLog, Report
from orchestrator.model.result import Evidence, Measurement, Result

# Seed 003: the printed throughputs of three of the AMP cases, in the order of the logs' numbers.
SEED_AMP = {
    "1x1": (803.69, 793.9, 803.66, 802.4, 802.9),
    "1x4": (3129.63, 3119.23, 3137.44, 3137.67, 3144.55),
    "4x8": (22364.13, 22551.16, 22978.13, 23049.75, 22053.98),
}
# Its table "AMP & dynamic loss scale": the first five columns of these cases.
SEED_ROWS = [
    ["1", "1", "256", "802.90", "1.00"],
    ["1", "4", "256", "3137.44", "3.91"],
    ["4", "8", "256", "22551.16", "28.09"],
]
SHA256 = "0123456789abcdef" * 4
HOSTILE = "a|b`c`<img src=x>*d*_e_[f](g)\\&\n# h\x1b[31m"
HARMLESS = r"a\|b\`c\`&lt;img src=x>\*d\*\_e\_\[f\](g)\\&amp; # h \[31m"
LOG = TrainingLog(
    runs=1,
    steps=99,
    first_iteration=1,
    last_iteration=99,
    config={"world_size": 8, "micro_batch_size": 128, "precision": "amp"},
    start=Moment(20, 10.0, 40),
    end=Moment(60, 20.0, 80),
    rate=Rate(99, 6011.64, 6275.76),
    window_rate=6100.0,
    unit="images/s",
    reported={},
    digest="d",
    size_bytes=1,
    sha256=SHA256,
    fabric=Fabric(),
    problems=(),
)


def trial(case: Case, repeat: int, throughput: float | None) -> Measurement:
    """A valid trial, or with no number one that failed."""
    name = f"{case.token}-r50_b256_amp_{repeat}"
    log = f"logs/{case.token}/r50_b256_amp_{repeat}.log"
    failed = Problem("PROGRAM-FAILED", "node vs001, node_rank 0: exit status 1")
    return Measurement(
        trial=name,
        repeat=repeat,
        attempt=1,
        state="failed" if throughput is None else "valid",
        throughput=throughput,
        rate=throughput,
        problems=(failed,) if throughput is None else (),
        marks=(),
        evidence=None if throughput is None else Evidence(log, (40, 140), SHA256, "d"),
        provenance={"driver": "440.33.01"},
    )


def results(values: Mapping[str, Sequence[float | None]], **fields: object) -> tuple[Result, ...]:
    """Compared results of these placements; AMP, batch 256."""
    plain = {"micro_batch_size": 256, "precision": "amp", "device": "cuda"}
    found = []
    for placement, each in values.items():
        nodes, gpus = map(int, placement.split("x"))
        case = Case(nodes=nodes, gpus_per_node=gpus, **{**plain, **fields})  # type: ignore[arg-type] # one field of each type
        found.append(measure.result(case, [trial(case, n, v) for n, v in enumerate(each, 1)]))
    return measure.compared(found)


def sweep(found: tuple[Result, ...], **fields: object) -> Report:
    """The report of a sweep that measured these results."""
    plain = Report(
        source="20200915-rn50-amp",
        title="ResNet-50 v1.5",
        experiment="rn50-amp",
        workload="ngc_pytorch_rn50",
        unit="images/s",
        window=(25, 125),
        method=Method(repeats=5, iterations=151, window=(25, 125)),
        trials_planned=5,
        cluster="v100x4",
        image="ngc-pytorch-20.03",
        image_digest="sha256:5e",
        shared_machine=False,
        environment={"vs001": {"kernel": "Linux 4.4.0-116"}, "vs002": {"driver": "440.33.01"}},
        results=found,
        lone=(),
    )
    return replace(plain, **fields)  # type: ignore[arg-type] # one field of each type


def folder(*lone: LoneLog, found: tuple[Result, ...] = ()) -> Report:
    """The report of a folder of logs, of which no method is known."""
    said = sweep(found, source="logs", experiment="", cluster="", image="", image_digest="")
    return replace(said, method=None, trials_planned=None, environment={}, lone=lone)


def tables(text: str) -> list[list[list[str]]]:
    """Rows of cells of every Markdown table, without the line under the head."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    return [
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (lines[0], *lines[2:])]
        for lines in blocks
    ]


def csv_rows(found: Report) -> list[dict[str, str]]:
    """The rows of results.csv by column, as any reader of CSV sees them."""
    return list(csv.DictReader(io.StringIO(report.csv_text(found))))


def test_markdown_has_the_seeds_table() -> None:
    """Node count, GPUs, batch, samples/s and speedup to two decimals, as the seed prints them."""
    found = sweep(results(SEED_AMP, params=(("loss_scale", "dynamic"),)))
    text = report.markdown(found)
    assert text.startswith(
        "# ResNet-50 v1.5\n\n## Final Result\n\n### AMP, batch size 256, on cuda"
    )
    assert r"on cuda, loss\_scale dynamic" in text
    final = tables(text)[0]
    assert final[0] == [
        *("node_num", "gpu_num_per_node", "batch_size_per_device", "images/s", "speedup"),
        *("efficiency", "trials", "spread", "interval (coverage)", "transport", "marks"),
    ]
    assert [row[:5] for row in final[1:]] == SEED_ROWS
    assert final[3][5:] == [
        *("87.8%", "median of 5/5", "4.4%", "22053.98 to 23049.75 (93.75%)", "-", ""),
    ]


def test_markdown_shows_every_trial_with_its_evidence() -> None:
    """All 15, each with its log and the beginning of its sha256."""
    rows = tables(report.markdown(sweep(results(SEED_AMP))))[1]
    assert len(rows) == 16
    assert rows[0] == [
        *("case", "batch", "precision", "trial", "images/s", "state", "transport", "codes"),
        *("log", "sha256"),
    ]
    assert rows[12] == [
        *("4n8g", "b256", "amp", "2", "22551.16", "valid", "-", ""),
        *(r"logs/4n8g/r50\_b256\_amp\_2.log", "0123456789ab"),
    ]


def test_markdown_says_how_it_was_measured_and_on_what() -> None:
    """Window, repeats, image and nodes; a fact that a node did not give stays empty."""
    text = report.markdown(sweep(results(SEED_AMP)))
    assert (
        "global batch size x 100 / the time between the log lines of iterations 25 and 125" in text
    )
    assert "- 5 trials of each case, 151 iterations asked of the program" in text
    assert "- Image `ngc-pytorch-20.03`, sha256:5e; cluster `v100x4`." in text
    assert tables(text)[-1] == [
        ["", "vs001", "vs002"],
        ["kernel", "Linux 4.4.0-116", ""],
        ["driver", "", "440.33.01"],
    ]


def test_shared_machine_is_said_at_the_top() -> None:
    """Before any number, since none of them says how anything scales."""
    text = report.markdown(sweep(results(SEED_AMP), shared_machine=True))
    assert text.split("\n\n")[1] == f"> **{report.SHARED_MACHINE}**"
    assert "SHARED-MACHINE" not in report.markdown(sweep(results(SEED_AMP)))


def test_image_without_a_digest_is_said_at_the_top() -> None:
    """UNLOCKED belongs to an image; a folder of logs has none."""
    text = report.markdown(sweep(results(SEED_AMP), image_digest=""))
    assert text.split("\n\n")[1] == f"> **{report.UNLOCKED}**"
    assert "cluster `v100x4`" in text
    assert "digest unknown" in text
    assert "UNLOCKED" not in report.markdown(folder(found=results(SEED_AMP)))


def test_trials_that_do_not_count_are_named_with_their_reason() -> None:
    """At the top that there are some, in the table over how many the median is, below why."""
    found = sweep(results({"1x1": (800.0, None, 802.0, None, 804.0)}))
    text = report.markdown(found)
    assert found.incomplete == 2
    assert "> **INCOMPLETE: 2 trial(s) or log(s) are missing or do not count" in text
    assert tables(text)[0][1][6:9] == ["median of 3/5", "0.5%", "800.00 to 804.00 (75.00%)"]
    assert (
        r"- 1n1g-r50\_b256\_amp\_2: PROGRAM-FAILED: node vs001, node\_rank 0: exit status 1" in text
    )
    assert tables(text)[1][2][4:] == ["n/a", "failed", "-", "PROGRAM-FAILED", "", ""]


def test_trials_that_were_not_run_are_one_line() -> None:
    """A sweep that was stopped early does not fill a page with the same word."""
    (only,) = results({"1x1": (800.0, None, None)})
    missing = tuple(
        replace(each, state="planned", problems=(Problem("MISSING", "it has not been run"),))
        for each in only.trials[1:]
    )
    text = report.markdown(sweep((replace(only, trials=(only.trials[0], *missing)),)))
    assert r"- not run: 1n1g-r50\_b256\_amp\_2, 1n1g-r50\_b256\_amp\_3" in text
    assert "MISSING:" not in text


def test_marks_are_shown_with_their_reason() -> None:
    """An implausible case and a trial with a gap count, and say so."""
    one, more = results({"1x1": (800.0,), "1x4": (4000.0,)})
    gap = Problem("GAP", "3.1 s between iterations 62 and 63")
    marked = replace(more, trials=(replace(more.trials[0], marks=(gap,)),))
    text = report.markdown(sweep((one, marked)))
    assert tables(text)[0][2][3:6] == ["4000.00", "5.00", "125.0%"]
    assert tables(text)[0][2][-1] == "IMPLAUSIBLE"
    assert "- 1n4g: IMPLAUSIBLE: efficiency 1.250: more than 4 ranks can give" in text
    assert r"- 1n4g-r50\_b256\_amp\_1: GAP: 3.1 s between iterations 62 and 63" in text
    assert "INCOMPLETE" not in text


def test_absent_speedup_says_what_is_missing() -> None:
    """Without a valid 1n1g, never 1.00; and a case without a number does not blame the 1n1g."""
    rows = tables(report.markdown(sweep(results({"1x4": (3137.44,)}))))[0]
    assert rows[1][3:6] == ["3137.44", "n/a (no valid 1n1g)", "n/a"]
    rows = tables(report.markdown(sweep(results({"1x1": (802.9,), "4x8": (None,)}))))[0]
    assert rows[2][3:9] == ["n/a", "n/a", "n/a", "median of 0/5", "n/a", "n/a"]


def test_cases_that_differ_in_more_than_placement_have_tables_of_their_own() -> None:
    """Each table's title holds everything that its cases have in common."""
    amp = results({"1x1": (800.0,), "1x4": (3000.0,)})
    fp32 = results({"1x1": (367.29,)}, precision="fp32", micro_batch_size=128)
    split = results(
        {"1x4": (2000.0,)}, accumulation_steps=2, tensor_parallel=4, pipeline_parallel=1
    )
    text = report.markdown(sweep((*amp, *fp32, *split)))
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### AMP, batch size 256, on cuda",
        "### FP32, batch size 128, on cuda",
        r"### AMP, batch size 256, on cuda, accumulation\_steps 2, tensor\_parallel 4",
    ]
    assert [len(table) - 1 for table in tables(text)[:3]] == [2, 1, 1]


def test_logs_of_no_case_have_a_table_by_their_own_headers() -> None:
    """What a header does not say is a question mark, and what cannot be measured is n/a."""
    bare = replace(LOG, config={}, rate=None)
    problem = Problem("WINDOW", "the window 25-125 needs iteration 125")
    found = folder(LoneLog("gpu8.txt", LOG, 6098.37, ()), LoneLog("b.txt", bare, None, (problem,)))
    text = report.markdown(found)
    assert tables(text)[0][0] == [
        *("world_size", "batch_size_per_device", "precision", "images/s", "mean of printed"),
        *("transport", "problems", "log"),
    ]
    assert tables(text)[0][1:] == [
        ["8", "128", "amp", "6098.37", "6011.64", "-", "", "gpu8.txt"],
        ["?", "?", "?", "n/a", "n/a", "-", "WINDOW", "b.txt"],
    ]
    assert "- b.txt: WINDOW: the window 25-125 needs iteration 125" in text
    assert found.incomplete == 1
    assert "## Final Result" not in text
    assert "Image" not in text


def test_names_from_outside_are_shown_and_not_obeyed() -> None:
    """Neither Markdown nor HTML nor a terminal takes a name, a header or a message for its own."""
    config = {"precision": HOSTILE}
    lone = LoneLog(HOSTILE, replace(LOG, config=config), None, (Problem("WINDOW", HOSTILE),))
    (only,) = results({"1x1": (None,)}, device=HOSTILE)
    failed = replace(
        only.trials[0],
        trial=HOSTILE,
        problems=(Problem("PROGRAM-FAILED", HOSTILE),),
        evidence=Evidence(HOSTILE, None, SHA256, ""),
    )
    hostile = replace(only, trials=(failed,))
    found = sweep((hostile,), title=HOSTILE, source=HOSTILE, lone=(lone,))
    text = report.markdown(replace(found, environment={HOSTILE: {"system": HOSTILE}}))
    assert HOSTILE not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert f"# {HARMLESS}\n" in text
    assert f"measured from {HARMLESS}." in text
    assert f"- {HARMLESS}: PROGRAM-FAILED: {HARMLESS}\n" in text
    assert f"- {HARMLESS}: WINDOW: {HARMLESS}\n" in text
    assert text.count(HARMLESS) == 12
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1


def test_csv_has_a_row_for_each_case_with_unrounded_numbers() -> None:
    """Every statistic of the case as a reader of numbers needs it."""
    found = sweep(results(SEED_AMP, params=(("loss_scale", "dynamic"),)))
    rows = csv_rows(found)
    assert len(rows) == 3
    largest = rows[2]
    assert tuple(largest) == report.CSV_COLUMNS
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
    numbers = report.CSV_COLUMNS[report.CSV_COLUMNS.index("median_samples_per_s") :][:10]
    assert {failed[column] for column in numbers} == {""}
    assert (failed["trials_valid"], failed["trials"]) == ("0", "1")
    assert (alone["median_samples_per_s"], alone["speedup"], alone["efficiency"]) == (
        *("6154.66", "", ""),
    )


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
        "transport": None,
        "problems": [],
        "marks": [],
        "log": "logs/4n8g/r50_b256_amp_3.log",
        "lines": [40, 140],
        "sha256": SHA256,
        "provenance": {"driver": "440.33.01"},
    }
    assert document["method"]["repeats"] == 5
    assert document["window"] == [25, 125]


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
    bare = replace(LOG, start=None, rate=None)
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
        "throughput": 6098.37,
        "transport": None,
        "rate": {"count": 99, "mean": 6011.64, "median": 6275.76},
        "lines": [40, 80],
        "sha256": SHA256,
        "problems": [],
    }
    second = document["logs"][1]
    assert (second["throughput"], second["rate"], second["lines"]) == (None, None, None)
    assert second["problems"] == [{"code": "WINDOW", "message": "why"}]


def test_transport_stands_in_every_row() -> None:
    """What a gang ran over is seen beside its number: per case, per trial, per log."""
    one, two = results({"1x1": (800.0,), "2x8": (11991.94, 9000.0)})
    fast, slow = two.trials
    both = (
        replace(fast, transport="IB mlx5_0"),
        replace(slow, state="invalid", transport="Socket ib0"),
    )
    said = sweep((one, replace(two, trials=both)))
    final, every = tables(report.markdown(said))[:2]
    assert [row[-2] for row in final[1:]] == ["-", r"IB mlx5\_0"]
    assert [row[6] for row in every[1:]] == ["-", r"IB mlx5\_0", "Socket ib0"]
    assert [row["transport"] for row in csv_rows(said)] == ["", "IB mlx5_0"]
    cases = json.loads(json.dumps(report.document(said)))["cases"]
    assert [case["transport"] for case in cases] == [None, "IB mlx5_0"]
    assert [trial["transport"] for trial in cases[1]["trials"]] == ["IB mlx5_0", "Socket ib0"]
    fabric = Fabric(networks=("IB",), ports=(Port("mlx5_0", 1, "IB"),))
    lone = LoneLog("r0.log", replace(LOG, fabric=fabric), 800.0, ())
    assert tables(report.markdown(folder(lone)))[0][1][5] == r"IB mlx5\_0"


def test_case_without_a_valid_trial_says_what_its_trials_ran_over() -> None:
    """The reason is seen in the table where a case has no number."""
    (two,) = results({"2x8": (11991.94, 9000.0)})
    trials = [
        replace(trial, state="invalid", transport=transport)
        for trial, transport in zip(two.trials, ("Socket ib0", "-"), strict=True)
    ]
    assert replace(two, trials=tuple(trials)).transport == "Socket ib0"


def test_trials_planned_are_those_that_are_there_where_no_plan_says() -> None:
    """A folder of three logs of a case promises three."""
    found = folder(found=results({"1x1": (800.0, None, 804.0)}))
    assert report.counted(found, found.results[0]) == "median of 2/3"
    cases = json.loads(json.dumps(report.document(found)))["cases"]
    assert cases[0]["trials_planned"] == 3
