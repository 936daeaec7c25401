"""The traps of each format: headers, epochs, ends and broken lines that only one program prints.

The snapshot contains what a user sees of each change to a recorded log: its problems, and every
number or value of the header that is no longer the recorded one.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from orchestrator import workloads
from tests import SAMPLES
from tests.logs.recorded import LOGS, Recorded, codes, problems

GPT = LOGS["gpt"]


def read_changes() -> dict[str, dict[str, tuple[bytes, bytes]]]:
    """Read ``changes.txt``: a name, ``- `` the recorded bytes, ``+ `` those in their place."""
    changes: dict[str, dict[str, tuple[bytes, bytes]]] = {}
    lines = iter(Path(__file__).with_name("changes.txt").read_bytes().splitlines())
    for line in lines:
        if line.startswith(b"["):
            log = changes.setdefault(line[1:-1].decode(), {})
        elif line:
            before, after = (
                next(lines)[2:].decode("unicode_escape").encode("latin-1") for _ in range(2)
            )
            log[line.decode()] = before, after
    return changes


CHANGES = read_changes()


def compose_pytorch(log: Recorded) -> Iterator[tuple[str, bytes]]:
    old, raw = log.log(), log.raw
    steps, end = b"".join(old.parts[1:-1]), old.parts[-1]
    second = steps.replace(b"Epoch: 0", b"Epoch: 1").replace(b" 11:37:", b" 11:38:")
    whole = old.parts[0] + steps + second + end
    yield "a second epoch", whole
    yield "a second epoch, as promised", whole.replace(b" epochs : 1 ", b" epochs : 2 ")
    again = re.sub(rb"DLL [^\n]* Iteration: 20 [^\n]*\n", b"", second)
    yield "a second epoch without a step", old.parts[0] + steps + again + end
    twice = re.sub(rb"(DLL [^\n]* Epoch: 1 Iteration: 20 [^\n]*\n)", rb"\1\1", whole)
    yield "a step of the second epoch is there twice", twice
    yield "the second epoch comes first", old.parts[0] + second + steps + end
    two = raw.replace(b"  epochs : 1 ", b"  epochs : 2 ")
    yield (
        "two epochs, and no end",
        two[: two.index(b" - Summary: ")].rpartition(b"\n")[0] + b"\n",
    )
    yield "two epochs, one to run", two.replace(b"run_epochs : -1", b"run_epochs : 1")
    yield "a header of 70 kB", raw.replace(b"seed : None", b"seed : " + b"x" * 70_000)
    yield "zeros in front of the log", b"\0" * 3_000_000 + raw
    yield (
        "two steps without a loss",
        re.sub(rb"(Iteration: [12]  train.loss : )[\d.]+", rb"\1nan", raw),
    )
    yield "the result is there twice", raw + end.replace(b"6014.71", b"1.5")


def compose_benchmark_mpirun(log: Recorded) -> Iterator[tuple[str, bytes]]:
    raw = log.raw
    yield (
        "a crashed run, a prompt and another run",
        (
            raw[: raw.index(b"(0, 497)")].rpartition(b"\n")[0]
            + b"\n user@host  ~/report  cat fp16_bs128_tf\n"
            + raw
        ),
    )
    tags = (
        b"Thu Dec 17 18:27:52 2020[1,0]<stdout>:Num GPUs 32\n[1,0]<stdout>:Per-GPU Batch Size 256\n"
    )
    yield "counts with tags", tags + raw
    yield (
        "steps of two ranks",
        re.sub(rb"(?m)^(.*)(\[1,0\])(.*\(0, .*\n)", rb"\1\2\3\1[1,3]\3", raw),
    )


def compose_benchmark_amp(log: Recorded) -> Iterator[tuple[str, bytes]]:
    raw = log.raw
    lines = raw.splitlines(keepends=True)
    yield "no line of parameters", b"".join(lines[1:])
    yield (
        "no line of parameters and no total",
        b"".join(lines[1:]).replace(b"Total Steps 500.0\n", b""),
    )
    result = raw[raw.rindex(b"DLL") :]
    yield "a second result", raw + result.replace(b"7810.758929502331", b"7800.5")
    yield "the same result again", raw + result
    yield "the result is the last line and whole", raw.rstrip() + b" "
    yield "the result may lack digits", raw.rstrip()
    for value in (b"nan", b"inf", b"None", b"7810.7[1,3]<stderr>:x"):
        yield f"a result of {value.decode()}", raw.replace(b"7810.758929502331", value)
    yield "a step behind the result", raw + log.line(499).replace(b"(0, 499)", b"(0, 500)")
    yield "only parameters before the log", lines[0] + raw


def compose_pytorch_short(log: Recorded) -> Iterator[tuple[str, bytes]]:
    raw = log.raw
    yield "a step is renumbered", raw.replace(b"Iteration: 30 ", b"Iteration: 31 ", 1)
    yield "the end is missing", raw[: raw.index(b" - Summary: ")].rpartition(b"\n")[0] + b"\n"


def compose_nvlog(log: Recorded) -> Iterator[tuple[str, bytes]]:
    raw = log.raw
    yield (
        "the rate of the last step is missing",
        raw[: raw.index(b":::NVLOGv0.2.3 resnet 1621936387.458914042")],
    )
    yield "only a pair is broken off", raw[: raw.index(b"3033.9167605575103")]


def compose_training(log: Recorded) -> Iterator[tuple[str, bytes]]:
    old, raw = log.log(), log.raw
    steps, end = b"".join(old.parts[1:-1]), old.parts[-1]
    for step in old.all:
        old.put(step, "n", b"%d" % (old.number(step) - 1))
    yield "steps are counted from 0", old.text()
    yield "steps are counted from 0, the last is cut", b"".join(old.parts[:-3]) + b"\n"
    head = log.log().parts[0]
    yield (
        "training is started again",
        raw[: raw.index(b"Ending")] + head[head.index(b"Starting") :] + steps,
    )
    yield "the last steps are missing", head + steps[: steps.index(log.line(40))] + end
    less = head.replace(b"run_iter : -1", b"run_iter : 30")
    yield "30 of 45 steps are to run", less + steps[: steps.index(log.line(31))]
    yield "30 of 45 steps are to run, one is missing", less + steps[: steps.index(log.line(30))]
    unknown = head.replace(b"mode : train ", b"mo|de : train ").replace(
        b"display_every", b"dis|play"
    )
    yield "neither mode nor stride is known", unknown + steps[steps.index(log.line(26)) :]
    yield (
        "neither mode nor stride is known, and a step is missing",
        (unknown + steps[steps.index(log.line(26)) : steps.index(log.line(44))]),
    )
    every = head.replace(b"display_every : 1 ", b"display_every : 5 ")
    fifth = b"".join(log.line(n) for n in (21, 26, 31, 36, 41))
    yield "each fifth step", every + fifth
    yield "each fifth step but the last", every + fifth.replace(log.line(41), b"")
    yield "a whole last line without its end", head + steps[: steps.rindex(b"  cross") + 1]
    yield "a last rate that may lack digits", head + steps[: steps.rindex(b"  cross")]


def compose_rn50(log: Recorded) -> Iterator[tuple[str, bytes]]:
    old, raw = log.log(), log.raw
    steps, end = b"".join(old.parts[1:-1]), old.parts[-1]
    unknown = raw.replace(b"dtype = float32\n", b"").replace(b"use_fp16 = None\n", b"")
    yield "neither AMP nor a type is known", unknown
    later = steps.replace(b"epoch 0", b"epoch 1").replace(b" 17953", b" 17963")
    two = old.parts[0].replace(b"num_epochs = 1", b"num_epochs = 2")
    yield "two epochs", two + steps + later + end
    yield (
        "two epochs, a step of the second twice",
        two + steps + later + log.line(120).replace(b"epoch 0", b"epoch 1"),
    )
    yield "steps without a header, one missing", steps.replace(log.line(80), b"")
    yield (
        "an epoch that is cut behind its window",
        raw.replace(log.line(120), b"").replace(end, b""),
    )


def compose_gpt(log: Recorded) -> Iterator[tuple[str, bytes]]:
    raw = log.raw
    for step in (10, 50, 80, 100):
        yield f"row {step} is missing", raw.replace(log.line(step), b"")
    yield "rows 10 and 20 are missing", raw.replace(log.line(10) + log.line(20), b"")
    row = log.line(100).replace(b"| 100 ", b"| 105 ").replace(b"13.12494", b"6.56247 ")
    yield "a row of fewer steps than the others", raw + row
    yield "a torn row behind the table", raw + b"| 110      | 3\n"
    yield (
        "a row with two latencies before the window",
        raw.replace(log.line(50), log.line(50) + log.line(50).replace(b"13.12932", b"13.12933")),
    )
    yield "the last loss is cut", raw.removesuffix(b" 6.82232    |\n")


COMPOSED = {
    "pytorch": compose_pytorch,
    "benchmark mpirun": compose_benchmark_mpirun,
    "benchmark amp": compose_benchmark_amp,
    "pytorch short": compose_pytorch_short,
    "nvlog": compose_nvlog,
    "training": compose_training,
    "rn50": compose_rn50,
    "gpt": compose_gpt,
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_user_sees_of_a_change(name: str, snapshot: object) -> None:
    log, shown = LOGS[name], []
    for change, (before, after) in CHANGES[name].items():
        shown += [change, *(f"    {line}" for line in log.compare(log.replace(before, after)))]
    assert "\n".join(shown) == snapshot


@pytest.mark.parametrize("name", COMPOSED)
def test_what_a_user_sees_of_a_log_of_several_parts(name: str, snapshot: object) -> None:
    shown = []
    for change, text in COMPOSED[name](LOGS[name]):
        shown += [change, *(f"    {line}" for line in LOGS[name].compare(text))]
    assert "\n".join(shown) == snapshot


def test_headers_are_read_by_name(snapshot: object) -> None:
    """With what each whole log of the program tells, and its own results."""
    shown = []
    for name, log in LOGS.items():
        whole = log.whole
        shown += [name, *(f"    {key} = {value}" for key, value in whole.config.items())]
        shown += [f"    reports {key} = {value}" for key, value in whole.reported.items()]
        shown += [f"    must tell {', '.join(sorted(whole.tells))}"]
    assert "\n".join(shown) == snapshot


@pytest.mark.parametrize(
    ("window", "used"),
    [
        ((60, 100), (60, 100)),
        ((15, 45), (20, 40)),
        ((1, 19), (10, 10)),
        ((100, 100), (100, 100)),
        (None, (60, 100)),
    ],
)
def test_rows_inside_a_window_give_the_latency_of_gpt(
    window: tuple[int, int] | None, used: tuple[int, int]
) -> None:
    """Both ends are included; without a window the last five rows count."""
    rows = GPT.log()
    inside = [
        float(rows.get(step, "s")) for step in rows.all if used[0] <= rows.number(step) <= used[1]
    ]
    log = workloads.require("oneflow_gpt").read([GPT.raw], window)
    assert (log.window, log.problems) == (used, ())
    assert log.latency_s == pytest.approx(fmean(inside), abs=1e-9)


@pytest.mark.parametrize("window", [(60, 105), (61, 69), (1, 9), (110, 120)])
def test_a_window_that_rows_do_not_fill_gives_no_latency(window: tuple[int, int]) -> None:
    log = GPT.read(GPT.raw, window)
    assert (log.latency_s, log.window_rate, log.window_mean, log.digest) == (None,) * 3 + ("",)
    assert log.window == window
    (seen,) = problems(log, "WINDOW")
    assert f"needed the window {window[0]}-{window[1]}, one every 10 iterations" in seen


def test_gpt_needs_its_last_five_rows() -> None:
    read, rows = workloads.require("oneflow_gpt").read, GPT.log()
    four = read([b"".join(rows.parts[: rows.places[4]])], None)
    assert (four.latency_s, four.window, four.steps) == (None, None, 4)
    assert problems(four, "WINDOW") == [
        "the log has 4 records, from 10 to 40; needed its last 5, one every 10 iterations"
    ]
    gap = read([GPT.replace(GPT.line(80), b"")], None)
    assert (gap.latency_s, gap.window, codes(gap)) == (None, None, {"SKIPPED-STEPS", "WINDOW"})
    broken = read([GPT.replace(GPT.line(80), GPT.line(80)[3:])], None)
    assert (broken.latency_s, codes(broken)) == (None, {"SKIPPED-STEPS", "WINDOW"})
    early = read([GPT.replace(GPT.line(100), b"")], None)
    assert (early.window, codes(early)) == ((50, 90), {"TRUNCATED"})
    assert "MALFORMED" in codes(read([rows.parts[0] + b"| 10 |\n"], (60, 110)))
    assert read([rows[0]], (1, 10)).latency_s == 14.26962


def test_gpt_may_print_each_step_and_the_memory_behind_it() -> None:
    """By hand: (0.96795 + 0.97045 + 0.97691 + 0.96581 + 0.96924) / 5 seconds."""
    sample = SAMPLES / "logs-oneflow-gpt/dlperf_1n8g_every_step_excerpt.txt"
    log = workloads.require("oneflow_gpt").read([sample.read_bytes()], None)
    assert (log.steps, log.window, log.memory_mib) == (9, (5, 9), 14102)
    assert (log.latency_s, log.problems) == (0.970072, ())
    assert "precision" not in log.config


def test_a_training_of_2020_prints_each_step_in_several_lines() -> None:
    """NVLOG's iteration, rate and losses; the excerpt is of 128 images in each second."""
    lines = b"".join(
        b":::NVLOGv0.2.3 resnet 16219362%02d.500000000 (training_hooks.py:97) iteration: %d\n"
        b":::NVLOGv0.2.3 resnet 16219362%02d.600000000 (training_hooks.py:98) imgs_per_sec: 128.5\n"
        b":::NVLOGv0.2.3 resnet 16219362%02d.700000000 (training_hooks.py:99) total_loss: %s\n"
        % (number, number, number, number, b"nan" if number == 30 else b"7.2")
        for number in range(20, 40)
    )
    log = workloads.require("ngc_tensorflow_rn50").read([lines], (20, 39))
    assert (log.steps, log.measured_s, log.window_mean, log.rule) == (20, 19, 128.5, "clock")
    assert problems(log, "LOSS-NOT-FINITE") == ["line 33: iteration 30: the loss is not finite"]


def test_an_excerpt_of_a_training_has_no_window() -> None:
    """Two steps of the fourth epoch, from a bug report; mode train is measured from 21 to 120."""
    sample = SAMPLES / "logs-tf-rn50/dali_issue2242_train_mode_20.03_excerpt.txt"
    log = workloads.require("ngc_tensorflow_rn50").read([sample.read_bytes()], None)
    assert (log.runs, log.steps, log.first_iteration, log.last_iteration) == (1, 2, 16135, 16136)
    assert (log.window, log.start, log.end, log.rule) == ((21, 120), None, None, "clock")
    assert codes(log) == {"HEADERLESS"}


@pytest.mark.parametrize("name", ["pytorch", "every tenth", "training", "rn50", "bert"])
def test_a_window_that_the_log_does_not_print_has_no_end(name: str) -> None:
    log, steps = LOGS[name], LOGS[name].log()
    first, last = steps.number(0), steps.number(len(steps) - 1)
    for window in ((first - 1, last), (first, last + 1)):
        found = log.read(log.raw, window)
        assert (found.start is None, found.end is None) == (window[0] < first, window[1] > last)
        assert (found.window, found.window_rate, found.window_mean) == (window, None, None)
    one = log.read(log.raw, (first, first))
    assert one.start
    assert (one.start, one.window_rate) == (one.end, None)
