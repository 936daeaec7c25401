"""The fast path: that it is taken for logs of every format, and says what their lines say."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from orchestrator.logs import (
    DLLOGGER,
    ONEFLOW_BERT,
    ONEFLOW_GPT,
    ONEFLOW_RN50,
    TENSORFLOW,
    Format,
    engine,
)
from tests.logs import one_by_one

FORMATS = {
    "dllogger": DLLOGGER,
    "rn50": ONEFLOW_RN50,
    "bert": ONEFLOW_BERT,
    "gpt": ONEFLOW_GPT,
    "training": TENSORFLOW,
    "benchmark": TENSORFLOW,
    "nvlog": TENSORFLOW,
    "tagged nvlog": TENSORFLOW,
}
STEPS = 600
RATE = re.compile(rb"(?:(?<=ips : )|(?<=ips: )|(?<=sec : )|(?<=sec: )|(?<=/s: )|(?<=put: ))[\d.]+")


def line(name: str, row: int, dice: random.Random) -> str:
    """A step of a program, in rates of many widths."""
    clock = f"{1_597_933_942 + row * 7 + dice.random():.{dice.randrange(1, 7)}f}"
    rate = dice.choice((9.5, 99.25, 1024.5)) + dice.random()
    stamp = f"2020-12-16 {row // 600 % 24:02}:{row // 10 % 60:02}:{row % 10 * 6:02}.{row % 997:06}"
    latency = dice.uniform(0.5, 0.6)
    seconds = f"16219{row // 10 + 36200}.{row % 10}30357"
    number, printed = (
        f":::NVLOGv0.2.3 resnet {seconds}{end} (benchmark_hooks.py:60)" for end in (231, 958)
    )
    return {
        "dllogger": f"DLL {stamp} - Epoch: 0 Iteration: {row}  train.loss : 7.1"
        f"  train.total_ips : {rate:.2f} img/s",
        "rn50": f"train: epoch 0, iter {row * 20}, loss: 7.1, samples/s: {rate:.3f} {clock}",
        "bert": f"step: {row * 20 - 1}, total_loss: 9.7, throughput: {rate:.3f}",
        "gpt": f"| {row * 10:<8} | {row:<4} | {row:<4} | {512 / latency:.5f} | {latency:.5f} |"
        f" {dice.uniform(7, 12):.5f} |",
        "training": f"DLL {stamp} - (0, {row + 20}) imgs_per_sec : {rate!r}  l2_loss : 0.{row}",
        "benchmark": f"DLL {stamp} - (0, {row + 20}) total_ips : {rate!r} ",
        "nvlog": f"{number} iteration: {row + 20}\n{printed} total_ips: {rate!r}",
        "tagged nvlog": f"[1,0]<stdout>:{number} iteration: {row + 20}\n"
        f"[1,0]<stdout>:{printed} imgs_per_sec: {rate!r}",
    }[name]


def lines(name: str, dice: random.Random) -> Iterator[bytes]:
    for row in range(1, STEPS + 1):
        yield line(name, row, dice).encode() + b"\n"


def alike() -> Iterator[bytes]:
    """Steps of one shape from the first hundred on."""
    for row in range(1, STEPS + 1):
        stamp = f"2020-12-16 11:{row // 60:02}:{row % 60:02}.500001"
        yield f"DLL {stamp} - Epoch: 0 Iteration: {row}  train.loss : 7.{row:03}".encode()
        yield f"  train.total_ips : {1000 + row}.25 img/s\n".encode()


@pytest.mark.parametrize("name", FORMATS)
def test_steps_that_keep_to_the_course_are_taken_by_the_block(name: str) -> None:
    """Of 600 steps in many widths a few are read singly, and the log says what its lines say."""
    raw, window = b"".join(lines(name, random.Random(name))), (40, 400)
    assert one_by_one.steps_read_singly(FORMATS[name], raw, window) < 12
    for asked in (None, window):
        log = engine.read(FORMATS[name], [raw], asked)
        assert log == one_by_one.read(FORMATS[name], raw, asked)
        assert log.steps == STEPS


def test_steps_of_one_shape_are_taken_by_the_block() -> None:
    """A hundred and more lines that are equal but for their digits."""
    raw = b"".join(alike())
    assert one_by_one.steps_read_singly(DLLOGGER, raw, (40, 400)) < 12
    log = engine.read(DLLOGGER, [raw], (40, 400))
    assert log == one_by_one.read(DLLOGGER, raw, (40, 400))
    assert log.rate
    assert (log.rate.mean, log.window_mean) == (1300.75, 1220.25)


@pytest.mark.parametrize(
    ("form", "step"),
    [
        (ONEFLOW_GPT, "| %03d      | 10 | 20 | 97.42730   | 5.25000    | 10.48567   |"),
        (TENSORFLOW, "DLL 2020-12-16 11:00:07.500001 - (0, %03d) total_ips : 1128.2500000000017 "),
        (ONEFLOW_BERT, "step: %03d, total_loss: 9.725, throughput: 54.982 1598056519.8844702"),
    ],
)
def test_one_shape_holds_for_every_format(form: Format, step: str) -> None:
    """Whatever a line has beside its iteration: no clock, many digits, all its words."""
    raw = b"".join(b"%s\n" % (step % number).encode() for number in range(100, 900))
    assert one_by_one.steps_read_singly(form, raw, (200, 400)) < 12
    for window in (None, (200, 400)):
        log = engine.read(form, [raw], window)
        assert log == one_by_one.read(form, raw, window)
        assert (log.steps, log.last_iteration) == (800, 899)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("noise", [b"some other words\n", b" 5 %\r 6 %\r", b"a\n\nb\n\xff\x00\n"])
def test_steps_with_foreign_lines_between_them_are_taken_by_the_block(
    name: str, noise: bytes
) -> None:
    """Lines of nobody's business keep no step from its block, and line numbers stay."""
    raw = b"".join(noise + step for step in lines(name, random.Random(name)))
    assert one_by_one.steps_read_singly(FORMATS[name], raw, (40, 400)) < 40
    log = engine.read(FORMATS[name], [raw], (40, 400))
    assert log == one_by_one.read(FORMATS[name], raw, (40, 400))
    assert log.steps == STEPS


def damaged(name: str, seed: int) -> bytes:
    """A log with faults here and there."""
    dice = random.Random(f"{name} {seed}")
    kept = list(lines(name, dice) if seed % 2 or name != "dllogger" else alike())
    for _ in range(dice.choice((1, 3, 20))):
        row = dice.randrange(len(kept))
        step, other = kept[row], dice.choice(kept)
        digits = [at for at, sign in enumerate(step) if 48 <= sign < 58]
        at = dice.choice(digits) if digits else 0
        faults = (
            b"",
            step * 2,
            other + step,
            step[: dice.randrange(len(step) or 1)] + step,
            step[:at] + b"\n",
            step.rstrip() + step,
            step[:at] + b"%d" % dice.randrange(10) + step[at + 1 :],
            step[:at] + step[at + 1 :],
            step[:at] + b"00" + step[at:],
            step[:at] + b"nan" + step[at:],
            kept[max(row - 40, 0)] + step,
            b" 10%|#   |\r 20%|##  |\x1b[K\r" + step,
            step.replace(b"poch: 0", b"poch: 1").replace(b"poch 0", b"poch 1"),
            b"".join(kept[max(row - 3, 0) : row]),
            RATE.sub(dice.choice((b"0.000", b"-1.000")), step),
            b"x" + step,
            b"[1,1]<stdout>:" + step,
            step.replace(b"[1,0]", b"[1,1]").replace(b"total_ips", b"imgs_per_sec"),
            b"vs001:1:2 [0] NCCL INFO Using network IB\n" + step,
            step.rstrip() + b" CUDA out of memory\n",
        )
        kept[row] = dice.choice(faults)
    return b"".join(kept)


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_say_what_their_lines_say_whatever_is_damaged(name: str) -> None:
    """Forty logs of every format, with steps lost, doubled, torn, glued, changed, of others."""
    for seed in range(40):
        raw = damaged(name, seed)
        window = random.Random(seed).choice((None, (40, 400), (1, 2), (100, 300)))
        log = engine.read(FORMATS[name], [raw], window)
        assert log == one_by_one.read(FORMATS[name], raw, window), seed


def test_a_torn_step_that_looks_like_a_field_of_the_next_is_no_step() -> None:
    """`mlm_` of the one and `step: 119` of the other are one more word with a number."""
    step = "step: {}, total_loss: 9.7, mlm_loss: 8.9, throughput: 900.170 16001910{}.4878454\n"
    kept = [step.format(number, number // 20 + 10) for number in range(19, 600, 20)]
    kept[5] = kept[5][: kept[5].index("mlm_") + 4] + kept[5]
    raw = "".join(kept).encode()
    log = engine.read(FORMATS["bert"], [raw], (19, 119))
    assert log == one_by_one.read(FORMATS["bert"], raw, (19, 119))
    assert log.steps == len(kept) - 1


@pytest.mark.parametrize(
    ("before", "after", "singly"),
    [
        (rb"(?P<epoch>\d{1,9})", rb"(?P<epoch>(?:\d|x){1,9})", 12),
        (b"DLL ", rb"DLL (?=.*Iteration: (?P<words>\d+))(?=.*train.loss : (?P<latency>\d))", 601),
    ],
)
def test_a_step_may_be_described_in_other_ways(before: bytes, after: bytes, singly: int) -> None:
    """A field with groups in it; and one that is found out of its order, where no block is."""
    form = replace(DLLOGGER, step=DLLOGGER.step.replace(before, after, 1))
    raw = b"".join(lines("dllogger", random.Random(1)))
    log = engine.read(form, [raw], (40, 400))
    assert log == one_by_one.read(form, raw, (40, 400))
    assert one_by_one.steps_read_singly(form, raw, (40, 400)) < singly
    assert log.steps == STEPS


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Epoch: 0", b"Epoch: 1"),
        (b"DLL 2020", b"[1,1]<stdout>:DLL 2020"),
        (b"2020-12-16", b"2020-12-15"),
        (b"2020-12-16", b"2020-12-45"),
    ],
)
def test_many_lines_that_go_on_otherwise_say_what_they_say_one_by_one(
    before: bytes, after: bytes
) -> None:
    """From the 300th step on another epoch, rank or day, or a day that does not exist."""
    kept = b"".join(alike()).splitlines(keepends=True)
    raw = b"".join(kept[:300] + [step.replace(before, after) for step in kept[300:]])
    for window in ((40, 400), (310, 500), (1, 20), (601, 700)):
        log = engine.read(DLLOGGER, [raw], window)
        assert log == one_by_one.read(DLLOGGER, raw, window)
        assert log.steps == STEPS


@pytest.mark.parametrize("window", [None, (40, 400)])
def test_a_format_without_a_clock_is_read_by_the_block_too(window: tuple[int, int] | None) -> None:
    """Steps of a number and a rate, as of a program that is measured by its printed rates."""
    step = rb"step (?P<iteration>\d{1,9}) rate (?P<rate>\d{1,9}\.\d\d)"
    form = replace(ONEFLOW_BERT, rule="rates", step=step, marks=(b"step ",), alone=(), clock=None)
    words = b" " * 20
    raw = b"".join(b"step %d rate %d.50%s\n" % (n, 1000 + n, words) for n in range(601))
    assert one_by_one.steps_read_singly(form, raw, window) < 12
    log = engine.read(form, [raw], window)
    assert log == one_by_one.read(form, raw, window)
    assert (log.steps, log.window_mean) == (601, 1069.5 if window is None else 1220.5)


@pytest.mark.parametrize("window", [(1020, 1060), (3000, 3060)])
def test_an_epoch_that_begins_with_a_piece_of_the_log_is_another_one(
    window: tuple[int, int],
) -> None:
    """Its numbers go on, and its lines have the shape of those before: 2,048 fill a piece."""
    steps = (
        f"DLL 2020-12-16 11:{row // 60:02}:{row % 60:02}.500001 - Epoch: {row // 2048} Iteration:"
        f" {1000 + row}  train.loss : 7.125  train.total_ips : {1000 + row}.25 img/s"
        for row in range(3500)
    )
    raw = b"".join(step.encode().ljust(127) + b"\n" for step in steps)
    log = engine.read(DLLOGGER, [raw], window)
    assert log == one_by_one.read(DLLOGGER, raw, window)
    assert (log.end is None) is (window[1] >= 1000 + 2048)
