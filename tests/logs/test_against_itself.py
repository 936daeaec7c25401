"""A log contradicts itself: clock against rates, latencies against rates, a crash against its end.

Damage that every format shares is in ``test_damage.py``; these logs need a clock made for the test.
"""

import re
from collections.abc import Callable

import pytest

from orchestrator.measuring import validity
from tests import TESTS
from tests.doctored.honest import BASES, Base
from tests.logs.recorded import KINDS, LOGS, Recorded, codes, problems

PYTORCH, BERT = LOGS["pytorch"], LOGS["bert"]


def write_log(seconds: Callable[[int], float]) -> bytes:
    """Return a log of 8 ranks with batch 128 whose printed rates mean 0.1 s a step."""
    header = "DLL 2020-12-16 11:37:00.500000 - PARAMETER data : /data  arch : resnet50"
    header = f"{header}  batch_size : 128  prof : 100  amp : True  world_size : 8 \n"
    clock, lines = 0.4321, [header]
    for number in range(1, 100):
        clock += seconds(number)
        stamp = f"DLL 2020-12-16 11:{int(clock) // 60:02}:{clock % 60:09.6f}"
        rate = "train.loss : 7.1  train.total_ips : 10240.00 img/s"
        lines.append(f"{stamp} - Epoch: 0 Iteration: {number}  {rate}\n")
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("took", "lines"),
    [
        (lambda number: 0.001 if number == 40 else 0.1, "lines 40 and 41: 0.001 s by the clock"),
        (lambda number: 0.15 if number == 60 else 0.1, "lines 60 and 61: 0.150 s by the clock"),
        (lambda number: 0.108 if number == 21 else 0.1, "lines 21 and 22: 0.108 s by the clock"),
        (lambda _: 0.102, "lines 21 and 61: 4.080 s by the clock, 4.000 s by the printed rate"),
    ],
)
def test_a_clock_that_disagrees_with_printed_rates_is_marked(
    took: Callable[[int], float], lines: str
) -> None:
    """One step, or all of them; RATE-MISMATCH, of 3 %, would not see it."""
    (seen,) = problems(PYTORCH.read(write_log(took)), "CLOCK-JUMP")
    assert seen.startswith(lines)


def test_an_honest_clock_is_not_marked() -> None:
    """Steps within 2 %, as recorded ones are, and a line printed late, which the next makes up."""
    jitter = {30: 0.101, 31: 0.099, 40: 0.150, 41: 0.050}
    log = PYTORCH.read(write_log(lambda number: jitter.get(number, 0.1)))
    assert log.problems == ()


@pytest.mark.parametrize("base", BASES, ids=lambda base: f"{base.source}-{base.rule}")
def test_no_recorded_log_is_accused(base: Base) -> None:
    """Over no window does a recorded clock jump, and no recorded program crashed."""
    for window in (None, (20, 60), (25, 40), (21, 120), (6, 25), (250, 300)):
        log = Recorded(base, window)
        assert not codes(log.read(log.raw)) & {"CLOCK-JUMP", "CRASHED"}


def test_a_rate_of_few_digits_still_shows_that_an_end_moved() -> None:
    """0.27 images/s are 0.265 to 0.275: the 7.8 s up to step 21 agree with neither."""
    log = next(Recorded(base, (20, 44)) for base in BASES if "syntetic" in base.source)
    moved = log.replace(b"00:49:38.328953", b"00:49:38.000000")
    (seen,) = problems(log.read(moved), "CLOCK-JUMP")
    assert "7.816 s by the clock" in seen


@pytest.mark.parametrize(
    ("end", "fraction", "is_coarse"),
    [(0, b"", True), (1, b"", True), (0, b".000000", False), (1, b".000000", False)],
    ids=["first without", "last without", "first of zeros", "last of zeros"],
)
def test_one_end_without_a_fraction_makes_the_clock_coarse(
    end: int, fraction: bytes, is_coarse: bool
) -> None:
    """A whole second with as many decimals as the other end is chance."""
    changed, step = PYTORCH.log(), PYTORCH.ends[end]
    changed.put(step, "t", changed.get(step, "t").partition(b".")[0] + fraction)
    assert ("COARSE-CLOCK" in codes(PYTORCH.read(changed.text()))) == is_coarse


def test_bert_has_a_limit_over_the_window() -> None:
    """Each of its lines may be 70 ms late, and the window of 2.3 s agrees within 50 ms."""
    log = next(Recorded(base, None) for base in BASES if "637bb9c_1n1g_bert" in base.source)
    stretched = log.log()
    stretched.stretch(1.01)
    assert codes(log.read(stretched.text())) == {"CLOCK-JUMP"}


def test_a_rate_of_a_tenth_is_a_gap_where_nothing_else_is_printed() -> None:
    """OneFlow of early 2020 prints neither clock nor latency."""
    log = LOGS["rn50 old"]
    for factor, expected in ((0, []), (0.83, []), (0.1, ["has the rate 38"])):
        slow = log.log()
        slow.scale([3], "rate", factor)
        seen = problems(log.read(slow.text()), "GAP")
        assert len(seen) == len(expected)
        for words, message in zip(expected, seen, strict=True):
            assert f"iteration 80, inside the window, {words}" in message
            assert "; the median is 3" in message


def test_an_average_and_a_harmonic_mean_differ() -> None:
    """Half of the steps at 100, half at 300 images/s: 150 of both by time, 200 by number."""
    raw = re.sub(
        rb"Iteration: (\d+)  (.*total_ips : )[\d.]+",
        lambda it: b"Iteration: %s  %s%d.00" % (it[1], it[2], 100 if int(it[1]) % 2 else 300),
        PYTORCH.raw,
    )
    log = PYTORCH.read(raw, (21, 60))
    assert validity.compute_throughput(log, None, "rates") == pytest.approx(150)
    assert validity.compute_throughput(log, None, "arithmetic") == pytest.approx(200)


def test_a_cut_line_at_the_end_of_the_window_gives_no_number() -> None:
    """Nothing shows how many digits of a time or a rate are lost."""
    log = BERT.read(BERT.raw.rstrip(b"\n"), (19, 139))
    assert ("TRUNCATED" in codes(log), log.end) == (True, None)
    headerless = LOGS["benchmark mpirun"]
    log = headerless.read(headerless.raw.rstrip(b"\n"), (250, 499))
    assert ("TRUNCATED" in codes(log), log.end) == (True, None)
    assert headerless.compare(headerless.raw.rstrip(b"\n"))[0].startswith("HEADERLESS")


CRASHES = (TESTS / "doctored" / "crashes.txt").read_text().split("\n\n")


@pytest.mark.parametrize("words", CRASHES)
def test_a_crash_behind_the_last_step_is_marked(words: str) -> None:
    """All steps are there and count; before them it is no crash of this run."""
    steps = b"".join(PYTORCH.log().parts[:-1])
    (seen,) = problems(PYTORCH.read(steps + words.encode() + b"\n"), "CRASHED")
    is_introduced = words.startswith(("vs001:71", "[vs001:", "slurmstepd:"))  # by a line before it
    assert seen.startswith(f"line {steps.count(10) + 1 + is_introduced}: ")
    assert problems(PYTORCH.read(words.encode() + b"\n" + PYTORCH.raw), "CRASHED") == []


@pytest.mark.parametrize("name", ["pytorch", "benchmark", "nvlog", "training", "rn50"])
def test_a_crash_behind_the_end_of_a_program_is_no_crash_of_it(name: str) -> None:
    """BERT, GPT and all-reduce print nothing at their end."""
    log = KINDS[name]
    assert log.compare(log.raw + CRASHES[0].encode() + b"\n") == []
