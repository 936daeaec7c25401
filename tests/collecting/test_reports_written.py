"""Reports on folders of logs: their files, in both languages, and published results."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from orchestrator.collecting import report_files
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.logs import Reading
from orchestrator.report import Language, markdown
from tests import ROOT, SAMPLES
from tests.collecting.pytorch_logs import PUBLISHED, keep, results
from tests.conftest import Place

GPT = SAMPLES / "logs-oneflow-gpt"
PYTORCH = SAMPLES / "logs-pytorch-rn50"
CUT = PYTORCH / "paddleperf_2022-06-16_8c650ff_pytorch_gpu8_amp_bs256.txt"
CASE = "2D_PP_2x4x4_512_2304x24"
COLLECT = ("collect", "--logs", str(GPT), "--workload", "oneflow_gpt")


def write(
    out: Path,
    logs: Path = GPT,
    language: Language = "en",
    *,
    workload: str = "oneflow_gpt",
    window: tuple[int, int] | None = None,
) -> Path:
    """Write the reports on a folder of logs; return the page."""
    found = report_on(logs, Reading(workload, window, None))
    return report_files.reports(out, found, language, logs)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_printed_log_gives_what_was_published_of_it() -> None:
    """The whole GPT log that DLPerf prints: latency, memory, samples/s, TFLOP/s, no difference."""
    (case,) = results(GPT, "oneflow_gpt")["cases"]
    assert case["name"] == CASE
    assert case["latency_s"] == pytest.approx(13.117188, abs=5e-7)
    assert (case["memory_mib"], round(case["median"], 2)) == (11958, 39.03)
    assert round(case["tflops_per_gpu"], 2) == 36.85
    first, second = case["published"]
    assert (first["framework"], first["throughput"]) == ("oneflow-0.3.5", 39.03)
    assert first["difference"] == pytest.approx(0, abs=2e-4)
    assert (second["framework"], second["throughput"]) == ("megatron", 33.4)


def test_the_command_writes_what_the_table_shows(place: Place) -> None:
    """The published value and its source beside the median; the report has the command line."""
    out, words = place.folder / "out", (*COLLECT, "--rule", "latency")
    done = place.must(*words, "--out", str(out), "--lang", "zh")
    assert f"Report: {out / 'report.zh.html'}" in done.stdout
    assert CASE in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if "+0.0%" in line)
    assert "39.03 (oneflow-0.3.5" in line
    command = " ".join(("dlperf-orch", *words))
    assert f"`{command}`" in (out / "report.zh.md").read_text()
    assert command in (out / "report.zh.html").read_text()
    begin = "dlperf-orch collect --logs 'a folder'"
    reading = Reading("other", (20, 60), None)
    assert reading.command("a folder") == f"{begin} --workload other --window 20:60"


def test_reports_contain_what_the_document_says_and_every_reason(tmp_path: Path) -> None:
    """JSON, CSV and Markdown; and the logs stay as they are."""
    logs, out = tmp_path / "logs", tmp_path / "made" / "here"
    for place, rates in PUBLISHED.items():
        keep(logs, f"{place}/r50_b256_amp", dict(enumerate(rates, 1)))
    log = logs / "amp_ngc/pytorch/2n8g/r50_b256_amp_2.log"
    log.write_text(log.read_text()[:9000])
    before = {path: path.read_bytes() for path in logs.rglob("*.log")}
    write(out, logs, workload="ngc_pytorch_rn50")
    document = results(logs)
    assert json.loads((out / "results.json").read_text()) == document
    with (out / "results.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [row["trials_valid"] for row in rows] == ["5", "5", "5", "4", "5"]
    assert float(rows[4]["median_samples_per_s"]) == document["cases"][4]["median"]
    text = (out / "report.md").read_text()
    assert "| 4x8 | 22551.16 |" in text
    assert "| 4/5 |" in text
    assert text.index("INCOMPLETE: ") < text.index("## Cases at a glance")
    assert "| 2x8 | 2 | n/a | invalid | TRUNCATED (the log is not whole): " in text
    assert {path: path.read_bytes() for path in logs.rglob("*.log")} == before


def test_a_report_in_chinese_is_beside_the_english_one(tmp_path: Path) -> None:
    """With figures of its own; numbers are in files that both share."""
    en, zh = tmp_path / "en", tmp_path / "zh"
    write(en)
    english = {path: path.read_bytes() for path in en.rglob("*") if path.is_file()}
    write(en, language="zh")
    assert {path.name for path in english if path.read_bytes() != english[path]} == set()
    write(zh, language="zh")
    assert not (zh / "report.html").exists()
    own = {path.relative_to(zh) for path in zh.rglob("*") if path.is_file()}
    both = {path.relative_to(en) for path in en.rglob("*") if path.is_file()}
    shared = {Path("results.csv"), Path("results.json"), Path("_result.json")}
    assert own == shared | {path for path in both if ".zh." in path.name}
    for path in own:
        assert (zh / path).read_bytes() == (en / path).read_bytes()
    text = (en / "report.zh.md").read_text(encoding="utf-8")
    assert "## 用例一览" in text
    assert "## Cases at a glance" in (en / "report.md").read_text(encoding="utf-8")
    figures = re.findall(r"\((figures/[^)]+)\)", text)
    assert figures
    assert all(name.endswith(".zh.svg") and (en / name).is_file() for name in figures)


def test_both_languages_have_the_numbers_of_the_last_collect(tmp_path: Path) -> None:
    """Collected in one language from other logs: the report in the other is written anew, too."""
    logs, out = tmp_path / "some", tmp_path / "out"
    shutil.copytree(GPT, logs)
    for language in ("en", "zh"):
        write(out, logs, language)
    for log in logs.iterdir():
        log.write_text("")
    write(out, logs, "zh")
    assert not [*(out / "figures").glob("*.svg")]
    for name in ("report.html", "report.zh.html", "report.md", "report.zh.md"):
        assert "39.03" not in (out / name).read_text(encoding="utf-8")


def test_chinese_reports_say_what_a_code_means(tmp_path: Path) -> None:
    """Beside the code in the table and in the list; the message stays in English."""
    write(tmp_path, CUT, "zh", workload="ngc_pytorch_rn50")
    text = (tmp_path / "report.zh.md").read_text(encoding="utf-8").replace("\\", "")
    assert f"- 1：{CUT.name}" in text
    (row,) = (line for line in text.splitlines() if line.startswith("| 1 | 8 | 256 | amp |"))
    assert "| 时钟 25-125 | SHORT-RUN（程序自行提前结束）：have 63 of 99 steps" in row
    assert "；GAP（窗口内有异常慢的迭代）：" in row


def test_result_files_of_an_earlier_report_do_not_stay(tmp_path: Path) -> None:
    """Other logs into the same folder: stale files are removed, a user's own file stays."""
    write(tmp_path)
    (tmp_path / "mine_result.json").write_text("{}")
    write(tmp_path, PYTORCH, workload="ngc_pytorch_rn50", window=(20, 60))
    left = ["mine_result.json", "report.html", "report.md", "results.csv", "results.json"]
    assert names(tmp_path) == left
    (tmp_path / "results.json").write_text("[1]")
    write(tmp_path)
    assert names(tmp_path) == ["_result.json", "figures", *left]


def test_unfinished_files_of_a_killed_command_are_removed(tmp_path: Path) -> None:
    """A file of a process that lives, and a user's own, stay."""
    (tmp_path / "figures").mkdir()
    of_dead, of_other = "4194300.4194300.new", f"{os.getppid()}.{os.getppid()}.new"
    gone = [tmp_path / f"results.csv.{of_dead}", tmp_path / "figures" / f"x.svg.{of_dead}"]
    kept = [tmp_path / f"results.csv.{of_other}", tmp_path / "mine.new"]
    for path in (*gone, *kept):
        path.write_text("half")
    write(tmp_path)
    assert [path.exists() for path in (*gone, *kept)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        ((*COLLECT, "--lang", "zh"), "needs --out DIR"),
        (("collect", "--lang", "fr"), "fr"),
        (("published", "--framework", "none"), "nothing published fits framework none"),
    ],
)
def test_what_cannot_be_written_is_refused(
    place: Place, words: tuple[str, ...], needed: str
) -> None:
    done = place.run(*words)
    assert (done.returncode, needed in done.stderr) == (2, True), done.stderr


def test_files_that_cannot_be_written_name_the_option_to_change(place: Place) -> None:
    refused = place.must(*COLLECT, "--out", "/proc/nowhere", code=6)
    assert "ERROR STORE-RIGHTS: /proc/nowhere/" in refused.stderr
    assert "or --out for reports" in refused.stderr
    write(place.folder / "a")
    side = "a/results.json"
    refused = place.must("compare", side, side, "--markdown", "/proc/nowhere/page", code=6)
    assert "ERROR LOCAL-FILE: /proc/nowhere/page: " in refused.stderr
    assert refused.stderr.endswith(" Fix: choose another --markdown.\n")


def test_published_results_are_listed(place: Place) -> None:
    """All of the shipped file, or those that fit, as a table and as JSON."""
    rows = json.loads(place.run("published", "--json").stdout)
    shipped = ROOT / "orchestrator" / "published.csv"
    with shipped.open(encoding="utf-8") as file:
        expected = [float(row["throughput"]) for row in csv.DictReader(file)]
    assert [row["throughput"] for row in rows] == expected
    words = ("--framework", "oneflow-0.1.9", "--model", "resnet*", "--precision", "fp32")
    done = place.must("published", *words)
    lines = [line.split()[1:8] for line in done.stdout.splitlines() if "resnet50v1.5" in line]
    cells = (("1", "1", "384.9"), ("1", "8", "2969.5"), ("2", "8", "5906.6"), ("4", "8", "11711.2"))
    assert lines == [["oneflow-0.1.9", "resnet50v1.5", "fp32", "128", *cell] for cell in cells]


def test_a_report_of_logs_says_when_they_begin_as_far_as_is_known(tmp_path: Path) -> None:
    """By their own clocks, which have no zone; a log without a clock is counted, never dated."""
    tensorflow = Reading("ngc_tensorflow_rn50", window=None, rule=None)
    names = ("2020-12-18_be362d9_tf_gpu1_fp32_bs128", "2022-12-05_e500619_tf_gpu1_amp_bs256")
    for name in names:
        log = SAMPLES / f"logs-tf-rn50/paddleperf_{name}.txt"
        (tmp_path / log.name).write_bytes(log.read_bytes())
    first, last = "2020-12-16 07:21:56", "2022-11-24 04:01:45"
    text = markdown(report_on(tmp_path, tensorflow))
    assert f"- When: first steps of the logs at {first} to {last}, by their own clocks\n" in text
    (tmp_path / "empty.txt").write_text("nothing\n")
    found = report_on(tmp_path, tensorflow)
    some = f"- When: first steps of 2 of 3 logs at {first} to {last}, by their own clocks\n"
    assert some in markdown(found)
    assert f"首次迭代于 {first} 至 {last}（3 份日志中的 2 份）\n" in markdown(found, "zh")
    text = markdown(report_on(tmp_path / log.name, tensorflow))
    assert f"- When: first steps of the logs at {last}, by their own clocks\n" in text
    text = markdown(report_on(GPT, Reading("oneflow_gpt", window=None, rule=None)))
    assert "- When: " not in text
