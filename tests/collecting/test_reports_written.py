"""Reports and published results on the real command line."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from orchestrator.collecting.folder import report_on
from orchestrator.collecting.logs import Reading
from orchestrator.report import markdown
from tests import ROOT, SAMPLES
from tests.conftest import Place

GPT = SAMPLES / "logs-oneflow-gpt"
CUT = GPT.parent / "logs-pytorch-rn50" / "paddleperf_2022-06-16_8c650ff_pytorch_gpu8_amp_bs256.txt"
CASE = "2D_PP_2x4x4_512_2304x24"
COLLECT = ("collect", "--logs", str(GPT), "--workload", "oneflow_gpt")


def test_a_printed_log_gives_what_was_published_of_it(place: Place) -> None:
    """The whole GPT log that DLPerf prints: latency, memory, samples/s, TFLOP/s, no difference."""
    (case,) = place.json(*COLLECT)["cases"]
    assert case["name"] == CASE
    assert case["latency_s"] == pytest.approx(13.117188, abs=5e-7)
    assert (case["memory_mib"], round(case["median"], 2)) == (11958, 39.03)
    assert round(case["tflops_per_gpu"], 2) == 36.85
    first, second = case["published"]
    assert (first["framework"], first["throughput"]) == ("oneflow-0.3.5", 39.03)
    assert first["difference"] == pytest.approx(0, abs=2e-4)
    assert (second["framework"], second["throughput"]) == ("megatron", 33.4)


def test_the_table_shows_the_published_value_and_its_source(place: Place) -> None:
    """Beside the median; others of the same case are in the report."""
    done = place.run(*COLLECT)
    assert CASE in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if "+0.0%" in line)
    assert "39.03 (oneflow-0.3.5" in line


def test_a_report_in_chinese_stands_beside_the_english_one(place: Place) -> None:
    """With figures of its own; numbers are in files that both share."""
    en, zh = (place.folder / language for language in ("en", "zh"))
    place.must(*COLLECT, "--out", str(en))
    english = {path: path.read_bytes() for path in en.rglob("*") if path.is_file()}
    done = place.must(*COLLECT, "--out", str(en), "--lang", "zh")
    assert f"Report: {en / 'report.zh.html'}" in done.stdout
    changed = {path.name for path, content in english.items() if path.read_bytes() != content}
    assert changed == set()
    place.must(*COLLECT, "--out", str(zh), "--lang", "zh")
    assert not (zh / "report.html").exists()
    own = {path.relative_to(zh) for path in zh.rglob("*") if path.is_file()}
    both = {path.relative_to(en) for path in en.rglob("*") if path.is_file()}
    assert own == {path for path in both if ".zh." in path.name or path.name.startswith("_")} | {
        Path("results.csv"),
        Path("results.json"),
    }
    for path in own:
        assert (zh / path).read_bytes() == (en / path).read_bytes()
    text = (en / "report.zh.md").read_text(encoding="utf-8")
    assert "## 用例一览" in text
    assert "## Cases at a glance" in (en / "report.md").read_text(encoding="utf-8")
    figures = re.findall(r"\((figures/[^)]+)\)", text)
    assert figures
    assert all(name.endswith(".zh.svg") and (en / name).is_file() for name in figures)


def test_both_languages_have_the_numbers_of_the_last_collect(place: Place) -> None:
    """Collected in one of them from fewer logs: the other one is written anew, too."""
    logs, out = place.folder / "some", place.folder / "out"
    shutil.copytree(GPT, logs)
    words = ("collect", "--logs", str(logs), "--workload", "oneflow_gpt", "--out", str(out))
    place.must(*words)
    place.must(*words, "--lang", "zh")
    for log in logs.iterdir():
        log.write_text("")
    for language in ("zh", "en"):
        place.must(*words, "--lang", language, code=3)
        assert not [*(out / "figures").glob("*.svg")]
        for name in ("report.html", "report.zh.html", "report.md", "report.zh.md"):
            assert "39.03" not in (out / name).read_text(encoding="utf-8")


def test_result_files_are_those_of_dlperf(place: Place) -> None:
    """Median and average by the benchmark's name of the case."""
    place.must(*COLLECT, "--out", str(place.folder / "en"))
    document = json.loads((place.folder / "en" / "_result.json").read_text())
    assert document == {
        "pretrain_gpt": {
            CASE: {
                "average_speed": 39.03,
                "batch_size_per_device": 8,
                "median_speed": 39.03,
                "speedup": None,
            }
        }
    }


def test_a_report_of_logs_says_how_to_make_it_again(place: Place) -> None:
    """The command line stands first, as in the report of a sweep: where it reads and how."""
    out, words = place.folder / "out", (*COLLECT, "--rule", "latency")
    place.must(*words, "--out", str(out))
    command = " ".join(("dlperf-orch", *words))
    assert f"`{command}`" in (out / "report.md").read_text()
    assert command in (out / "report.html").read_text()
    reading = Reading("other", (20, 60), None)
    begin = "dlperf-orch collect --logs 'a folder'"
    assert reading.command("a folder") == f"{begin} --workload other --window 20:60"


def test_chinese_reports_say_what_a_code_means(place: Place) -> None:
    """Beside the code in the table and in the list; the message stays as the reader said it."""
    out = place.folder / "zh"
    words = ("collect", "--logs", str(CUT), "--workload", "ngc_pytorch_rn50")
    place.must(*words, "--out", str(out), "--lang", "zh", code=3)
    text = (out / "report.zh.md").read_text(encoding="utf-8").replace("\\", "")
    assert f"- 1：{CUT.name}" in text
    (row,) = (line for line in text.splitlines() if line.startswith("| 1 | 8 | 256 | amp |"))
    assert "| 时钟 25-125 | SHORT-RUN（程序自行提前结束）：have 63 of 99 steps" in row
    assert "；GAP（窗口内有异常慢的迭代）：" in row


def test_result_files_of_an_earlier_report_do_not_stay(place: Place) -> None:
    """Other logs into the same folder: what they do not give is gone, what is not ours stays."""
    out = place.folder / "out"
    place.run(*COLLECT, "--out", str(out))
    assert (out / "_result.json").exists()
    (out / "mine_result.json").write_text("{}")
    logs = GPT.parent / "logs-pytorch-rn50"
    words = ("--logs", str(logs), "--workload", "ngc_pytorch_rn50", "--window", "20:60")
    place.run("collect", *words, "--out", str(out))
    names = ["mine_result.json", "report.html", "report.md", "results.csv", "results.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    (out / "results.json").write_text("[1]")
    place.must(*COLLECT, "--out", str(out))
    assert sorted(path.name for path in out.iterdir()) == ["_result.json", "figures", *names]


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
    """Exit 2, and what would do."""
    done = place.run(*words)
    assert (done.returncode, needed in done.stderr) == (2, True), done.stderr


def test_published_results_are_listed(place: Place) -> None:
    """Every one of the shipped file, or those that fit, as a table and as JSON."""
    rows = json.loads(place.run("published", "--json").stdout)
    shipped = ROOT / "orchestrator" / "published.csv"
    with shipped.open(encoding="utf-8") as file:
        expected = [float(row["throughput"]) for row in csv.DictReader(file)]
    assert [row["throughput"] for row in rows] == expected
    words = ("--framework", "oneflow-0.1.9", "--model", "resnet*", "--precision", "fp32")
    done = place.must("published", *words)
    lines = [line.split()[1:8] for line in done.stdout.splitlines() if "resnet50v1.5" in line]
    assert lines == [
        ["oneflow-0.1.9", "resnet50v1.5", "fp32", "128", nodes, gpus, throughput]
        for nodes, gpus, throughput in (
            *(("1", "1", "384.9"), ("1", "8", "2969.5"), ("2", "8", "5906.6")),
            ("4", "8", "11711.2"),
        )
    ]


def test_a_report_of_logs_says_when_they_begin_as_far_as_they_tell(tmp_path: Path) -> None:
    """By their own clocks, which say no zone; a log without one is counted, never dated."""
    tensorflow = Reading("ngc_tensorflow_rn50", window=None, rule=None)
    names = ("2020-12-18_be362d9_tf_gpu1_fp32_bs128", "2022-12-05_e500619_tf_gpu1_amp_bs256")
    for name in names:
        log = SAMPLES / f"logs-tf-rn50/paddleperf_{name}.txt"
        (tmp_path / log.name).write_bytes(log.read_bytes())
    first, last = "2020-12-16 07:21:56", "2022-11-24 04:01:45"
    text = markdown(report_on(tmp_path, tensorflow))
    assert f"- When: first steps of the logs at {first} to {last}, by their own clocks\n" in text
    (tmp_path / "empty.txt").write_text("nothing\n")
    text = markdown(report_on(tmp_path, tensorflow))
    assert f"- When: first steps of 2 of 3 logs at {first} to {last}, by their own clocks\n" in text
    text = markdown(report_on(tmp_path, tensorflow), "zh")
    assert f"首次迭代于 {first} 至 {last}（3 份日志中的 2 份）\n" in text
    text = markdown(report_on(tmp_path / log.name, tensorflow))
    assert f"- When: first steps of the logs at {last}, by their own clocks\n" in text
    text = markdown(report_on(GPT, Reading("oneflow_gpt", window=None, rule=None)))
    assert "- When: " not in text


def test_files_that_cannot_be_written_name_the_option_to_change(place: Place) -> None:
    """Exit 6: it was a bug of ours for reports, and `--state` was named for a comparison's."""
    refused = place.run(*COLLECT, "--out", "/proc/nowhere")
    assert refused.returncode == 6
    assert "ERROR STORE-RIGHTS: /proc/nowhere/" in refused.stderr
    assert "or --out for reports" in refused.stderr
    assert place.run(*COLLECT, "--out", "a").returncode == 0
    side = "a/results.json"
    refused = place.run("compare", side, side, "--markdown", "/proc/nowhere/page")
    assert refused.returncode == 6, refused.stderr
    assert "ERROR LOCAL-FILE: /proc/nowhere/page: " in refused.stderr
    assert refused.stderr.endswith(" Fix: choose another --markdown.\n")


def test_what_a_killed_command_was_writing_goes_with_the_next(place: Place) -> None:
    """A file of a process that lives, and a user's own, stay."""
    out = place.folder / "out"
    (out / "figures").mkdir(parents=True)
    gone = [out / "results.csv.4194300.4194300.new", out / "figures" / "x.svg.4194300.4194300.new"]
    kept = [out / f"results.csv.{os.getpid()}.{os.getpid()}.new", out / "mine.new"]
    for path in (*gone, *kept):
        path.write_text("half")
    place.must(*COLLECT, "--out", str(out))
    assert [path.exists() for path in (*gone, *kept)] == [False, False, True, True]
