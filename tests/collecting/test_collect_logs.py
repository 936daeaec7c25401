"""`collect --logs`: real logs, and folders in DLPerf's naming."""

import csv
import os
import re
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
import typer

import tests
from orchestrator.cli import options
from tests import commands
from tests.collecting.pytorch_logs import PROGRAM, Run, collect, keep, results

SAMPLES = tests.SAMPLES / "logs-pytorch-rn50"
with (SAMPLES / "expected.csv").open(encoding="ascii") as file:
    EXPECTED = tuple(csv.DictReader(file))
MEDIANS = (802.9, 3137.44, 6154.66, 11991.94, 22551.16)
MEANS = (801.31, 3133.7, 6150.81, 11979.95, 22599.43)
SPEEDUPS = (1.0, 3.91, 7.67, 14.94, 28.09)


def test_real_logs_are_listed_by_world_size_without_speedup() -> None:
    """Logs of different programs and machines are compared with none."""
    done = collect(SAMPLES, "--window", "20:60")
    _, _, table = done.stdout.partition("mean of printed")
    rows = [line.split() for line in table.splitlines() if line.rstrip().endswith(".txt")]
    by_file = {row["file"]: row for row in EXPECTED}
    assert done.returncode == 3
    assert [row[0] for row in rows] == ["1", "1", "1", "8", "8", "8", "32", "32", "32"]
    for world_size, batch, precision, throughput, mean, _, _, *problems, name in rows:
        said = by_file[name]
        expected = (float(said["time_based_iter20_to_iter60"]), float(said["mean_total_ips"]))
        assert (float(throughput), float(mean)) == pytest.approx(expected, abs=0.01)
        assert (world_size, batch) == (said["world_size"], said["batch_size"])
        assert precision == ("amp" if said["amp"] == "True" else "fp32")
        assert problems == ["SHORT-RUN"] * (said["last_iter"] != "99")
    assert "speedup" not in done.stdout


def test_a_line_break_in_the_name_of_a_log_breaks_no_row(tmp_path: Path) -> None:
    (tmp_path / "one\ntwo.log").write_bytes(b"no line of a log\n")
    done = collect(tmp_path)
    *said, row = [line for line in done.stdout.splitlines() if "two.log" in line]
    assert {line.partition(":")[0] for line in said} == {"  does not count"}
    assert row.rstrip().endswith("NO-HEADER NO-STEPS   one\\ntwo.log")
    assert re.search(r"^one\\ntwo\.log: NO-STEPS: ", done.stderr, re.MULTILINE)


def test_the_published_table_comes_back(published: Path) -> None:
    """Medians, means and speedups of seed 003; fp16 and amp are one precision, by their flags."""
    cases = results(published)["cases"]
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


def test_the_table_shows_the_published_medians_and_speedups(published: Path) -> None:
    """A row a case, in DLPerf's words, with the number of trials behind it."""
    done = collect(published)
    assert (done.returncode, done.stderr) == (0, "")
    assert "(AMP, batch size 256, on cuda, " in done.stdout
    rows = [
        re.split(" {3,}", line.strip())
        for line in done.stdout.splitlines()
        if re.match(r" *\dx\d ", line)
    ]
    assert [row[0] for row in rows] == ["1x1", "1x4", "1x8", "2x8", "4x8"]
    shown = [[float(row[place].partition(",")[0]) for place in (1, 4)] for row in rows]
    assert shown == [list(pair) for pair in zip(MEDIANS, SPEEDUPS, strict=True)]
    assert all("5/5" in row for row in rows)


def test_evidence_leads_back_to_the_lines(published: Path) -> None:
    """A trial names its log, its sha256, and the lines that its number came from."""
    trial = results(published)["cases"][3]["trials"][2]
    log = published / "amp_ngc/pytorch/2n8g/r50_b256_amp_3.log"
    lines = log.read_text().splitlines()
    assert published / trial["log"] == log
    ends = [lines[number - 1] for number in trial["lines"]]
    assert [re.findall(r"Iteration: (\d+)", line) for line in ends] == [["25"], ["125"]]
    checked = subprocess.run(["sha256sum", log], capture_output=True, text=True, check=True)
    assert trial["sha256"] == checked.stdout.split()[0]


def test_repeats_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """The tenth trial comes after the second."""
    keep(tmp_path, "1n1g/r50_b256_amp", {repeat: 800.0 + repeat for repeat in range(1, 12)})
    (case,) = results(tmp_path)["cases"]
    assert [trial["repeat"] for trial in case["trials"]] == list(range(1, 12))
    assert case["median"] == pytest.approx(806.0, abs=0.005)


@pytest.mark.parametrize(
    ("window", "median"), [((20, 120), 10917.09), ((20, 25), 10917.09 * 5 / 5.1)]
)
def test_the_window_is_the_requested_one(
    tmp_path: Path, window: tuple[int, int], median: float
) -> None:
    """The window of the September 2020 scripts, with their 121 iterations, and any other."""
    run = Run(32, 10917.09, datetime(2020, 9, 15, 14, 28, 53), batch=128, amp=False, prof=122)
    (tmp_path / "4n8g").mkdir()
    (tmp_path / "4n8g" / "r50_b128_fp32_1.log").write_text(run.log())
    (case,) = results(tmp_path, window=window)["cases"]
    assert case["median"] == pytest.approx(median, abs=0.01)


@pytest.mark.parametrize("window", ["60:20", "20", "a:b", "20:20"])
def test_a_window_without_two_ascending_ends_is_refused(window: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"got '{window}'"):
        options.window(window)


def test_a_single_log_can_be_given(five: Path) -> None:
    (case,) = results(five / "1n8g" / "r50_b256_amp_3.log")["cases"]
    assert case["case"]["placement"] == "1x8"
    assert case["median"] == pytest.approx(6154.66, abs=0.005)


# Root reads everything; without these two capabilities the mode counts for it as for others.
PLAIN_USER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


@pytest.mark.parametrize(("place", "mode"), [("", 0o600), ("1n8g", 0o600), ("1n8g", 0o000)])
def test_a_folder_that_cannot_be_read_is_an_error_and_hides_no_log(
    five: Path, place: str, mode: int
) -> None:
    """The given folder or one below it is unreadable: no median of the rest."""
    closed = five / place
    (five / "1n1g").mkdir(exist_ok=True)
    (five / "1n1g" / "r50_b256_fp16_1.log").write_text("a log that can be read\n")
    closed.chmod(mode)
    words = PLAIN_USER if os.geteuid() == 0 else ()
    try:
        done = commands.run(
            [*words, PROGRAM, "collect", "--logs", str(five), "--workload", "ngc_pytorch_rn50"],
            cwd=five.parent,
        )
    finally:
        closed.chmod(0o700)
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert f"ERROR LOG-RIGHTS: {closed}" in done.stderr
    assert "Permission denied. Fix: make it readable for this user." in done.stderr
