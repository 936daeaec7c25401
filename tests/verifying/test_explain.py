"""explain: one page, and every line of it true of the raw files."""

import hashlib
import html
import json
import re
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

import pytest

from orchestrator import errors
from orchestrator.collecting import explanation
from orchestrator.collecting.folder import report_on
from orchestrator.collecting.logs import Reading
from orchestrator.collecting.sweep import measured
from orchestrator.model.facts import JSON
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from tests.collecting.pytorch_logs import keep, run_of
from tests.commands import on_terminal
from tests.conftest import PROGRAM, Place
from tests.verifying import sweeps


def explain_sweep(sweep: Sweep, case: str) -> tuple[list[str], dict[str, JSON]]:
    """The page and the document of a case of a sweep."""
    return explanation.explain(measured(sweep), sweep.folder, case, sweep)


CASES = ("1n1g", "1n4g", "1n8g", "2n8g", "4n8g")
STEP = re.compile(r"DLL (\S+ \S+) - Epoch: 0 Iteration: (\d+) ")


def by_hand(log: Path, batch: int) -> tuple[float | None, dict[int, int]]:
    """Throughput between iterations 25 and 125 of a raw log, and the lines of all iterations."""
    clocks, lines = {}, {}
    for number, line in enumerate(log.read_text().split("\n"), 1):
        if found := STEP.match(line):
            clocks[int(found[2])] = datetime.fromisoformat(found[1])
            lines[int(found[2])] = number
    if 125 not in clocks:
        return None, lines
    return batch * 100 / (clocks[125] - clocks[25]).total_seconds(), lines


@pytest.mark.parametrize("token", CASES)
def test_every_line_of_a_page_is_true(untouched: dict[str, Sweep], token: str) -> None:
    """Of each number of seed 003's table: one page, compared with the raw files by hand."""
    sweep = untouched["pytorch"]
    page, _ = explain_sweep(sweep, f"{token}/amp/256")
    assert len(page) <= 23  # and the prompt below
    nodes, gpus = int(token[0]), int(token[2])
    batch, logs = 256 * nodes * gpus, sweep.folder / "logs" / token
    numbers = {}
    for repeat in range(1, 6):
        value, lines = by_hand(logs / f"r50_b256_amp_{repeat}.log", batch)
        numbers[repeat] = value
        (row,) = (line for line in page if re.match(rf"[> ] {repeat:>5}  ", line))
        assert row.split("  ")[-2].strip() == ("-" if value is None else f"{value:.2f}")
        assert ("invalid TRUNCATED" in row) == (value is None)
    known = {repeat: value for repeat, value in numbers.items() if value is not None}
    middle = median(known.values())
    ends = f"{min(known.values()):.2f} to {max(known.values()):.2f}"
    covered = f"{1 - 2 / 2 ** len(known):.2%}"
    sure = f"median of {len(known)}/5 trials; interval {ends} ({covered})"
    assert page[1] == f"{middle:.2f} images/s, {sure}"
    alone = median(
        by_hand(sweep.folder / f"logs/1n1g/r50_b256_amp_{repeat}.log", 256)[0] or 0
        for repeat in range(1, 6)
    )
    assert f"speedup {middle:.2f} / {alone:.2f} of 1x1 = {middle / alone:.2f};" in page[2]
    shown = sorted(known, key=lambda it: known[it])[(len(known) - 1) // 2 : len(known) // 2 + 1]
    for repeat in shown:
        log = logs / f"r50_b256_amp_{repeat}.log"
        digest = hashlib.sha256(log.read_bytes()).hexdigest()
        where = f"trial {repeat}: logs/{token}/{log.name}, sha256 {digest}"
        start = page.index(where)
        first, last, formula = page[start + 1 : start + 4]
        _, lines = by_hand(log, batch)
        raw = log.read_text().split("\n")
        for line, iteration in ((first, 25), (last, 125)):
            number, _, text = line.strip().partition(": ")
            assert int(number) == lines[iteration]
            assert raw[int(number) - 1] == text
        found = re.fullmatch(
            r" +(\d+) samples x \(125 - 25\) iterations / (\S+) s = (\S+) images/s", formula
        )
        assert found is not None, formula
        assert int(found[1]) == batch
        assert f"{batch * 100 / float(found[2]):.2f}" == found[3] == f"{known[repeat]:.2f}"
    samples = f"256 x {nodes * gpus} replicas x 1 = {batch} samples"
    assert f"rule clock, iterations 25 to 125, {samples}" in page
    check_circumstances(sweep, page, token, shown[0])


def check_circumstances(sweep: Sweep, page: Sequence[str], token: str, repeat: int) -> None:
    """Nodes, command and transport are those of attempt.json and of NCCL's lines."""
    folder = sweep.attempt_folder(f"{token}-r50_b256_amp_{repeat}", 1)
    attempt = json.loads((folder / "attempt.json").read_text())
    names = {"1": "vs1", "2": "vs[1-2]", "4": "vs[1-4]"}[token[0]]
    assert [task["node"] for task in attempt["tasks"]] == [
        f"vs{n + 1}" for n in range(int(token[0]))
    ]
    assert f"command on vs1: {shlex.join(attempt['tasks'][0]['argv'])}" in page
    raw = (folder / "r0.log").read_text()
    over_ib = "NET/IB : Using [0]mlx5_0:1/IB" in raw and "Using network IB" in raw
    transport = "IB mlx5_0" if over_ib else "-"
    assert f"attempt a1 on {names}, transport {transport}" in page


def test_each_mark_has_a_line(untouched: dict[str, Sweep]) -> None:
    page, document = explain_sweep(untouched["marked"], "1n1g")
    marks = document["marks"]
    assert isinstance(marks, list)
    assert sum(line.startswith("mark ") for line in page) == len(marks) == 6
    assert {line.split()[1] for line in page if line.startswith("> ")} == {"2", "4"}


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_shows_whole_lines_at_its_own_width(place: Place, columns: int) -> None:
    """Every word of the page, the number of the log's own result and all rows among them."""
    sweeps.made(Store(place.state), sweeps.gpt())
    words = (*PROGRAM, "explain", "4x8")
    text = on_terminal(words, columns=columns, cwd=place.folder, env=place.env())
    plain = place.must("explain", "4x8").stdout
    assert text.split() == plain.split()
    assert all(len(it) <= columns or " " not in it.strip() for it in text.splitlines()), text
    assert max(map(len, text.splitlines())) > min(columns, 120) - 25
    assert len(re.findall(r"^ +\d+:.*\|", plain, re.MULTILINE)) == 5
    assert re.search("sha256 [0-9a-f]{64}", plain)


@pytest.mark.parametrize(
    ("sweep", "case", "rule", "count"),
    [
        ("oneflow", "4x8", "clock", 2),
        ("bert", "1n8g", "rates", 6),
        ("gpt", "2D_PP_2x4x4_512_2304x24", "latency", 5),
        ("gpt", "4n8g/amp/8", "latency", 5),
        ("tensorflow", "1n8g-r50_b256_amp_1", "reported", 1),
    ],
)
def test_every_rule_shows_the_lines_it_stands_on(
    untouched: dict[str, Sweep], sweep: str, case: str, rule: str, count: int
) -> None:
    """As they stand in the raw file; by placement, benchmark's name, or trial."""
    page, shown = explain_sweep(untouched[sweep], case)
    (derivation,) = json.loads(json.dumps(shown))["derivations"]
    assert (derivation["rule"], len(derivation["lines"])) == (rule, count)
    raw = (untouched[sweep].folder / derivation["log"]).read_text().split("\n")
    for line in derivation["lines"]:
        assert raw[line["number"] - 1] == line["text"]
    document = json.loads((untouched[sweep].folder / "results.json").read_text())
    trials = [trial for case in document["cases"] for trial in case["trials"]]
    (lines,) = (trial["lines"] for trial in trials if trial["trial"] == derivation["trial"])
    numbers = sorted({line["number"] for line in derivation["lines"]})
    assert (lines[0], lines[-1]) == (numbers[0], numbers[-1])
    text = (untouched[sweep].folder / "report.html").read_text()
    for number in lines:
        assert f"<code>{number}: {html.escape(raw[number - 1][:40], quote=False)}" in text
    assert derivation["formula"] in " ".join(" ".join(page).split())


def test_logs_that_belong_to_no_sweep_are_explained_too(
    untouched: dict[str, Sweep], place: Place
) -> None:
    """With the same number, log lines and formula as the sweep whose logs they are."""
    logs = untouched["pytorch"].folder / "logs"
    words = ("--logs", str(logs), "--workload", "ngc_pytorch_rn50", "--window", "25:125")
    found = place.json("explain", "1n8g/amp/256", *words)
    _, own = explain_sweep(untouched["pytorch"], "1n8g/amp/256")
    assert found["derivations"] == [
        {**it, "log": it["log"].removeprefix("logs/"), "trial": it["log"].removeprefix("logs/")}
        for it in json.loads(json.dumps(own))["derivations"]
    ]
    assert (round(found["median"], 2), found["command"]) == (6154.66, [])
    assert found["speedup"] == own["speedup"]
    page = place.run("explain", "1x8", *words).stdout
    assert page.startswith(f"1x8 of logs in {logs}: ")
    done = place.run("explain", "8x8", *words)
    assert (done.returncode, "NO-CASE" in done.stderr) == (2, True)
    place.must("explain", "1x8", "--logs", str(logs), code=2)


def test_a_case_that_no_name_fits_or_several(untouched: dict[str, Sweep]) -> None:
    """The message lists the names that can be given."""
    sweep = untouched["pytorch"]
    with pytest.raises(errors.UsageError, match=r"NO-CASE.*there are 1x1, 1x4, 1x8,"):
        explain_sweep(sweep, "8n8g")
    with pytest.raises(errors.UsageError, match=r"NO-CASE.*Fix: did you mean '4n8g/amp/256'"):
        explain_sweep(sweep, "4n8g/amp/255")
    with pytest.raises(errors.UsageError, match=r"CASE-AMBIGUOUS.* 3 cases: 1x1, 1x4, 1x8"):
        explain_sweep(sweep, "1x*")


def test_logs_that_tell_no_case_say_so(place: Place) -> None:
    """Real ones, whose headers lack a part of it: a report shows their lines."""
    words = ("--logs", str(sweeps.TF), "--workload", "ngc_tensorflow_rn50")
    done = place.must("explain", "1n8g/amp/256", *words, code=2)
    assert "no case '1n8g/amp/256'; there are none" in done.stderr
    assert "--out DIR` shows the lines of each log" in done.stderr


def test_lines_are_of_the_log_that_gave_the_number(tmp_path: Path) -> None:
    """Logs that grow between the two readings: no line of another log stands beside a number."""
    keep(tmp_path, "1n1g/r50_b256_amp", {1: 803.0})
    reading = Reading("ngc_pytorch_rn50", (25, 125), None)
    report = report_on(tmp_path, reading)
    assert explanation.explain(report, tmp_path, "1x1")[1]["derivations"]
    for log in tmp_path.rglob("*.log"):
        log.write_bytes(b"one more\n" + log.read_bytes())
    with pytest.raises(errors.LocalError, match=r"LOG-CHANGED.* changed while its number was"):
        explanation.explain(report, tmp_path, "1x1")


def test_cases_of_one_name_are_told_by_their_trials(place: Place) -> None:
    """Those that differ in a parameter alone: what is listed can be given."""
    logs = place.state.parent / "logs"
    for name, scale in (
        ("dynamic", "static_loss_scale : 1  dynamic_loss_scale : True"),
        ("static", "static_loss_scale : 128  dynamic_loss_scale : False"),
    ):
        log = run_of("1n8g", len(name), 6154.66).log()
        path = logs / name / "1n8g/r50_b256_amp_1.log"
        path.parent.mkdir(parents=True)
        path.write_text(re.sub(r"static_loss_scale : 1  dynamic_loss_scale : True", scale, log))
    words = ("--logs", str(logs), "--workload", "ngc_pytorch_rn50", "--window", "25:125")
    refused = place.run("explain", "1n8g/amp/256", *words)
    assert (refused.returncode, "CASE-AMBIGUOUS" in refused.stderr) == (2, True)
    names = re.findall(r"'(1x8 AMP\(BS=256, .+?\))'", refused.stderr)
    assert len(names) == 2
    for name, folder in zip(names, ("dynamic", "static"), strict=True):
        assert f"trial 1: {folder}/1n8g/" in place.must("explain", name, *words).stdout


def test_the_command_shows_it_also_of_an_archive(place: Place) -> None:
    """The same page, and the same as JSON; exit 3 without a number."""
    sweep = sweeps.made(Store(place.state), sweeps.gpt())
    place.must("archive", "--output", "gpt.tar.zst")
    done = place.run("explain", "4x8")
    assert (done.returncode, place.run("explain", "4x8", "gpt.tar.zst").stdout) == (0, done.stdout)
    assert "39.03 samples/s, median of 1/1 trials" in done.stdout
    document = json.loads(place.run("explain", "4x8", "--json").stdout)
    assert (document["exit_code"], document["sweep"]) == (0, sweep.id)
    assert document["command"] == ["python", "main.py"]
    for log in sweep.folder.rglob("*.log"):
        log.unlink()
    done = place.must("explain", "4x8", code=3)
    assert "no number: median of 0/1 trials, none of which counts" in done.stdout
