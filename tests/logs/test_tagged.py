"""Logs of mpirun --tag-output: ranks' lines come back whole, and give the right numbers or none."""

import random
import re
import tracemalloc
from collections.abc import Iterator

import pytest

from orchestrator.launchers import mpirun
from orchestrator.logs import TENSORFLOW, reader
from orchestrator.logs.text import whole_lines
from orchestrator.measuring import validity
from orchestrator.model.log import TrainingLog, global_batch_size
from orchestrator.model.problem import Problem
from tests import SAMPLES

READ = reader(TENSORFLOW)

REAL = SAMPLES / "real-upstream"
BURST = (REAL / "mpirun_tag_output_burst.txt").read_bytes()
TAGGED = REAL / "tensorflow_fed7ba99_1n2g_mpirun_tagged_unbuffered_train_r50_b1_amp_1.log"
TRAIN = TAGGED.read_bytes()
TAG = re.compile(rb"\[1,([01])\]<std(?:out|err)>:")
WINDOW = (21, 41)
MIB = 1 << 20


def rejoined(log: bytes, size: int = 1000) -> bytes:
    return b"".join(whole_lines(log[at : at + size] for at in range(0, len(log), size)))


def by_rank() -> dict[bytes, bytes]:
    """What each rank printed, in its order: all pieces behind its tags."""
    _, *parts = TAG.split(TRAIN)
    said: dict[bytes, bytes] = {b"0": b"", b"1": b""}
    for rank, text in zip(parts[0::2], parts[1::2], strict=True):
        said[rank] += text
    return said


def number(log: TrainingLog) -> float | None:
    """What a trial with this log would give a median."""
    if any(validity.keeps_out(problem, log.rule) for problem in log.problems):
        return None
    found = validity.compute_throughput(log, global_batch_size(log.config), "clock")
    return None if isinstance(found, Problem) else found


def sprinkled(texts: tuple[bytes, ...], dice: random.Random) -> bytes:
    """What mpirun makes of ranks that print at the same time: a tag a piece and a line."""
    left, log = list(texts), b""
    while any(left):
        rank = dice.choice([rank for rank, text in enumerate(left) if text])
        size = dice.choice((1, 7, 40, 500, 4096))
        piece, left[rank] = left[rank][:size], left[rank][size:]
        tag = b"[1,%d]<stdout>:" % rank
        log += b"".join(tag + line for line in piece.splitlines(keepends=True))
    return log


@pytest.mark.parametrize("size", [1, 17, 4096, 1 << 20])
def test_a_recorded_burst_loses_no_line(size: int) -> None:
    """Both ranks printed a header and 300 equal lines; 42 of 602 stand there in pieces."""
    whole = rejoined(BURST, size)
    lines = whole.splitlines()
    assert (len(lines), whole.count(b"\n")) == (602, 602)
    for rank in (0, 1):
        mine = [line for line in lines if line.startswith(b"[1,%d]<stdout>:" % rank)]
        assert mine[0] == b"[1,%d]<stdout>:Per-GPU Batch Size 128 None True True False" % rank
        numbers = [re.fullmatch(rb"\S+DLL (\d+) imgs_per_sec : (x+)", line) for line in mine[1:]]
        assert [found and int(found[1]) for found in numbers] == list(range(300))
        assert len({found[2] for found in numbers if found}) == 1


def test_a_recorded_training_says_its_header_in_pieces() -> None:
    """With PYTHONUNBUFFERED=1 the batch size stood behind a tag of its own."""
    log = READ([TRAIN], WINDOW)
    assert (log.config["micro_batch_size"], log.config["world_size"]) == (1, 2)
    assert log.problems == ()
    assert number(log) == pytest.approx(2 * 20 / 114.195983)  # 01:01:19.755778 to 01:03:13.951761


def test_whatever_pieces_ranks_print_in_the_numbers_stay() -> None:
    """Every split of two ranks' text gives the very same reading, evidence lines but for order."""
    text = by_rank()[b"0"]
    noise = b"WARNING: a rank says imgs\nDLL is a word\nNum GPUs\n" * 12
    expected = READ([TRAIN], WINDOW)
    for seed in range(60):
        log = READ([sprinkled((text, noise), random.Random(seed))], WINDOW)
        assert number(log) == number(expected), seed
        assert (log.config, log.steps, log.rate) == (expected.config, expected.steps, expected.rate)
        assert log.fabric.problems == ()


def test_what_is_lost_of_a_glued_log_gives_no_other_number() -> None:
    """A log with a piece, a tag or a line feed missing gives the number, or says why not."""
    text, noise = by_rank()[b"0"], b"Warning: this is rank 1\n" * 40
    right, given = number(READ([TRAIN], WINDOW)), 0
    for seed in range(120):
        dice = random.Random(seed)
        log = sprinkled((text, noise), dice)
        at = dice.randrange(len(log))
        size = dice.choice((1, 1, 15, 200, 5000))
        found = number(READ([log[:at] + log[at + size :]], WINDOW))
        given += found is not None
        assert found in (right, None), seed
    assert given < 120


def test_the_end_of_a_log_that_nothing_ends_is_not_made_whole() -> None:
    """A last record that was cut stays cut, whichever rank prints behind it."""
    cut = TRAIN[: TRAIN.index(b"imgs_per_sec : 0.7900157") + 20]
    for tail in (b"", b"[1,1]<stdout>: words", b"[1,1]<stderr>: more\n"):
        log = READ([cut + tail], WINDOW)
        assert (log.last_iteration, number(log)) == (40, None)


def test_text_of_no_rank_passes_as_it_is() -> None:
    """mpirun's own words, and logs without any tags."""
    log = (
        b"mpirun says\n[1,0]<stdout>:a\nThu Dec 17 18:27:52 2020[1,1]<stderr>:b\n]<std is no tag\n"
    )
    assert rejoined(log) == log
    glued = b"mpirun: [1,0]<stdout>:a[1,1]<stdout>:b\nno tag\n[1,0]<stdout>:c\n"
    assert rejoined(glued) == b"mpirun: [1,1]<stdout>:b\nno tag\n[1,0]<stdout>:ac\n"
    assert rejoined(b"ends without") == b"ends without"


def test_of_a_progress_bar_without_an_end_the_last_part_is_kept() -> None:
    """A rank's bar grows over the lines of another rank, and ends behind 200 kB."""
    bar = b"[1,1]<stdout>:" + b"5 %|##  |\r" * 100
    log = (bar + b"[1,0]<stdout>:a line\n") * 200 + b"[1,1]<stdout>:the end\n"
    *_, last, rest = rejoined(log).split(b"\n")
    assert last.endswith(b"##  |\rthe end")
    assert (len(last) < 150_000, rest) == (True, b"")


def endless(text: bytes, mib: int) -> Iterator[bytes]:
    """A log without any line feed."""
    yield b"[1,0]<stdout>:begins "
    for _ in range(mib):
        yield text * (MIB // len(text))
    yield b"\n[1,1]<stdout>:the next line\n"


@pytest.mark.parametrize(
    ("text", "mib"), [(b"x", 64), (b"[1,0]<stdout>:x", 4), (b"[1,%d]<stdout>:x", 4)]
)
def test_a_line_without_an_end_takes_no_memory(text: bytes, mib: int) -> None:
    """Of one rank at once, in tagged pieces, and of ever other ranks."""
    if b"%" in text:
        text = b"".join(text % rank for rank in range(2, 60_000))[: MIB // 2]
    tracemalloc.start()
    *lines, last = mpirun.keep_ranks(endless(text, mib), range(1, 2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (lines, last) == ([b"\n"], b"[1,1]<stdout>:the next line\n")
    assert peak < 12 * MIB
