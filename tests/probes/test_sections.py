"""Many questions in one: the real script under a real shell, with programs that misbehave."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import errors
from orchestrator.model.facts import Silent
from orchestrator.probes import sections
from orchestrator.probes.sections import Output, Section
from tests import processes
from tests.processes import wait_for

NONCE = f"c0ffee{os.getpid()}"


def shell(name: str, script: str, limit_s: int = 10) -> Section:
    return Section(name, ("sh", "-c", script), limit_s)


def ask(asked: Sequence[Section]) -> sections.Answers:
    """Ask this machine by the real script."""
    argv = sections.argv(asked, nonce=NONCE)
    limit_s = sections.timeout_s(asked)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s, check=True)
    return sections.split(done.stdout, asked, nonce=NONCE)


def test_each_answer_comes_back_byte_for_byte() -> None:
    words = ["a b", "'\"`touch harm`$(touch harm)", "two\nlines", "*", ""]
    answers = ask(
        [
            shell("one", r"printf 'a\n\n b'; printf 'oh' >&2; exit 3"),
            shell("two", ":"),
            shell("three", r"printf '\nthree\n\n'"),
            Section("words", ("printf", "<%s>", *words)),
            Section("none", ("dlperf-no-such-program",)),
        ]
    )
    missing = answers.outputs["none"]
    assert answers.outputs == {
        "one": Output(3, "a\n\n b", "oh"),
        "two": Output(0, "", ""),
        "three": Output(0, "\nthree\n\n", ""),
        "words": Output(0, "".join(f"<{word}>" for word in words), ""),
        "none": Output(127, "", missing.err),
    }
    # `timeout`, which looks for the program, names itself: that would mislead
    assert missing.message == "dlperf-no-such-program: No such file or directory"
    assert not Path("harm").exists()
    assert answers.clock_s == pytest.approx(time.time(), abs=5)


def test_a_hanging_program_delays_no_other_answer() -> None:
    """Its limit holds if the program or its child ignores TERM, and both end."""
    began = time.monotonic()
    deaf = f"trap '' TERM; echo begun; while : {os.getpid()}; do sleep 0.1; done"
    answers = ask(
        [
            shell("deaf", deaf, 1),
            shell("child", f"sh -c {shlex.quote(deaf)}; true", 1),
            shell("slow", "echo begun; exec sleep 60", 1),
            shell("well", "echo fine"),
        ]
    )
    assert time.monotonic() - began < 30
    for name in ("deaf", "child"):
        assert answers.outputs[name] == Output(None, "begun\n", answers.outputs[name].err)
    assert answers.outputs["slow"] == Output(None, "begun\n", "")
    assert answers.outputs["well"] == Output(0, "fine\n", "")
    wait_for(lambda: not running(deaf), "the end of what ignores TERM")


def running(script: str) -> list[Path]:
    """Return processes that are a shell with this script."""
    found = []
    for path in processes.files("cmdline"):
        with contextlib.suppress(OSError):
            if script.encode() in path.read_bytes().split(b"\0"):
                found.append(path)
    return found


def test_a_process_that_a_question_leaves_behind_holds_up_no_answer(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    began = time.monotonic()
    answers = ask([shell("left", f"setsid sh -c 'echo $$ >{pid}; exec sleep 30' & echo said")])
    assert time.monotonic() - began < 20
    assert answers.outputs["left"].out == "said\n"
    wait_for(lambda: pid.exists() and pid.read_text(), "what it left behind")
    os.kill(int(pid.read_text()), signal.SIGKILL)


def test_questions_are_asked_at_once_and_leave_nothing_behind() -> None:
    began = time.monotonic()
    answers = ask([shell(f"q{n}", 'sleep 3; echo "$PPID"') for n in range(4)])
    assert time.monotonic() - began < 10
    assert len(answers.outputs) == 4
    assert not list(Path("/dev/shm").glob(f"dlperf-{NONCE}.*"))


WHOLE = "c0ffee one 0\nyes\n\nc0ffee one said\n\nc0ffee end 1.5\n"
ONE = shell("one", ":")


@given(st.integers(2, len(WHOLE)))
def test_an_answer_that_broke_off_is_refused(lost: int) -> None:
    """The last mark proves the whole; a banner before the first one does no harm."""
    answers = sections.split(f"Welcome!\n{WHOLE}", [ONE], nonce="c0ffee")
    assert answers == sections.Answers({"one": Output(0, "yes\n", "")}, 1.5)
    with pytest.raises(errors.LogError, match="not whole") as raised:
        sections.split(WHOLE[:-lost], [ONE], nonce="c0ffee")
    assert raised.value.code == "ANSWER-CUT"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", [ONE]),
        ("Welcome\n", [ONE]),
        (WHOLE, [ONE, shell("two", ":")]),
        (WHOLE, [shell("two", ":")]),
        ("c0ffee end 1.5\n", [ONE]),
        (WHOLE.replace("1.5", "soon"), [ONE]),
    ],
)
def test_an_answer_to_another_question_is_refused(text: str, asked: list[Section]) -> None:
    with pytest.raises(errors.LogError, match="not whole") as raised:
        sections.split(text, asked, nonce="c0ffee")
    assert raised.value.code == "ANSWER-CUT"


@pytest.mark.parametrize("shell_signal", [None, signal.SIGHUP])
def test_nothing_stays_behind_when_nobody_reads_the_answer(
    shell_signal: signal.Signals | None,
) -> None:
    """A killed controller reads no more; the shell then ends by SIGPIPE."""
    nonce = f"{NONCE}{shell_signal or 0:d}"
    asked = [shell("one", "sleep 0.5; yes | head -c 1000000"), shell("two", "echo so")]
    process = subprocess.Popen(sections.argv(asked, nonce=nonce), stdout=subprocess.PIPE)
    assert process.stdout
    wait_for(lambda: left_by(nonce), "its folder")
    process.stdout.close()
    if shell_signal:
        process.send_signal(shell_signal)
    process.wait(20)
    assert left_by(nonce) == []


def left_by(nonce: str) -> list[Path]:
    return [*Path("/dev/shm").glob(f"dlperf-{nonce}.*"), *Path("/tmp").glob(f"dlperf-{nonce}.*")]


def upper(text: str) -> str:
    """A parser that refuses the empty text."""
    if not text:
        raise errors.LogError("nothing there", code="EMPTY")
    return text.upper()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, None),
        (Output(0, "yes", ""), "YES"),
        (Output(1, "yes", "oh"), "YES"),
        (Output(None, "ye", ""), Silent("HUNG", "ye")),
        (Output(127, "", "sh: 1: x: not found\n"), Silent("ABSENT", "sh: 1: x: not found")),
        (Output(0, "", ""), Silent("EMPTY", "nothing there")),
        (Output(9, "", "a\n\n b\x1b[2J\n"), Silent("EMPTY", "a; b\\x1b[2J")),
    ],
)
def test_an_answer_is_a_fact_or_the_reason_for_its_absence(
    said: Output | None, expected: object
) -> None:
    """The node's own words stay, safe for a terminal."""
    assert sections.read(said, upper) == expected


def test_transport_waits_longer_than_the_slowest_question() -> None:
    assert sections.timeout_s([]) == 12
    assert sections.timeout_s([shell("a", ":", 10), shell("b", ":", 20)]) == 42


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize(("full", "told"), [("/dev/shm", ""), ("/dev/shm /tmp", "DISK-FULL")])
def test_answers_lie_where_there_is_room(full: str, told: str) -> None:
    """A full /dev/shm is passed over; without room anywhere the answer is DISK-FULL."""
    asked = [shell("a", "echo whole")]
    words = shlex.join(sections.argv(asked, nonce=NONCE))
    fill = "for place in $full; do mount -t tmpfs -o size=4k own $place && echo >$place/x; done"
    script = f"full='{full}'; {fill}; exec {words}"
    argv = ("unshare", "--mount", "sh", "-c", script)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if not told:
        assert sections.split(done.stdout, asked, nonce=NONCE).outputs["a"].out == "whole\n"
        return
    with pytest.raises(errors.LogError, match="neither /dev/shm nor /tmp") as raised:
        sections.split(done.stdout, asked, nonce=NONCE)
    assert raised.value.code == told
    assert not done.stderr


def test_a_signal_between_the_two_names_of_the_folder_leaves_none(tmp_path: Path) -> None:
    """It comes behind `mv`, before the shell knows the new name."""
    mv = tmp_path / "mv"
    mv.write_text('#!/bin/sh\n/bin/mv "$@"\nkill -s HUP $PPID\n')
    mv.chmod(0o755)
    nonce = f"{NONCE}renamed"
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    argv = sections.argv([shell("one", "true")], nonce=nonce)
    subprocess.run(argv, env=env, capture_output=True, timeout=30, check=False)
    assert left_by(nonce) == []
