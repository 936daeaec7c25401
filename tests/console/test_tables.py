"""Tables on terminals of every width: no number, name or fingerprint is ever broken."""

import re
import shutil
import sys
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from orchestrator.console import terminal
from tests import ROOT, commands
from tests.collecting.oneflow_logs import SEED_000, rn50
from tests.commands import on_terminal

PROGRAM = (sys.executable, "-c", "from orchestrator.cli import main; main()")
ENV = commands.environment(PYTHONPATH=str(ROOT))
WIDTHS = (40, 80, 120, 200)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 28 logs of a published report, and one more case with a single trial."""
    folder = tmp_path_factory.mktemp("logs")
    trials = {**SEED_000, "1n4g": (1500.25,)}
    for number, (token, throughputs) in enumerate(trials.items()):
        (folder / token).mkdir()
        for repeat, throughput in enumerate(throughputs, 1):
            began = 1597933942.9863544 + 1000 * (10 * number + repeat)
            name = f"rn50_b128_fp32_{repeat}.log"
            (folder / token / name).write_text(rn50(token, throughput, began))
    return folder


def seen(*words: str, columns: int, cwd: Path) -> str:
    """What a person sees of a command."""
    return on_terminal((*PROGRAM, *words), columns=columns, cwd=cwd, env=ENV)


@pytest.mark.parametrize("columns", WIDTHS)
def test_numbers_of_results_are_whole_at_every_width(
    logs: Path, tmp_path: Path, columns: int
) -> None:
    """Each median stands in one piece beside its speedup; no line of the table is too wide."""
    words = ("collect", "--logs", str(logs), "--workload", "oneflow_rn50")
    text = seen(*words, columns=columns, cwd=tmp_path)
    words_seen = text.replace(": ", " ").split()
    for number in ("384.9", "1500.2", "2969.5", "5906.6", "11711.2", "images/s"):
        assert number in words_seen, text
    for case, speedup in (("1x8", "7.71"), ("4x8", "30.43")):
        assert (
            speedup in text.partition(case)[2].replace(": ", " ").replace(",", " ").split()[:14]
        ), text
    _, *table = text.partition(f"{logs} (")[2].partition("No report")[0].splitlines()
    assert table
    assert all(len(line.rstrip()) <= columns for line in table if "columns hidden" not in line), (
        text
    )
    assert text.count("+0.0%") == 4


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_verdict_wraps_between_words(logs: Path, tmp_path: Path, columns: int) -> None:
    """The lines above the table are no wider than the terminal, and no word of them is torn."""
    torn = tmp_path / "logs"
    shutil.copytree(logs, torn)
    log = torn / "1n8g" / "rn50_b128_fp32_1.log"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    words = ("collect", "--logs", str(torn), "--workload", "oneflow_rn50")
    first = seen(*words, columns=columns, cwd=tmp_path).partition(f"\n{torn}")[0]
    plain = commands.run([*PROGRAM, *words], cwd=tmp_path, env=ENV).stdout.partition(f"\n{torn}")[0]
    assert first.split() == plain.split()
    assert "28 of 29 trials" in plain
    assert len(plain.splitlines()) >= 2
    assert all(len(line) <= columns or " " not in line.strip() for line in first.splitlines())
    assert (len(first.splitlines()) > len(plain.splitlines())) == (columns <= 120)


def test_columns_that_do_not_fit_are_hidden_and_named(logs: Path, tmp_path: Path) -> None:
    """On a wide terminal all are shown; a single trial has no spread and no interval."""
    words = ("collect", "--logs", str(logs), "--workload", "oneflow_rn50")
    narrow = seen(*words, columns=60, cwd=tmp_path)
    assert "columns hidden at this width: interval (coverage), spread" in narrow
    wide = seen(*words, columns=200, cwd=tmp_path)
    assert "columns hidden" not in wide
    rows = [re.split(" {3,}", line.strip()) for line in wide.splitlines()]
    (single,) = [row for row in rows if "1500.2" in row]
    (several,) = [row for row in rows if "11711.2" in row]
    assert (single[2:4], single[6]) == (["n/a", "n/a"], "1/1")
    assert (several[2].endswith("(98.44%)"), several[3]) == (True, "1.6%")


@pytest.mark.parametrize("columns", WIDTHS)
def test_findings_keep_their_codes_in_one_piece(tmp_path: Path, columns: int) -> None:
    """Codes are what people search for, and commands what they copy."""
    inventory = tmp_path / "two.yaml"
    inventory.write_text(
        "name: two\n"
        "defaults: {transport: local, runtime: process, gpus: {count: 8}}\n"
        "nodes: [{name: node1, address: 127.0.0.1}]\n"
    )
    text = seen("provision", str(inventory), columns=columns, cwd=tmp_path)
    assert {"GPU-NO-DRIVER", "node1"} <= set(text.split()), text


CELLS = st.lists(st.text("abc12-./", min_size=1, max_size=9), max_size=5).map(" ".join)


def check_words(head: tuple[str, ...], rows: list[tuple[str, ...]], width: int) -> None:
    """Check that a table has all its words, each whole, in lines that fit."""
    lines, hidden = terminal.render([*zip(head, zip(*rows, strict=True), strict=True)], width, ())
    assert all(len(line) <= width for line in lines)
    assert hidden == []
    named = {word for name in head for word in (*name.split(), f"{name.split()[-1]}:")}
    shown, words = (
        sorted(word for text in texts for word in text.split() if not re.fullmatch("-+", word))
        for texts in (lines, (cell for row in rows for cell in row))
    )
    assert [word for word in shown if word not in named] == words


@hypothesis.given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4), st.integers(20, 80)
)
def test_no_word_is_cut_at_any_width(rows: list[tuple[str, ...]], width: int) -> None:
    check_words(("CODE", "SEEN", "TO DO"), rows, width)


@pytest.mark.parametrize("width", [*range(78, 123), 200])
def test_no_code_of_a_finding_is_cut(width: int) -> None:
    """A table of findings as it was seen on 120 columns, where a code lost its end."""
    seen = "python (pid 4711) of user alice uses 90% of GPU 0 and 30 GiB of its memory"
    fix = "ask alice; `dlperf-orch stop` ends what sweeps left"
    row = ("warning", "ALIEN-PROCESS", "gpu[01-16]", seen, "no process of others", fix)
    check_words(("SEVERITY", "CODE", "NODE", "SEEN", "EXPECTED", "WHAT TO DO"), [row], width)


def test_numbers_are_aligned_on_the_right() -> None:
    lines, _ = terminal.render([("n", ["5", "1234"]), ("word", ["a", "bcd"])], 80, ())
    assert lines[2:4] == ["   5   a", "1234   bcd"]


def test_a_word_that_is_longer_than_a_line_stays_whole() -> None:
    assert terminal.wrap(f"see {'x' * 50}", 20) == ["see", f"  {'x' * 50}"]


def test_what_is_piped_has_a_line_a_row_and_no_padding(logs: Path, tmp_path: Path) -> None:
    """As programs that read lines expect it."""
    for words in (
        ("list", "playbooks"),
        ("collect", "--logs", str(logs), "--workload", "oneflow_rn50"),
    ):
        out = commands.run([*PROGRAM, *words], cwd=tmp_path, env=ENV).stdout
        assert not [line for line in out.splitlines() if line != line.rstrip()]
    listed = commands.run([*PROGRAM, "list", "playbooks"], cwd=tmp_path, env=ENV).stdout
    shipped = len([*(ROOT / "playbooks").glob("*.yaml")])
    assert listed.count("\n") == shipped + 4  # title, head, rule, and an empty line
