"""The bytes of a log as whole lines: clocks, terminal control, and mpirun's tagged ranks."""

import random
import re
import tracemalloc
from collections.abc import Iterator

import pytest

from orchestrator.launchers import mpirun
from orchestrator.logs import clock
from orchestrator.logs.text import LONGEST_RECORD, whole_lines
from orchestrator.measuring import validity
from orchestrator.model.log import TrainingLog
from tests import SAMPLES
from tests.doctored.honest import BASES
from tests.logs.recorded import Recorded

MIB = 1 << 20
BURST = (SAMPLES / "real-upstream/mpirun_tag_output_burst.txt").read_bytes()
TRAINING = Recorded(next(base for base in BASES if "tagged_unbuffered" in base.source), (21, 41))
TAG = re.compile(rb"\[1,([01])\]<std(?:out|err)>:")
AT_S = 1600151333  # date -u -d '2020-09-15 06:28:53' +%s


@pytest.mark.parametrize(
    ("stamp", "nanoseconds"),
    [
        (b"2020-09-15 06:28:53", 0),
        (b"2020-09-15 06:28:53.498443", 498443000),
        (b"2020-09-15 06:28:53.498443123", 498443123),
        (b"2020-09-15 06:28:53.4984431", 498443100),
        (b"2020-09-15T06:28:53Z", 0),
        (b"2020-09-15T14:28:53+08:00", 0),
        (b"2020-09-15 14:28:53.498443123+0800", 498443123),
        (b"2020-09-15 01:13:53.498443-05:15", 498443000),
    ],
)
def test_a_clock_is_in_its_own_zone_or_in_utc(stamp: bytes, nanoseconds: int) -> None:
    assert clock.of_stamp(stamp) == AT_S * 10**9 + nanoseconds


@pytest.mark.parametrize("stamp", [b"2020-09-31 06:28:53", b"0001-01-01 00:00:00+14:00", b"", b"x"])
def test_a_time_that_does_not_exist_is_none(stamp: bytes) -> None:
    assert clock.of_stamp(stamp) is None


def test_a_line_without_an_end_comes_in_parts() -> None:
    """Of 5 MiB without a line feed never more than 1 MiB and a piece is held; all of it comes."""
    parts = list(whole_lines([b"begin" + b"x" * 5 * MIB + b"\nend"]))
    assert max(map(len, parts)) < 2 * MIB
    assert b"".join(parts).replace(b"\r", b"").count(b"x") == 5 * MIB
    assert [part[-1:] for part in parts[:-2]] == [b"\r"] * (len(parts) - 2)
    assert (parts[-1], parts[0][:5]) == (b"end", b"begin")
    assert len(parts[-2]) >= LONGEST_RECORD


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ([b"a\n 5 %\r 6 %\r"], [b"a\n", b" 5 %\r 6 %\r", b""]),
        ([b"a\r\nb\x1b[32m\r\n", b"c"], [b"a\nb\n", b"c"]),
        ([b"ends without"], [b"ends without"]),
        # mpirun's own words, a tag with a time, and what only looks like a tag
        (
            [b"mpirun\n[1,0]<stdout>:a\nThu Dec 17 18:27:52 2020[1,1]<stderr>:b\n]<std x\n"],
            [b"mpirun\n[1,0]<stdout>:a\nThu Dec 17 18:27:52 2020[1,1]<stderr>:b\n]<std x\n", b""],
        ),
        (
            [b"mpirun: [1,0]<stdout>:a[1,1]<stdout>:b\nno tag\n[1,0]<stdout>:c\n"],
            [b"mpirun: [1,1]<stdout>:b\nno tag\n[1,0]<stdout>:ac\n", b""],
        ),
    ],
)
def test_lines_end_at_line_feeds_and_are_joined_by_rank(
    raw: list[bytes], lines: list[bytes]
) -> None:
    assert list(whole_lines(raw)) == lines


@pytest.mark.parametrize("size", [1, 17, 4096, MIB])
def test_a_recorded_burst_loses_no_line(size: int) -> None:
    """Both ranks printed a header and 300 equal lines; 42 of 602 are in pieces."""
    whole = b"".join(whole_lines(BURST[at : at + size] for at in range(0, len(BURST), size)))
    lines = whole.splitlines()
    assert (len(lines), whole.count(b"\n")) == (602, 602)
    for rank in (0, 1):
        mine = [line for line in lines if line.startswith(b"[1,%d]<stdout>:" % rank)]
        assert mine[0] == b"[1,%d]<stdout>:Per-GPU Batch Size 128 None True True False" % rank
        numbers = [re.fullmatch(rb"\S+DLL (\d+) imgs_per_sec : (x+)", line) for line in mine[1:]]
        assert [found and int(found[1]) for found in numbers] == list(range(300))
        assert len({found[2] for found in numbers if found}) == 1


def test_a_recorded_training_prints_its_header_in_pieces() -> None:
    """With PYTHONUNBUFFERED=1 the batch size is behind a tag of its own."""
    log = TRAINING.whole
    assert (log.config["micro_batch_size"], log.config["world_size"]) == (1, 2)
    assert log.problems == ()
    # 01:01:19.755778 to 01:03:13.951761
    assert measure(log) == pytest.approx(2 * 20 / 114.195983)


def measure(log: TrainingLog) -> float | None:
    """Return the number that a trial with this log adds to a median, None if it is kept out."""
    if any(validity.keeps_out(problem, log.rule) for problem in log.problems):
        return None
    return TRAINING.measure(log)


def print_of_rank_0() -> bytes:
    _, *parts = TAG.split(TRAINING.raw)
    pairs = zip(parts[0::2], parts[1::2], strict=True)
    return b"".join(text for rank, text in pairs if rank == b"0")


def tag_pieces(texts: tuple[bytes, ...], dice: random.Random) -> bytes:
    """Print as mpirun does for ranks at the same time: a tag for each piece and each line."""
    left, log = list(texts), b""
    while any(left):
        rank = dice.choice([rank for rank, text in enumerate(left) if text])
        size = dice.choice((1, 7, 40, 500, 4096))
        piece, left[rank] = left[rank][:size], left[rank][size:]
        tag = b"[1,%d]<stdout>:" % rank
        log += b"".join(tag + line for line in piece.splitlines(keepends=True))
    return log


def test_the_numbers_do_not_depend_on_the_pieces_that_ranks_print_in() -> None:
    noise = b"WARNING: a rank says imgs\nDLL is a word\nNum GPUs\n" * 12
    whole, text = TRAINING.whole, print_of_rank_0()
    for seed in range(40):
        log = TRAINING.read(tag_pieces((text, noise), random.Random(seed)))
        assert measure(log) == measure(whole), seed
        assert (log.config, log.steps, log.rate) == (whole.config, whole.steps, whole.rate)
        assert log.fabric.problems == ()


def test_a_lost_piece_of_a_glued_log_gives_no_other_number() -> None:
    """A log without a piece, a tag or a line feed gives the number, or a reason."""
    text, noise = print_of_rank_0(), b"Warning: this is rank 1\n" * 40
    right, given = measure(TRAINING.whole), 0
    for seed in range(80):
        dice = random.Random(seed)
        log = tag_pieces((text, noise), dice)
        at, size = dice.randrange(len(log)), dice.choice((1, 1, 15, 200, 5000))
        found = measure(TRAINING.read(log[:at] + log[at + size :]))
        given += found is not None
        assert found in (right, None), seed
    assert 0 < given < 80


@pytest.mark.parametrize("tail", [b"", b"[1,1]<stdout>: words", b"[1,1]<stderr>: more\n"])
def test_a_last_record_that_was_cut_stays_cut(tail: bytes) -> None:
    """Whatever another rank prints behind it."""
    cut = TRAINING.raw[: TRAINING.raw.index(b"imgs_per_sec : 0.7900157") + 20]
    log = TRAINING.read(cut + tail)
    assert (log.last_iteration, measure(log)) == (40, None)


def test_only_the_last_part_of_an_endless_progress_bar_is_kept() -> None:
    """A rank's bar grows over the lines of another rank, and ends behind 200 kB."""
    bar = b"[1,1]<stdout>:" + b"5 %|##  |\r" * 100
    log = (bar + b"[1,0]<stdout>:a line\n") * 200 + b"[1,1]<stdout>:the end\n"
    *_, last, rest = b"".join(whole_lines([log])).split(b"\n")
    assert last.endswith(b"##  |\rthe end")
    assert (len(last) < 150_000, rest) == (True, b"")


@pytest.mark.parametrize(
    ("text", "mib"), [(b"x", 64), (b"[1,0]<stdout>:x", 4), (b"[1,%d]<stdout>:x", 4)]
)
def test_a_line_without_an_end_takes_no_memory(text: bytes, mib: int) -> None:
    """Of one rank at once, in tagged pieces, and of ever other ranks."""
    if b"%" in text:
        text = b"".join(text % rank for rank in range(2, 60_000))[: MIB // 2]

    def print_endlessly() -> Iterator[bytes]:
        yield b"[1,0]<stdout>:begins "
        for _ in range(mib):
            yield text * (MIB // len(text))
        yield b"\n[1,1]<stdout>:the next line\n"

    tracemalloc.start()
    *lines, last = mpirun.keep_ranks(print_endlessly(), range(1, 2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (lines, last) == ([b"\n"], b"[1,1]<stdout>:the next line\n")
    assert peak < 12 * MIB
