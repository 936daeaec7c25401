"""A log format is added by one file and a sample: with that of its page, by public names alone."""

import re
from dataclasses import replace

import pytest

from orchestrator import logs
from orchestrator.measuring import validity
from tests import ROOT, SAMPLES
from tests.logs.recorded import codes

PAGE = (ROOT / "docs/adding-a-log-format.md").read_text(encoding="utf-8")
(TEXT,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SAMPLE = (SAMPLES / "logs-plain" / "8gpu_amp_b128.log").read_bytes()


@pytest.fixture(scope="module")
def plain() -> logs.Format:
    """The format that the page describes."""
    names: dict[str, object] = {}
    exec(compile(TEXT, "adding-a-log-format.md", "exec"), names)
    found = names["PLAIN"]
    assert isinstance(found, logs.Format)
    return found


def test_the_page_is_one_short_file_that_imports_public_names_alone() -> None:
    assert len(TEXT.splitlines()) < 150
    imported = re.findall(r"^from (orchestrator\S*) import", TEXT, re.MULTILINE)
    assert set(imported) == {"orchestrator.logs"}


def test_the_sample_is_measured_by_its_clock(plain: logs.Format) -> None:
    """8 x 128 images in each of 40 steps of 0.16 s, by hand: 6400 images/s."""
    log = logs.reader(plain)([SAMPLE], None)
    assert (log.runs, log.steps, log.problems) == (1, 100, ())
    expected = {"micro_batch_size": 128, "world_size": 8, "precision": "amp", "iterations": 100}
    assert log.config == expected
    assert validity.compute_throughput(log, 1024, "clock") == 6400
    assert logs.progress(plain)(SAMPLE) == (100, 6400.0)


LINES = SAMPLE.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"".join(LINES[:80]), {"TRUNCATED"}),
        (SAMPLE[:-10], {"TRUNCATED"}),
        (SAMPLE.replace(b"step=30 ", b"step=3_0 "), {"MALFORMED", "SKIPPED-STEPS"}),
        (SAMPLE * 2, {"SEVERAL-RUNS"}),
        (b"".join([*LINES[:40], LINES[39], *LINES[40:]]), {"DUP-STEPS"}),
        (b"".join(LINES[1:]), {"NO-HEADER"}),
    ],
    ids=["cut", "torn", "broken", "two runs", "twice", "no header"],
)
def test_the_engine_finds_damage_in_a_new_format(
    plain: logs.Format, text: bytes, expected: set[str]
) -> None:
    assert codes(logs.reader(plain)([text], None)) == expected


def test_whole_lines_are_the_evidence_of_a_format_without_a_clock(plain: logs.Format) -> None:
    """Two logs that differ in losses alone are no copies."""
    step = plain.step.replace(rb" time=(?P<clock>\d{9,10}\.\d{6})", b"")
    read = logs.reader(replace(plain, rule="rates", clock=None, step=step))
    one = re.sub(rb" time=\S+", b"", SAMPLE)
    first = read([one], None)
    assert first.digest != read([one.replace(b"loss=5.", b"loss=4.")], None).digest
    assert first.digest == read([one + b"bye\n"], None).digest


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (rb"iteration (?P<iteration>[0-9]+)", r"no group \(\?P<rate>"),
        (rb"rate (?P<rate>[0-9]+)", r"no group \(\?P<iteration>"),
        (rb"(?P<iteration>1)(?P<rate>2)(?P<clok>3)", "a group 'clok'"),
        (rb"(?P<iteration>1)(?P<rate>2", "is no pattern: missing"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused_when_the_format_is_made(
    plain: logs.Format, step: bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replace(plain, step=step)
