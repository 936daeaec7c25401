"""`collect --logs` on the real command line: real logs, and folders in DLPerf's naming."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import tests

PROGRAM = str(Path(sys.executable).with_name("dlperf-orch"))
SAMPLES = tests.SAMPLES / "logs-pytorch-rn50"
with (SAMPLES / "expected.csv").open(encoding="ascii") as file:
    EXPECTED = tuple(csv.DictReader(file))

# What DLPerf's extract_pytorch_logs_time.py prints in seed 003 for each log, and its result file.
PUBLISHED = {
    "fp16_ngc/pytorch/1n1g": (803.69, 793.9, 803.66, 802.4, 802.9),
    "fp16_ngc/pytorch/1n4g": (3129.63, 3119.23, 3137.44, 3137.67, 3144.55),
    "fp16_ngc/pytorch/1n8g": (6135.08, 6130.69, 6154.66, 6173.05, 6160.56),
    "amp_ngc/pytorch/2n8g": (12046.71, 11896.95, 11991.94, 11999.35, 11964.81),
    "amp_ngc/pytorch/4n8g": (22364.13, 22551.16, 22978.13, 23049.75, 22053.98),
}
MEDIANS = (802.9, 3137.44, 6154.66, 11991.94, 22551.16)
MEANS = (801.31, 3133.7, 6150.81, 11979.95, 22599.43)
SPEEDUPS = (1.0, 3.91, 7.67, 14.94, 28.09)

HEADER = (
    "data : /data/image  data_backend : dali-cpu  arch : resnet50  model_config : fanin"
    "  num_classes : 1000  workers : 8  epochs : 1  run_epochs : -1  batch_size : {batch}"
    "  optimizer_batch_size : -1  lr : 2.048  lr_schedule : cosine  warmup : 8  print_freq : 1"
    "  resume : None  pretrained_weights :   fp16 : False  static_loss_scale : 1"
    "  dynamic_loss_scale : {amp}  prof : {prof}  amp : {amp}  seed : None  training_only : True"
    "  memory_format : nchw  distributed : True  local_rank : 0  gpu : 8  world_size : {world} "
)


@dataclass(frozen=True)
class Run:
    """A run of NVIDIA's program, whose steps take 1.1 and 0.9 of the usual time in turn."""

    world_size: int
    rate: float
    began: datetime
    batch: int = 256
    amp: bool = True
    prof: int = 151

    def log(self) -> str:
        """What it prints; the first iteration takes 20 times as long as the others."""
        usual_s, clock_s = self.world_size * self.batch / self.rate, 0.0
        header = HEADER.format(
            batch=self.batch, amp=self.amp, prof=self.prof, world=self.world_size
        )
        lines = [
            "=> creating model '('resnet50', 'fanin', 1000)'",
            f"DLL {self.began} - PARAMETER {header}",
            "RUNNING EPOCHS FROM 0 TO 1",
        ]
        for iteration in range(1, self.prof):
            step_s = usual_s * (20 if iteration == 1 else 1.1 if iteration % 2 else 0.9)
            clock_s += step_s
            printed = self.world_size * self.batch / step_s
            lines.append(
                f"DLL {self.began + timedelta(seconds=clock_s)} - Epoch: 0 Iteration: {iteration}"
                f"  train.loss : {7 - iteration / 1000:.5f}  train.total_ips : {printed:.2f} img/s"
            )
        end = self.began + timedelta(seconds=clock_s + 1)
        lines += [f"DLL {end} - Summary: train.total_ips : {self.rate:.2f} img/s"]
        return "\n".join([*lines, "Experiment ended", ""])


def collect(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {key: value for key, value in os.environ.items() if not key.startswith("DLPERF_")}
    return subprocess.run(
        [PROGRAM, "collect", "--logs", str(folder), "--workload", "ngc_pytorch_rn50", *words],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_of(token: str, repeat: int, rate: float, batch: int = 256) -> Run:
    """A run that has a place in the matrix, and a time of its own."""
    nodes, gpus = map(int, re.findall(r"\d+", token))
    began = datetime(2020, 9, 15, 14, 28, 53) + timedelta(hours=nodes * gpus, minutes=repeat)
    return Run(nodes * gpus, rate, began, batch)


def keep(folder: Path, series: str, rates: Mapping[int, float]) -> None:
    """Write the logs of a case, by repeat, to such as ``amp_ngc/pytorch/1n8g/r50_b256_amp``."""
    batch = int(re.findall(r"_b(\d+)_", series)[0])
    for repeat, rate in rates.items():
        path = folder / f"{series}_{repeat}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(run_of(path.parent.name, repeat, rate, batch).log())


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The logs behind the AMP table of seed 003, named and placed as DLPerf's scripts do it."""
    for place, rates in PUBLISHED.items():
        precision = place.partition("_")[0]
        keep(tmp_path, f"{place}/r50_b256_{precision}", dict(enumerate(rates, 1)))
    return tmp_path


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """The five published trials on 8 GPUs, alone."""
    keep(tmp_path, "1n8g/r50_b256_amp", dict(enumerate(PUBLISHED["fp16_ngc/pytorch/1n8g"], 1)))
    return tmp_path


def codes(found: Mapping[str, list[Mapping[str, str]]], key: str = "problems") -> list[str]:
    return [problem["code"] for problem in found[key]]


def test_real_logs_give_the_numbers_worked_out_by_hand() -> None:
    """Each log's clock over 20 to 60 and its mean rate, to 0.01; two were cut, so exit 3."""
    done = collect(SAMPLES, "--window", "20:60", "--json")
    document = json.loads(done.stdout)
    found = {log["log"]: log for log in document["logs"]}
    assert (done.returncode, document["exit_code"], document["cases"]) == (3, 3, [])
    assert found.keys() == {row["file"] for row in EXPECTED}
    for row in EXPECTED:
        log = found[row["file"]]
        expected = (float(row["time_based_iter20_to_iter60"]), float(row["mean_total_ips"]))
        assert (log["throughput"], log["rate"]["mean"]) == pytest.approx(expected, abs=0.01)
        assert log["config"]["world_size"] == int(row["world_size"])
        cut = row["last_iter"] != "99"
        assert codes(log) == ["TRUNCATED"] * cut
        assert row["file"] in done.stderr or not cut
    assert sum(codes(log) == ["TRUNCATED"] for log in document["logs"]) == 2


def test_real_logs_are_listed_by_world_size_without_speedup() -> None:
    """Logs of different programs and machines are compared with none."""
    done = collect(SAMPLES, "--window", "20:60")
    rows = [line.split() for line in done.stdout.splitlines() if line.rstrip().endswith(".txt")]
    by_file = {row["file"]: row for row in EXPECTED}
    assert done.returncode == 3
    assert [row[0] for row in rows] == ["1", "1", "1", "8", "8", "8", "32", "32", "32"]
    for world_size, batch, precision, throughput, mean, *problems, name in rows:
        said = by_file[name]
        expected = (float(said["time_based_iter20_to_iter60"]), float(said["mean_total_ips"]))
        assert (float(throughput), float(mean)) == pytest.approx(expected, abs=0.01)
        assert (world_size, batch) == (said["world_size"], said["batch_size"])
        assert precision == ("amp" if said["amp"] == "True" else "fp32")
        assert problems == ["TRUNCATED"] * (said["last_iter"] != "99")
    assert "speedup" not in done.stdout


def test_a_line_break_in_a_logs_name_breaks_no_row(tmp_path: Path) -> None:
    """It is shown as an escape, in the table and in the reason beside it."""
    (tmp_path / "one\ntwo.log").write_bytes(b"no line of a log\n")
    done = collect(tmp_path)
    (row,) = [line for line in done.stdout.splitlines() if "two.log" in line]
    assert row.rstrip().endswith("NO-HEADER NO-STEPS   one\\ntwo.log")
    assert re.search(r"^one\\ntwo\.log: NO-STEPS: ", done.stderr, re.MULTILINE)


def test_the_default_window_that_no_log_covers_gives_no_number() -> None:
    """Upstream's extractor says 0 for all of these logs; here each says what it lacks."""
    done = collect(SAMPLES, "--json")
    logs = json.loads(done.stdout)["logs"]
    assert done.returncode == 3
    assert [log["throughput"] for log in logs] == [None] * len(EXPECTED)
    assert all("WINDOW" in codes(log) for log in logs)


def test_the_published_table_comes_back(published: Path) -> None:
    """Medians, means and speedups of seed 003; fp16 and amp are one precision, by their flags."""
    done = collect(published, "--json")
    cases = json.loads(done.stdout)["cases"]
    assert (done.returncode, done.stderr) == (0, "")
    assert [case["case"]["placement"] for case in cases] == ["1x1", "1x4", "1x8", "2x8", "4x8"]
    assert {case["case"]["precision"] for case in cases} == {"amp"}
    assert {case["case"]["params.loss_scale"] for case in cases} == {"dynamic"}
    assert [case["median"] for case in cases] == pytest.approx(MEDIANS, abs=0.005)
    assert [case["mean"] for case in cases] == pytest.approx(MEANS, abs=0.01)
    assert [case["speedup"] for case in cases] == pytest.approx(SPEEDUPS, abs=0.005)
    assert cases[3]["efficiency"] == pytest.approx(11991.94 / 802.9 / 16, abs=1e-6)
    assert {(case["trials_valid"], case["trials_planned"]) for case in cases} == {(5, 5)}
    assert cases[0]["interval"]["coverage"] == pytest.approx(0.9375)
    assert (cases[0]["min"], cases[0]["max"]) == pytest.approx((793.9, 803.69), abs=0.005)


def test_the_table_shows_what_the_document_says(published: Path) -> None:
    """A row a case, in DLPerf's words: median, speedup, and how many trials stand behind it."""
    done = collect(published)
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" *\dx\d ", line)]
    assert [row[:2] for row in rows] == [
        [placement, "256"] for placement in ("1x1", "1x4", "1x8", "2x8", "4x8")
    ]
    shown = [[float(cell) for cell in row if re.fullmatch(r"\d+\.\d\d", cell)] for row in rows]
    assert shown == [list(pair) for pair in zip(MEDIANS, SPEEDUPS, strict=True)]
    assert all("5/5" in row for row in rows)


def test_evidence_leads_back_to_the_lines(published: Path) -> None:
    """A trial names its log, and the lines and the bytes that its number came from."""
    trial = json.loads(collect(published, "--json").stdout)["cases"][3]["trials"][2]
    log = published / "amp_ngc/pytorch/2n8g/r50_b256_amp_3.log"
    lines = log.read_text().splitlines()
    assert published / trial["log"] == log
    ends = [lines[number - 1] for number in trial["lines"]]
    assert [re.findall(r"Iteration: (\d+)", line) for line in ends] == [["25"], ["125"]]
    checked = subprocess.run(["sha256sum", log], capture_output=True, text=True, check=True)
    assert trial["sha256"] == checked.stdout.split()[0]


def test_repeats_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """The tenth trial comes after the second."""
    keep(tmp_path, "1n1g/r50_b256_amp", {repeat: 800.0 + repeat for repeat in range(1, 12)})
    (case,) = json.loads(collect(tmp_path, "--json").stdout)["cases"]
    assert [trial["repeat"] for trial in case["trials"]] == list(range(1, 12))
    assert case["median"] == pytest.approx(806.0, abs=0.005)


def test_the_window_is_the_one_asked_for(tmp_path: Path) -> None:
    """The window of the September 2020 scripts, with their 121, and any other."""
    run = Run(32, 10917.09, datetime(2020, 9, 15, 14, 28, 53), batch=128, amp=False, prof=122)
    (tmp_path / "4n8g").mkdir()
    (tmp_path / "4n8g" / "r50_b128_fp32_1.log").write_text(run.log())
    (case,) = json.loads(collect(tmp_path, "--window", "20:120", "--json").stdout)["cases"]
    assert case["median"] == pytest.approx(10917.09, abs=0.005)
    odd = json.loads(collect(tmp_path, "--window", "20:25", "--json").stdout)["cases"][0]
    assert odd["median"] == pytest.approx(10917.09 * 5 / 5.1, abs=0.01)


def test_without_the_1n1g_case_there_is_no_speedup(tmp_path: Path) -> None:
    """Absent, never 1.0: neither from another batch size, nor from another placement."""
    for place in ("1n8g", "2n8g"):
        rates = next(rates for key, rates in PUBLISHED.items() if key.endswith(place))
        keep(tmp_path, f"{place}/r50_b256_amp", dict(enumerate(rates, 1)))
    keep(tmp_path, "1n1g/r50_b128_amp", {1: 780.0})
    done = collect(tmp_path, "--json")
    cases = json.loads(done.stdout)["cases"]
    assert done.returncode == 0
    assert [case["speedup"] for case in cases] == [1.0, None, None]
    assert [case["efficiency"] for case in cases] == [1.0, None, None]
    rows = [line for line in collect(tmp_path).stdout.splitlines() if " 256 " in line]
    assert all(re.search(r"\bn/a +n/a\b", row) for row in rows)


def test_an_invalid_1n1g_case_is_no_baseline(tmp_path: Path) -> None:
    """A baseline whose only log was cut gives a speedup to nobody."""
    keep(tmp_path, "1n1g/r50_b256_amp", {1: 802.9})
    keep(tmp_path, "1n8g/r50_b256_amp", {1: 6154.66})
    log = tmp_path / "1n1g" / "r50_b256_amp_1.log"
    log.write_text(log.read_text()[:5000])
    one, eight = json.loads(collect(tmp_path, "--json").stdout)["cases"]
    assert (one["median"], one["trials_valid"], one["trials_planned"]) == (None, 0, 1)
    assert eight["median"] == pytest.approx(6154.66, abs=0.005)
    assert (one["speedup"], eight["speedup"]) == (None, None)


@pytest.mark.parametrize(
    ("kept", "code"),
    [(0.0, "NO-STEPS"), (0.01, "TRUNCATED"), (0.5, "TRUNCATED"), (0.97, "TRUNCATED")],
)
def test_a_cut_log_is_left_out_of_its_median(five: Path, kept: float, code: str) -> None:
    """Cut before its header, in it, in the window or after: `4/5`, exit 3, and never 0.0."""
    log = five / "1n8g" / "r50_b256_amp_4.log"
    content = log.read_bytes()
    log.write_bytes(content[: int(len(content) * kept)])
    done = collect(five, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    trial = case["trials"][3]
    assert (done.returncode, case["trials_valid"], len(case["trials"])) == (3, 4, 5)
    assert (trial["state"], code in codes(trial)) == ("invalid", True)
    assert case["median"] == pytest.approx((6135.08 + 6154.66) / 2, abs=0.005)
    assert case["min"] == pytest.approx(6130.69, abs=0.005)
    table = collect(five)
    assert (table.returncode, "4/5" in table.stdout) == (3, True)
    assert "1n8g/r50_b256_amp_4.log: invalid: " in table.stderr
    assert not re.search(r"\b0\.0+\b(?!%)", table.stdout)


def test_one_log_in_two_cases_counts_in_neither(published: Path) -> None:
    """The 2-node listing of seed 003 is its 4-node listing with another world size."""
    source = published / "amp_ngc/pytorch/4n8g/r50_b256_amp_3.log"
    copy = source.read_text().replace("world_size : 32 ", "world_size : 16 ")
    (published / "amp_ngc/pytorch/2n8g/r50_b256_amp_1.log").write_text(copy)
    done = collect(published, "--json")
    two, four = json.loads(done.stdout)["cases"][3:]
    assert done.returncode == 3
    assert codes(two["trials"][0]) == ["RATE-MISMATCH", "SAME-EVIDENCE"]
    assert codes(four["trials"][2]) == ["SAME-EVIDENCE"]
    assert "2n8g/r50_b256_amp_1.log" in four["trials"][2]["problems"][0]["message"]
    assert (two["trials_valid"], four["trials_valid"]) == (4, 4)


def test_one_log_as_two_trials_counts_as_neither(five: Path) -> None:
    """A trial that was copied instead of run makes no median steadier."""
    source, copy = (five / "1n8g" / f"r50_b256_amp_{repeat}.log" for repeat in (1, 2))
    copy.write_bytes(source.read_bytes())
    (case,) = json.loads(collect(five, "--json").stdout)["cases"]
    assert [codes(trial) for trial in case["trials"]] == [["SAME-EVIDENCE"]] * 2 + [[]] * 3
    assert case["trials_valid"] == 3


@pytest.mark.parametrize(
    ("name", "words", "trusted"),
    [
        ("1n8g/r50_b128_amp_1.log", "micro_batch_size is 256 in the log and 128", False),
        ("2n8g/r50_b256_amp_1.log", "world_size is 8 in the log and 16", False),
        ("1n8g/r50_b256_fp32_1.log", "precision is amp in the log and fp32", True),
    ],
)
def test_a_header_that_contradicts_the_name_is_a_mismatch(
    tmp_path: Path, name: str, words: str, trusted: bool
) -> None:
    """No median; and no number at all where it is the batch that is in doubt."""
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(run_of("1n8g", 1, 6154.66).log())
    done = collect(tmp_path, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    (trial,) = case["trials"]
    assert (done.returncode, case["median"], case["trials_valid"]) == (3, None, 0)
    assert codes(trial) == ["CASE-MISMATCH"]
    assert words in trial["problems"][0]["message"]
    assert (trial["throughput"] is not None) == trusted


def test_a_mismatch_stays_a_trial_of_the_case_it_is_named_for(five: Path) -> None:
    """A log without AMP among logs with it makes 4/5, not a case of its own."""
    log = five / "1n8g" / "r50_b256_amp_2.log"
    log.write_text(re.sub(r"(amp|dynamic_loss_scale) : True", r"\1 : False", log.read_text()))
    (case,) = json.loads(collect(five, "--json").stdout)["cases"]
    assert (case["trials_valid"], case["trials_planned"]) == (4, 5)
    assert codes(case["trials"][1]) == ["CASE-MISMATCH"]


def test_loss_scales_never_share_a_median(five: Path) -> None:
    """Dynamic and static scaling differ by up to 4.7 % in seed 003, and names do not tell them."""
    log = five / "1n8g" / "r50_b256_amp_2.log"
    static = log.read_text().replace("static_loss_scale : 1 ", "static_loss_scale : 128.0 ")
    log.write_text(static.replace("dynamic_loss_scale : True", "dynamic_loss_scale : False"))
    cases = json.loads(collect(five, "--json").stdout)["cases"]
    found = {case["case"]["params.loss_scale"]: case["trials_valid"] for case in cases}
    assert found == {"dynamic": 4, 128.0: 1}


def test_what_a_name_says_beyond_the_case_is_kept_apart(tmp_path: Path) -> None:
    """Two models, or two values of a parameter, have a baseline each and no common median."""
    series = ("r50_b256_amp", "r50_b256_amp-xlaTrue", "rn101_b256_amp")
    for number, name in enumerate(series):
        keep(tmp_path / str(number), f"1n1g/{name}", {number + 1: 800.0 + 50 * number})
    keep(tmp_path / "1", "1n8g/r50_b256_amp-xlaTrue", {1: 6000.0})
    cases = json.loads(collect(tmp_path, "--json").stdout)["cases"]
    found = {
        (case["case"]["placement"], case["case"].get("params.named")): case["speedup"]
        for case in cases
    }
    expected = {("1x1", None): 1, ("1x1", "xlaTrue"): 1, ("1x1", "rn101"): 1}
    assert found == {**expected, ("1x8", "xlaTrue"): pytest.approx(6000 / 850, abs=1e-5)}


def test_headers_that_differ_do_not_share_a_median(five: Path) -> None:
    """A trial of another architecture says in what it differs."""
    log = five / "1n8g" / "r50_b256_amp_3.log"
    log.write_text(log.read_text().replace("arch : resnet50 ", "arch : resnet101 "))
    done = collect(five, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.returncode, case["trials_valid"]) == (3, 4)
    assert codes(case["trials"][2]) == ["PROVENANCE"]
    assert "arch is resnet101" in case["trials"][2]["problems"][0]["message"]


def test_a_stall_in_the_window_is_marked_and_counts(five: Path) -> None:
    """The number is what the clock says, and the reader is told why it is low."""
    log = five / "1n8g" / "r50_b256_amp_1.log"
    early, late = log.read_text().split("Iteration: 100 ")
    stalled = re.sub(
        r"DLL (\S+ \S+)",
        lambda found: f"DLL {datetime.fromisoformat(found[1]) + timedelta(seconds=3)}",
        late,
    )
    log.write_text(f"{early}Iteration: 100 {stalled}")
    done = collect(five, "--json")
    trial = json.loads(done.stdout)["cases"][0]["trials"][0]
    assert codes(trial, "marks") == ["GAP"]
    assert "r50_b256_amp_1.log: " in done.stderr
    assert "GAP: " in done.stderr
    assert trial["throughput"] == pytest.approx(2048 * 100 / (2048 * 100 / 6135.08 + 3), abs=0.01)


def test_a_log_that_cannot_be_read_stops_no_other(five: Path) -> None:
    """A link to a file that is gone is named with its cause, and is one of the five."""
    log = five / "1n8g" / "r50_b256_amp_5.log"
    log.unlink()
    log.symlink_to(five / "gone.log")
    done = collect(five, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.returncode, case["trials_valid"], case["trials_planned"]) == (3, 4, 5)
    assert codes(case["trials"][4])[0] == "READ"
    assert "No such file" in case["trials"][4]["problems"][0]["message"]


def test_a_single_log_can_be_given(five: Path) -> None:
    """A file is a folder of one."""
    done = collect(five / "1n8g" / "r50_b256_amp_3.log", "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.returncode, case["case"]["placement"]) == (0, "1x8")
    assert case["median"] == pytest.approx(6154.66, abs=0.005)


def test_reports_say_what_the_document_says(published: Path, tmp_path: Path) -> None:
    """`--out` gets JSON, CSV and Markdown, with every reason; and the logs stay as they are."""
    log = published / "amp_ngc/pytorch/2n8g/r50_b256_amp_2.log"
    log.write_text(log.read_text()[:9000])
    before = {path: path.read_bytes() for path in published.rglob("*.log")}
    out = tmp_path / "made" / "here"
    done = collect(published, "--out", str(out), "--json")
    document = json.loads(done.stdout)
    assert document.pop("exit_code") == 3
    assert json.loads((out / "results.json").read_text()) == document
    with (out / "results.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [row["trials_valid"] for row in rows] == ["5", "5", "5", "4", "5"]
    assert float(rows[4]["median_samples_per_s"]) == document["cases"][4]["median"]
    report = (out / "report.md").read_text()
    assert "| 4 | 8 | 256 | 22551.16 | 28.09 |" in report
    assert "median of 4/5" in report
    assert report.index("INCOMPLETE: trials") < report.index("## Final Result")
    assert "2n8g/r50\\_b256\\_amp\\_2.log: TRUNCATED" in report
    assert {path: path.read_bytes() for path in published.rglob("*.log")} == before


def test_the_same_logs_give_the_same_reports(five: Path, tmp_path: Path) -> None:
    """Byte for byte, whenever and however often they are read."""
    folders = [tmp_path / "out" / name for name in ("first", "second")]
    for folder in folders:
        assert collect(five / "1n8g", "--out", str(folder)).returncode == 0
    for name in ("results.json", "results.csv", "report.md"):
        first, second = ((folder / name).read_bytes() for folder in folders)
        assert first == second


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--json",), "NO-LOGS"),
        (("--json", "--workload", "ngc_pytorch_rn51"), "NO-WORKLOAD"),
    ],
)
def test_nothing_to_read_is_an_error_of_the_command_line(
    tmp_path: Path, words: tuple[str, ...], code: str
) -> None:
    """Exit 2, with the code on standard error and in the document."""
    (tmp_path / "SOURCES.md").write_text("no log\n")
    done = collect(tmp_path, *words)
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (2, 2)
    assert [error["code"] for error in document["errors"]] == [code]
    assert f"ERROR {code}" in done.stderr


@pytest.mark.parametrize("window", ["60:20", "20", "a:b", "20:20"])
def test_a_window_that_is_none_is_refused(window: str) -> None:
    """Exit 2 before any log is read."""
    done = collect(SAMPLES, "--window", window)
    assert (done.returncode, done.stdout) == (2, "")


def test_two_campaigns_in_one_folder_do_not_share_medians(tmp_path: Path) -> None:
    """The same repeat in two folders is another run: each folder has its own cases and baseline."""
    for day, factor in (("monday", 1.0), ("tuesday", 2.0)):
        keep(tmp_path / day, "1n1g/r50_b256_amp", {1: 800 * factor, 2: 802 * factor})
        keep(tmp_path / day, "1n8g/r50_b256_amp", {1: 6000 * factor, 2: 6002 * factor})
    cases = json.loads(collect(tmp_path, "--json").stdout)["cases"]
    assert [case["case"]["params.folder"] for case in cases] == ["monday", "tuesday"] * 2
    assert [case["trials_valid"] for case in cases] == [2, 2, 2, 2]
    assert [case["median"] for case in cases] == pytest.approx([801, 1602, 6001, 12002], abs=0.5)


# Root reads everything; without these two capabilities the mode counts for it as for others.
PLAIN_USER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


@pytest.mark.parametrize(("place", "mode"), [("", 0o600), ("1n8g", 0o600), ("1n8g", 0o000)])
def test_a_folder_that_cannot_be_read_is_told_and_hides_no_log(
    five: Path, place: str, mode: int
) -> None:
    """Exit 6 names it, whether it is the folder given or one below; never a median of the rest."""
    closed = five if not place else five / place
    (five / "1n1g").mkdir(exist_ok=True)
    (five / "1n1g" / "r50_b256_fp16_1.log").write_text("a log that can be read\n")
    closed.mkdir(exist_ok=True)
    (closed / "r50_b256_fp16_9.log").write_text("a log that cannot\n")
    closed.chmod(mode)
    words = PLAIN_USER if os.geteuid() == 0 else ()
    try:
        done = subprocess.run(
            [*words, PROGRAM, "collect", "--logs", str(five), "--workload", "ngc_pytorch_rn50"],
            cwd=five.parent,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        closed.chmod(0o700)
    assert done.returncode == 6, done.stdout + done.stderr
    assert f"ERROR LOG-RIGHTS: {closed}" in done.stderr
    assert "Permission denied. Fix: make it readable for this user." in done.stderr
    assert done.stdout == ""
