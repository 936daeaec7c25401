"""A log format is added by one file and a sample: with that of its page, by public names alone."""

import re
from dataclasses import replace
from pathlib import Path

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


def test_it_is_one_short_file_that_imports_public_names_alone() -> None:
    """Nothing of the engine's inside is needed, and nothing is registered."""
    assert len(TEXT.splitlines()) < 150
    assert set(re.findall(r"^from (orchestrator\S*) import", TEXT, re.MULTILINE)) == {
        "orchestrator.logs"
    }


def test_its_sample_is_measured_by_its_clock(plain: logs.Format) -> None:
    """8 x 128 images in each of 40 steps of 0.16 s, by hand: 6400 images/s."""
    log = logs.reader(plain)([SAMPLE], None)
    assert (log.runs, log.steps, log.problems) == (1, 100, ())
    assert log.config == {
        "micro_batch_size": 128,
        "world_size": 8,
        "precision": "amp",
        "iterations": 100,
    }
    assert validity.compute_throughput(log, 1024, "clock") == 6400
    assert logs.progress(plain)(SAMPLE) == (100, 6400.0)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_what_the_engine_promises_holds_for_it(plain: logs.Format, size: int) -> None:
    """Chunks make no difference; what is cut, broken, doubled or run twice is seen."""
    read = logs.reader(plain)
    chunks = [SAMPLE[at : at + size] for at in range(0, len(SAMPLE), size)]
    assert read(chunks, None) == read([SAMPLE], None)
    lines = SAMPLE.splitlines(keepends=True)
    assert codes(read([b"".join(lines[:80])], None)) == {"TRUNCATED"}
    assert codes(read([SAMPLE[:-10]], None)) == {"TRUNCATED"}
    assert codes(read([SAMPLE.replace(b"step=30 ", b"step=3_0 ")], None)) == {
        "MALFORMED",
        "SKIPPED-STEPS",
    }
    assert codes(read([SAMPLE, SAMPLE], None)) == {"SEVERAL-RUNS"}
    assert codes(read([b"".join([*lines[:40], lines[39], *lines[40:]])], None)) == {"DUP-STEPS"}
    assert codes(read([b"".join(lines[1:])], None)) == {"NO-HEADER"}


def test_two_logs_of_a_format_without_a_clock_are_no_copies(plain: logs.Format) -> None:
    """Their lines differ in losses alone; the whole line is the evidence, and copies are equal."""
    step = plain.step.replace(rb" time=(?P<clock>\d{9,10}\.\d{6})", b"")
    read = logs.reader(replace(plain, rule="rates", clock=None, step=step))
    one = re.sub(rb" time=\S+", b"", SAMPLE)
    other = one.replace(b"loss=5.", b"loss=4.")
    first, second = read([one], None), read([other], None)
    assert first.digest != second.digest
    assert first.digest == read([one + b"bye\n"], None).digest


def test_the_sample_is_what_its_source_says() -> None:
    """Made by hand, for a program that does not exist; its SOURCES.md says so."""
    assert "made for this test" in Path(SAMPLES / "logs-plain" / "SOURCES.md").read_text()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (rb"iteration (?P<iteration>[0-9]+)", r"no group \(\?P<rate>"),
        (rb"(?P<iteration>1)(?P<rate>2)(?P<clok>3)", "a group 'clok'"),
        (rb"(?P<iteration>1)(?P<rate>2", "is no pattern: missing"),
    ],
)
def test_a_pattern_of_a_step_that_cannot_work_is_refused(
    plain: logs.Format, step: bytes, said: str
) -> None:
    """When the format is made, so that the plug-in and its line are named."""
    with pytest.raises(ValueError, match=said):
        replace(plain, step=step)
