"""What is seen of a sweep while it runs: one trial at a time, and three side by side."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator import console
from orchestrator.console import view
from orchestrator.console.view import View
from tests import ROOT
from tests.commands import on_terminal

ENV = {**os.environ, "PYTHONPATH": str(ROOT)}

# Three trials at once on a terminal; the second is tried twice, and the first ends last.
THREE = """
import time
from orchestrator.console import Voice

voice = Voice(as_json=False)
with voice.view("toy-1", 5, 1) as view:
    rows = [view.trial(name, 100) for name in ("one", "two", "three")]
    for row in rows:
        row.__enter__()
        row.attempt(1)
    time.sleep(0.6)
    for row in rows:
        row.progress(50, 123.456)
    time.sleep(0.6)
    rows[1].ended("infra-lost", "LOST", final=False)
    rows[1].attempt(2)
    rows[2].ended("valid", "120.00 images/s", final=True)
    time.sleep(0.6)
    for row in rows[:2]:
        row.ended("valid", "121.00 images/s", final=True)
"""

# Eight threads that speak at once, with lines of the debug log between.
SPEAKING = """
import logging, sys, threading
from pathlib import Path
from orchestrator.cli import debug_log
from orchestrator.console import Voice

voice = Voice(as_json=False)
debug_log.begin(Path(sys.argv[1]), voice.line)
log = logging.getLogger("dlperf.node")

def speak(name):
    for number in range(200):
        voice.line(f"<{name} {number} " + "x" * 150 + ">")
        log.debug("(%s %d %s)", name, number, "y" * 150)

threads = [threading.Thread(target=speak, args=(f"t{n}",)) for n in range(8)]
with voice.view("toy-1", 5, 1):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


class Clock:
    """The view's clock, set by a test; it stands still between."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that goes when it is told to: minutes pass at once."""
    made = Clock()
    monkeypatch.setattr(view, "time", made)  # else minutes of waiting
    return made


def test_one_trial_after_the_other_is_said_as_ever(clock: Clock) -> None:
    """A trial keeps its number through retries, and after an adopted attempt that failed."""
    said: list[str] = []
    with View(said.append, None, "toy-1", 4, 1) as shown:
        with shown.trial("c", 100) as row:
            row.attempt(2)
            clock.now_s += 10
            row.ended("failed", "OOM", final=False)
        with shown.trial("a", 100) as row:
            row.attempt(1)
            clock.now_s += 31
            row.progress(50, 123.456)
            clock.now_s += 1
            row.progress(51, 123.456)
            clock.now_s += 28
            row.ended("infra-lost", "LOST", final=False)
            row.attempt(2)
            clock.now_s += 50
            row.ended("valid", "9.00 images/s", final=True)
        with shown.trial("b", 100) as row:
            row.attempt(1)
            clock.now_s += 60
            row.ended("failed", "OOM", final=True)
        with shown.trial("c", 100) as row:
            row.attempt(3)
            clock.now_s += 60
            row.ended("valid", "9.00 images/s", final=True)
    assert said == [
        "[2/4] c a2: started",
        "[2/4] c a2: failed, OOM, took 0:10",
        "[3/4] a a1: started",
        "[3/4] a a1: iteration 50 of 100, 123.46 samples/s, 0:31",
        "[3/4] a a1: infra-lost, LOST, took 1:00",
        "[3/4] a a2: started",
        "[3/4] a a2: valid, 9.00 images/s, took 0:50, about 4:00 left",
        "[4/4] b a1: started",
        "[4/4] b a1: failed, OOM, took 1:00, about 1:30 left",
        "[2/4] c a3: started",
        "[2/4] c a3: valid, 9.00 images/s, took 1:00",
    ]


def test_trials_side_by_side_have_numbers_of_their_own(clock: Clock) -> None:
    """Whichever ends first; and what the others have done counts for the time that is left."""
    said: list[str] = []
    with View(said.append, None, "toy-1", 12, 0) as shown, ExitStack() as stack:
        rows = [shown.trial(name, 100) for name in "abcd"]
        for row in rows[:3]:
            stack.enter_context(row)
            row.attempt(1)
        clock.now_s += 100
        rows[0].progress(50, 1.0)
        rows[2].progress(50, 1.0)
        rows[1].ended("valid", "v", final=True)
        stack.enter_context(rows[3])
        rows[3].attempt(1)
        clock.now_s += 20
        rows[0].ended("infra-lost", "LOST", final=False)
        rows[0].attempt(2)
    assert [line for line in said if "iteration" not in line] == [
        "[1/12] a a1: started",
        "[2/12] b a1: started",
        "[3/12] c a1: started",
        "[2/12] b a1: valid, v, took 1:40, about 8:20 left",  # 2 of 12 in 100 s
        "[4/12] d a1: started",
        "[1/12] a a1: infra-lost, LOST, took 2:00, about 14:00 left",  # 1.5 of 12 in 120 s
        "[1/12] a a2: started",
    ]


def test_a_trial_that_was_interrupted_promises_no_time(clock: Clock) -> None:
    """Nothing further runs: how long the rest would take is nothing to wait for."""
    said: list[str] = []
    with View(said.append, None, "toy-1", 3, 0) as shown:
        with shown.trial("a", 100) as row:
            row.attempt(1)
            clock.now_s += 11
            row.ended("valid", "v", final=True)
        with shown.trial("b", 100) as row:
            row.attempt(1)
            row.ended("interrupted", "INTERRUPTED", final=False)
    assert said[1] == "[1/3] a a1: valid, v, took 0:11, about 0:22 left"
    assert said[3] == "[2/3] b a1: interrupted, INTERRUPTED, took 0:00"


def test_three_trials_have_a_line_each_on_a_terminal(tmp_path: Path) -> None:
    seen = on_terminal((sys.executable, "-c", THREE), columns=100, cwd=tmp_path, env=ENV)
    drawn = seen.replace("\r", "\n")
    for name in ("one", "two", "three"):
        assert re.search(rf"^{name} a1: starting, 0:00", drawn, re.MULTILINE), seen
        assert re.search(rf"^{name} a1: iteration 50 of 100, 123.46 samples/s", drawn, re.MULTILINE)
    assert "two a2: starting" in drawn
    assert "[3/5] two a1: infra-lost, LOST, took 0:01\n" in seen
    assert "[4/5] three a1: valid, 120.00 images/s, took 0:01, about 0:0" in seen
    assert "[3/5] two a2: valid" in seen
    assert "toy-1: 2 of 5 trials" in seen


def test_a_long_step_has_a_line_every_ten_seconds(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "time", clock)  # else seconds of waiting
    spoken = console.Voice(as_json=False)
    for mib in range(1, 27):
        clock.now_s += 1
        spoken.working(f"pull base: {mib} of 26 MiB")
    assert capfd.readouterr().err == "pull base: 11 of 26 MiB\npull base: 22 of 26 MiB\n"


def test_a_row_that_nobody_waits_for_says_nothing() -> None:
    """After the view has ended its lanes may go on for a moment; the last words are not theirs."""
    said: list[str] = []
    with View(said.append, None, "toy-1", 2, 0) as shown:
        row = shown.trial("a", 100)
        row.__enter__()
        row.attempt(1)
    row.ended("interrupted", "INTERRUPTED", final=False)
    assert said == ["[1/2] a a1: started"]


def test_logs_without_an_iteration_leave_an_estimate() -> None:
    """The log of a plug-in may show nothing but the program's own result."""
    said: list[str] = []
    with View(said.append, None, "toy-1", 3, 0) as shown, shown.trial("a", 0) as first:
        first.attempt(1)
        with shown.trial("b", 0) as second:
            second.attempt(1)
            first.ended("valid", "120.00 images/s", final=True)
    assert said[-1].startswith("[1/3] a a1: valid, 120.00 images/s, took ")


def test_hundreds_of_trials_by_eight_threads_have_each_number_once() -> None:
    said: list[str] = []
    names = iter(range(400))
    with View(said.append, None, "toy-1", 400, 0) as shown:

        def work() -> None:
            for name in names:
                with shown.trial(f"t{name}", 10) as row:
                    row.attempt(1)
                    row.progress(5, 1.0)
                    row.ended("valid", "v", final=True)

        in_threads(work)
    ended = [line for line in said if "valid" in line]
    assert sorted(int(line[1:].partition("/")[0]) for line in ended) == list(range(1, 401))
    began = [line for line in said if "started" in line]
    assert sorted(line.partition(":")[0] for line in began) == sorted(
        line.partition(":")[0] for line in ended
    )


def in_threads(work: Callable[[], None]) -> None:
    """Run the work in eight threads at once."""
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


@pytest.mark.parametrize("terminal", [False, True])
def test_lines_of_many_threads_are_whole(tmp_path: Path, terminal: bool) -> None:
    """Between those of the debug log, which go the same way with -v; none waits for ever."""
    words = (sys.executable, "-c", SPEAKING, str(tmp_path))
    if terminal:
        text = on_terminal(words, columns=250, cwd=tmp_path, env=ENV)
    else:
        text = subprocess.run(
            words, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=ENV, timeout=60, check=True
        ).stderr
    spoken = re.findall(r"<(t[0-7] [0-9]+) x{150}>", text)
    assert sorted(spoken) == sorted(f"t{n} {number}" for n in range(8) for number in range(200))
    assert len(re.findall(r"\(t[0-7] [0-9]+ y{150}\)\n", text)) == 1600
    kept = (tmp_path / "debug.log").read_text().splitlines()
    assert len(kept) == 1600
    assert all(re.search(r"DEBUG dlperf.node: \(t[0-7] [0-9]+ y{150}\)$", line) for line in kept)
