"""The reader of DLLogger's lines: real logs, and real logs with one fault put in.

Over 400 lines: all tests doctor the same few logs, with the helpers that stand before them.
"""

import csv
import random
import re
from collections.abc import Sequence
from math import inf, isnan

import pytest

import tests
from orchestrator.logs import DLLOGGER, progress, reader
from orchestrator.logs.window import compute_mean
from orchestrator.model.log import SECOND_NS, TrainingLog
from tests.logs.said import codes, problems

SAMPLES = tests.SAMPLES / "logs-pytorch-rn50"
READ = reader(DLLOGGER)
WINDOW = (20, 60)
with (SAMPLES / "expected.csv").open(encoding="ascii") as file:
    EXPECTED = tuple(csv.DictReader(file))
CLEAN = (SAMPLES / "paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt").read_bytes()
TAGGED = (SAMPLES / "paddleperf_2022-11-21_b150233_pytorch_gpu32_amp_bs256.txt").read_bytes()
SHORT = (SAMPLES / "paddleperf_2022-06-16_8c650ff_pytorch_gpu8_amp_bs256.txt").read_bytes()
STEP = re.compile(rb"(?m)^DLL .*Iteration: (\d+) .*\n")
STEP_TAGGED = re.compile(rb"(?m)^.*Iteration: .*\n")

# Seed 003 prints these lines for 2 nodes, and again, but for world_size, for 4 nodes.
SEED = (
    b"DLL 2020-09-15 14:28:53.498443 - PARAMETER data : /data/image  data_backend : dali-cpu"
    b"  arch : resnet50  batch_size : 128  optimizer_batch_size : -1  fp16 : False"
    b"  static_loss_scale : 1  dynamic_loss_scale : False  prof : 121  amp : False"
    b"  distributed : True  local_rank : 0  gpu : 8  world_size : %d \n"
    b"DLL 2020-09-15 14:29:13.473765 - Epoch: 0 Iteration: 1  train.loss : 7.09304"
    b"  train.total_ips : 267.44 img/s\n"
    b"DLL 2020-09-15 14:29:14.427490 - Epoch: 0 Iteration: 2  train.loss : 6.93504"
    b"  train.total_ips : 4294.91 img/s\n"
    b"DLL 2020-09-15 14:29:15.018767 - Epoch: 0 Iteration: 3  train.loss : 6.85957"
    b"  train.total_ips : 6928.79 img/s\n"
    b"DLL 2020-09-15 14:29:15.387051 - Epoch: 0 Iteration: 4  train.loss : 6.80420"
    b"  train.total_ips : 11124.52 img/s\n"
)


def read(log: bytes, window: tuple[int, int] = WINDOW) -> TrainingLog:
    return READ([log], window)


def line_of(iteration: int, log: bytes = CLEAN) -> bytes:
    return next(found[0] for found in STEP.finditer(log) if int(found[1]) == iteration)


def throughput(log: TrainingLog, samples: int) -> float:
    """Samples per second over the window; ``samples`` of an iteration."""
    assert log.start
    assert log.end
    iterations = log.end.iteration - log.start.iteration
    return samples * iterations * SECOND_NS / (log.end.clock_ns - log.start.clock_ns)


def steps(numbers: Sequence[int], *, rate: str = "100.00", epoch: int = 0) -> bytes:
    """Step lines, one each tenth of a second."""
    return b"".join(
        b"DLL 2020-12-16 11:%02d:%02d.%d00000 - Epoch: %d Iteration: %d  train.loss : 7.10564"
        b"  train.total_ips : %s img/s\n"
        % (row // 600 % 60, row // 10 % 60, row % 10, epoch, number, rate.encode())
        for row, number in enumerate(numbers)
    )


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"])
def test_real_log_says_what_was_found_in_it(row: dict[str, str]) -> None:
    """Steps, rates, header and summary of each sample are those of its expected.csv."""
    log = read((SAMPLES / row["file"]).read_bytes())
    assert log.rate
    assert (log.runs, log.unit, log.steps) == (1, "images/s", int(row["n_iter_lines"]))
    assert (log.first_iteration, log.last_iteration) == (int(row["first_iter"]), log.steps)
    assert log.rate.count == log.steps
    assert log.rate.mean == pytest.approx(float(row["mean_total_ips"]), abs=0.01)
    assert log.rate.median == pytest.approx(float(row["median_total_ips"]), abs=0.01)
    assert log.config["micro_batch_size"] == int(row["batch_size"])
    assert log.config["world_size"] == int(row["world_size"])
    assert log.config["iterations"] == int(row["prof"])
    assert log.config["precision"] == ("amp" if row["amp"] == "True" else "fp32")
    assert log.reported["train_throughput"] == pytest.approx(float(row["summary_total_ips"]))


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"])
def test_real_log_gives_the_throughput_of_its_clock(row: dict[str, str]) -> None:
    """World size x batch x 40 iterations / time is the published column, to 0.01 images/s."""
    log = read((SAMPLES / row["file"]).read_bytes())
    samples = int(row["world_size"]) * int(row["batch_size"])
    assert throughput(log, samples) == pytest.approx(
        float(row["time_based_iter20_to_iter60"]), abs=0.01
    )
    assert log.window_rate == pytest.approx(throughput(log, samples), rel=0.01)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"])
def test_real_log_is_whole_unless_its_epoch_was_short(row: dict[str, str]) -> None:
    """Of the nine samples two end at 63 of the 99 steps that --prof 100 promises, and say so."""
    log = read((SAMPLES / row["file"]).read_bytes())
    short = [("SHORT-RUN", "have 63 of 99 steps; the program ended there by itself")]
    expected = [] if row["n_iter_lines"] == "99" else short
    assert [(problem.code, problem.message) for problem in log.problems] == expected


def test_chunks_make_no_difference_to_a_log_of_many_blocks() -> None:
    """Sums, gaps and line numbers of a log of 2 MB do not depend on where it is cut."""
    dice = random.Random(1)
    raw = b"noise\xff\x00\r" + b"".join(
        steps([number], rate=f"{dice.uniform(90, 110):.2f}") + b"\x1b[32m 5 %\x1b[0m\r" * (row % 3)
        for row, number in enumerate(range(1, 15_000))
    )
    whole = read(raw, (20, 12_000))
    for size in (997, 65_536, 300_000):
        chunks = [raw[at : at + size] for at in range(0, len(raw), size)]
        assert READ(chunks, (20, 12_000)) == whole
    assert (whole.steps, whole.last_iteration) == (14_999, 14_999)


def test_header_is_read_by_name() -> None:
    """The header's words come back under the project's names, with numbers as numbers."""
    assert read(CLEAN).config == {
        "data": "/imagenet",
        "data_backend": "dali-cpu",
        "arch": "resnet50",
        "num_classes": 1000,
        "micro_batch_size": 128,
        "optimizer_batch_size": -1,
        "iterations": 100,
        "memory_format": "nchw",
        "world_size": 8,
        "precision": "amp",
        "loss_scale": 256.0,
    }


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"dynamic_loss_scale : False", b"dynamic_loss_scale : True", ("amp", "dynamic")),
        (b"dynamic_loss_scale : False  ", b"", ("amp", 256.0)),
        (b"amp : True", b"amp : False", ("fp32", None)),
        (b"fp16 : False  ", b"fp16 : True  ", ("amp", 256.0)),
        (b"static_loss_scale : 256.0  ", b"", ("amp", None)),
        (b"amp : True", b"amp : yes", (None, None)),
    ],
)
def test_precision_and_loss_scale_follow_the_flags(
    before: bytes, after: bytes, expected: tuple[object, object]
) -> None:
    """What the flags leave open is absent, not guessed."""
    config = read(CLEAN.replace(before, after)).config
    assert (config.get("precision"), config.get("loss_scale")) == expected


def test_header_in_two_parts_is_one_header() -> None:
    """Since 2021 the model's parameters stand in a line of their own."""
    log = read(SHORT)
    assert (log.runs, log.config["num_classes"], log.config["data"]) == (1, 1000, "/imagenet")


@pytest.mark.parametrize("value", ["1_28", "१२८", "128img", "-128", "0", "1e2"])
def test_header_value_that_does_not_read_is_absent(value: str) -> None:
    """A batch size that is not a positive number in ASCII digits is named and left out."""
    log = read(CLEAN.replace(b"  batch_size : 128 ", f"  batch_size : {value} ".encode()))
    assert "micro_batch_size" not in log.config
    assert len(problems(log, "MALFORMED")) == 1
    assert "line 8: header: batch_size : " in problems(log, "MALFORMED")[0]


@pytest.mark.parametrize(
    ("before", "after", "absent"),
    [
        (b"static_loss_scale : 256.0", b"static_loss_scale : 2_5", "loss_scale"),
        (b"amp : True", b"amp : Tru", "precision"),
        (b"arch : resnet50  model_config : ", b"arch : resnet50  model_co|fig : ", "arch"),
        (b"prof : 100", b"prof : 100.0", "iterations"),
    ],
)
def test_damaged_header_is_not_guessed_at(before: bytes, after: bytes, absent: str) -> None:
    """What hangs on a value that does not read is absent, and the value is named."""
    log = read(CLEAN.replace(before, after))
    assert absent not in log.config
    assert codes(log) == {"MALFORMED"}


def test_header_that_breaks_off_is_named() -> None:
    """A line feed in the middle of the header takes half of its keys away."""
    log = read(CLEAN.replace(b"batch_size : 128 ", b"bat\nch_size : 128 ", 1))
    assert problems(log, "NO-HEADER") == ["the header does not say batch_size and prof"]


def test_header_that_contradicts_itself_is_named() -> None:
    """A key that one run's header says twice, differently, is absent."""
    extra = b"DLL 2020-12-16 11:37:19.700000 - PARAMETER batch_size : 256 \n"
    log = read(CLEAN.replace(line_of(1), extra + line_of(1)))
    assert (log.runs, "micro_batch_size" in log.config) == (1, False)
    assert problems(log, "MIXED-CONFIG") == ["line 32: header: batch_size : 256 against 128"]


def test_log_without_header_is_named() -> None:
    """Steps alone are read, and the missing header is a problem."""
    log = read(b"".join(found[0] for found in STEP.finditer(CLEAN)))
    assert (log.steps, log.config, codes(log)) == (99, {}, {"NO-HEADER"})


def test_header_alone_is_a_run_without_steps() -> None:
    """A program that died before its first step is truncated."""
    log = read(CLEAN[: CLEAN.index(line_of(1))])
    assert (log.runs, log.config["world_size"]) == (1, 8)
    assert problems(log, "TRUNCATED") == ["have 0 of 99 steps"]
    assert "NO-STEPS" in codes(log)


def test_log_cut_between_lines_is_truncated() -> None:
    """A log that covers the window but not the promise gives its number and a problem."""
    log = read(CLEAN[: CLEAN.index(line_of(64))])
    assert throughput(log, 1024) == pytest.approx(6098.37, abs=0.01)
    assert [(p.code, p.message) for p in log.problems] == [("TRUNCATED", "have 63 of 99 steps")]


@pytest.mark.parametrize("raw", [CLEAN, TAGGED], ids=["plain", "mpirun"])
def test_log_cut_at_any_byte_never_says_anything_else(raw: bytes) -> None:
    """At each byte the log is truncated, or says exactly what the whole log says."""
    whole = read(raw)
    at_step = {int(found[1]): found for found in re.finditer(rb"Iteration: (\d+) .*\n", raw)}
    cuts = [
        *range(at_step[19].start() - 60, at_step[21].end()),
        *range(at_step[99].start() - 60, len(raw)),
        *range(0, at_step[1].end(), 3),
    ]
    for cut in cuts:
        log = read(raw[:cut])
        if not codes(log) & {"TRUNCATED", "NO-STEPS"}:
            assert (log.steps, log.config, log.digest) == (99, whole.config, whole.digest)
            assert (log.rate, log.start, log.end) == (whole.rate, whole.start, whole.end)
        assert log.config.items() <= whole.config.items()
        assert log.reported.items() <= whole.reported.items()


def test_last_line_counts_if_its_rate_is_whole() -> None:
    """Without a line feed a step counts as soon as its unit is there, not one byte before."""
    whole = CLEAN[: CLEAN.index(line_of(31)) - 1]
    assert whole.endswith(b" img/s")
    assert read(whole).last_iteration == 30
    cut = read(whole[:-1])
    assert cut.last_iteration == 29
    assert problems(cut, "TRUNCATED") == [
        "have 29 of 99 steps",
        "the log ends in the middle of a record, in line 61",
    ]


def test_two_runs_in_one_file_have_no_window() -> None:
    """A crashed attempt glued in front: the last run's steps, no times, no digest."""
    crashed = CLEAN[: CLEAN.index(line_of(41))]
    log = read(crashed + CLEAN)
    assert (log.runs, log.steps, log.first_iteration, log.last_iteration) == (2, 99, 1, 99)
    assert log.rate == read(CLEAN).rate
    assert (log.start, log.end, log.window_rate, log.digest) == (None, None, None, "")
    assert problems(log, "SEVERAL-RUNS") == ["line 79: another header"]


@pytest.mark.parametrize("first", [1, 20])
def test_iterations_that_go_back_are_a_second_run(first: int) -> None:
    """Without a header, too, and even if the second run's first lines are lost."""
    log = read(steps([*range(1, 70), *range(first, 100)]))
    assert (log.runs, log.steps, log.start) == (2, 100 - first, None)
    assert "SEVERAL-RUNS" in codes(log)


def test_epoch_that_goes_back_is_a_second_run() -> None:
    """Epoch 1 followed by epoch 0 is not one run."""
    log = read(steps(range(1, 9), epoch=1) + steps(range(9, 90)))
    assert (log.runs, log.first_iteration) == (2, 9)


def test_second_epoch_is_not_a_second_run() -> None:
    """Iterations begin anew with the epoch; the window means the first one."""
    second = b"".join(found[0] for found in STEP.finditer(CLEAN))
    second = second.replace(b"Epoch: 0", b"Epoch: 1").replace(b" 11:37:", b" 11:38:")
    log = read(CLEAN.replace(line_of(99), line_of(99) + second))
    assert (log.runs, log.steps, log.last_iteration, log.problems) == (1, 198, 99, ())
    assert throughput(log, 1024) == pytest.approx(6098.37, abs=0.01)
    assert log.digest == read(CLEAN).digest


def test_step_repeated_in_a_later_epoch_leaves_the_window_alone() -> None:
    """Iteration 20 twice in epoch 1 is named; the window's end in epoch 0 stands."""
    numbers = [*range(1, 21), 20, *range(21, 99)]
    log = read(steps(range(1, 99)) + steps(numbers, epoch=1).replace(b" 11:", b" 12:"))
    assert problems(log, "DUP-STEPS") == ["line 119: iteration 20 of epoch 1 is there again"]
    assert throughput(log, 10) == pytest.approx(100)


def test_window_of_one_iteration_takes_no_time() -> None:
    """Both ends are the same moment."""
    log = read(CLEAN, (20, 20))
    assert log.start == log.end
    assert (log.start is None, log.window_rate) == (False, None)


def test_clock_after_a_time_that_does_not_exist_goes_on() -> None:
    """A step before and one after a broken time are no interval."""
    broken = line_of(30).replace(b"11:37:32", b"11:77:32")
    log = read(CLEAN.replace(line_of(30), broken))
    assert throughput(log, 1024) == pytest.approx(6098.37, abs=0.01)
    assert problems(log, "GAP") == []


def test_header_promises_each_of_its_epochs() -> None:
    """Two epochs of --prof 100 are 198 steps, unless one is all that was to run."""
    two = CLEAN.replace(b"  epochs : 1 ", b"  epochs : 2 ")
    assert problems(read(two), "SHORT-RUN")[0].startswith("have 99 of 198 steps")
    unended = two[: two.index(b" - Summary: ")].rpartition(b"\n")[0] + b"\n"
    assert problems(read(unended), "TRUNCATED") == ["have 99 of 198 steps"]
    assert read(two.replace(b"run_epochs : -1", b"run_epochs : 1")).problems == ()
    assert read(CLEAN.replace(b"prof : 100", b"prof : -1")).problems == ()


def test_every_step_twice_is_named_with_its_count() -> None:
    """Two writers that both speak for rank 0."""
    log = read(STEP.sub(lambda found: found[0] * 2, CLEAN))
    assert (log.steps, log.runs) == (99, 1)
    assert problems(log, "DUP-STEPS")[0].endswith("(the first of 99)")


def test_earlier_step_that_comes_again_begins_another_run() -> None:
    """Iteration 12 between 30 and 31: nothing proves that what follows belongs to the first run."""
    log = read(CLEAN.replace(line_of(31), line_of(12) + line_of(31)))
    assert (log.runs, log.window_rate) == (2, None)
    (seen,) = problems(log, "SEVERAL-RUNS")
    assert seen.endswith(": iteration 12 of epoch 0 after 30 of epoch 0")


def test_steps_of_two_ranks_are_named() -> None:
    """Only global rank 0 prints steps; a second rank's lines are a repetition."""
    rank_1 = STEP_TAGGED.sub(lambda found: found[0].replace(b"[1,0]", b"[1,1]"), TAGGED)
    pairs = b"".join(
        one + other if one != other else one
        for one, other in zip(
            TAGGED.splitlines(keepends=True), rank_1.splitlines(keepends=True), strict=True
        )
    )
    log = read(pairs)
    assert problems(log, "DUP-STEPS")[0].endswith("is there again (the first of 99)")
    assert log.steps == 99


def test_other_ranks_lines_do_not_disturb() -> None:
    """Text of other ranks between the steps, as mpirun tags it, changes nothing."""
    noise = b"Wed Jun  1 10:54:24 2022[1,3]<stdout>:NCCL INFO Iteration 7 of DLL\n"
    log = read(STEP_TAGGED.sub(lambda found: noise + found[0], TAGGED))
    clean = read(TAGGED)
    assert (log.steps, log.rate, log.digest, log.problems) == (
        clean.steps,
        clean.rate,
        clean.digest,
        (),
    )


def test_skipped_steps_are_named_where_they_are() -> None:
    """Iterations 8, and 50 to 52, lost from a log."""
    lost = b"".join(found[0] for found in STEP.finditer(CLEAN) if int(found[1]) in (50, 51, 52))
    log = read(CLEAN.replace(line_of(8), b"").replace(lost, b""))
    assert problems(log, "SKIPPED-STEPS") == [
        "line 39: iteration 9 after 7 (the first of 2)",
    ]
    assert problems(log, "TRUNCATED") == ["have 95 of 99 steps"]


def test_step_skipped_at_the_beginning_is_named() -> None:
    """A log whose head is lost, and one that jumps in its second line."""
    assert problems(read(steps(range(5, 90))), "SKIPPED-STEPS") == [
        "the log begins at iteration 5; needed 1"
    ]
    second = read(steps([1, *range(3, 90)]))
    assert problems(second, "SKIPPED-STEPS") == ["line 2: iteration 3 after 1"]


def test_every_twentieth_step_is_no_skip() -> None:
    """A program that prints with a constant stride is measured as it prints."""
    header = SEED.partition(b"\n")[0] % 32 + b"\n"
    log = read(header + steps(range(20, 121, 20)), (20, 120))
    assert (log.steps, log.problems) == (6, ())
    assert log.start
    assert log.end
    assert (log.start.iteration, log.end.iteration) == (20, 120)


def test_steps_without_any_order_are_named() -> None:
    """Thousands of different jumps are read, and named."""
    numbers = [row * row for row in range(1, 3000)]
    log = read(steps(numbers))
    assert (log.steps, log.last_iteration) == (2999, 2999**2)
    assert "SKIPPED-STEPS" in codes(log)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Iteration: 30 ", "Iteration: ३० ".encode()),
        (b"Iteration: 30 ", b"Iteration: 3_0 "),
        (b"Iteration: 30 ", b"Iteration: 30  NCCL INFO Channel 00 :"),
        (b"Epoch: 0 Iteration: 30 ", b"Epoch: 0 Iter\nation: 30 "),
        (b"DLL 20", b"DLL 2020-12-16 11:3DLL 20"),
        (b" img/s", b" i\x00g/s"),
        (b"img/s", b"img/sDLL 2020-12-16 11:37:31.000000 - Epoch: 0 Iteration: 31  train.lo"),
        (b"DLL 2020", "DLL २०२०".encode()),
        (b"DLL 2020", b"DL 2020"),
        (b"train.total_ips : ", b"train.total_ips : 1_"),
        (b"train.total_ips : ", b"train.total_ips : None "),
        (b"train.total_ips", b"total"),
    ],
)
def test_line_that_does_not_match_is_counted(before: bytes, after: bytes) -> None:
    """Interleaved writers and foreign digits: the line is no step, and is named."""
    broken = line_of(30).replace(before, after)
    log = read(CLEAN.replace(line_of(30), broken))
    assert (log.steps, log.last_iteration) == (98, 99)
    assert problems(log, "MALFORMED") == [
        "line 61 begins or ends as a record but does not match, inside the window"
    ]
    assert {"SKIPPED-STEPS", "TRUNCATED"} <= codes(log)


def test_malformed_lines_outside_the_window_are_ignored() -> None:
    """Two before the window and one inside, which is named; skipped steps are named anywhere."""
    log = CLEAN
    for iteration in (3, 4, 40):
        log = log.replace(line_of(iteration), b"DLL 2020-12\n")
    assert problems(read(log), "MALFORMED") == [
        "line 71 begins or ends as a record but does not match, inside the window"
    ]


def test_time_that_does_not_exist_is_no_window_end() -> None:
    """31 February has the shape of a date, and is none."""
    log = read(CLEAN.replace(line_of(20), line_of(20).replace(b"2020-12-16", b"2020-02-31")))
    assert (log.start, log.window_rate) == (None, None)
    assert problems(log, "MALFORMED") == ["line 51: there is no such date or time"]


def test_rate_below_zero_is_no_rate() -> None:
    """It is read, and no mean is drawn from it."""
    log = read(CLEAN.replace(line_of(30), line_of(30).replace(b"ips : ", b"ips : -")))
    assert (log.rate, log.window_rate, log.steps) == (None, None, 99)
    assert len(problems(log, "NOT-FINITE")) == 1


def test_loss_that_is_not_finite_is_named_apart() -> None:
    """Dynamic loss scaling begins with such losses: the rates stand."""
    log = CLEAN
    for iteration in (1, 2):
        log = log.replace(
            line_of(iteration), re.sub(rb"loss : [\d.]+", b"loss : nan", line_of(iteration))
        )
    assert read(log).rate == read(CLEAN).rate
    assert [(p.code, p.message) for p in read(log).problems] == [
        ("LOSS-NOT-FINITE", "line 32: iteration 1: the loss is not finite (the first of 2)")
    ]


def test_clock_that_goes_backwards_is_named() -> None:
    """A time correction in mid-run."""
    broken = line_of(30).replace(b" 11:37:", b" 11:36:")
    log = read(CLEAN.replace(line_of(30), broken))
    assert problems(log, "CLOCK-STEP") == ["line 61: iteration 30: the clock goes backwards"]


def test_stall_inside_the_window_is_named() -> None:
    """The last iteration of a short epoch stalls: 2.8 s where 0.35 s are usual."""
    log = read(SHORT, (20, 63))
    assert problems(log, "GAP") == [
        "line 73: iteration 63, inside the window, took 2.804 s; the median step takes 0.347 s"
    ]
    assert problems(read(SHORT, (20, 62)), "GAP") == []


def test_terminal_control_changes_no_number() -> None:
    """Progress bars, colours and Windows line ends leave the clean log's numbers."""
    bar = b" 10%|#         |\r 20%|##        |\x1b[K\r"
    coloured = b"\x1b]0;train\x07" + CLEAN.replace(b"train.loss", b"\x1b[32mtrain.loss\x1b[0m")
    logs = [
        STEP.sub(lambda found: bar + found[0], CLEAN),
        coloured,
        CLEAN.replace(b"\n", b"\r\n"),
        CLEAN.replace(b"\n", b"\r"),
    ]
    clean = read(CLEAN)
    for log in map(read, logs):
        assert (log.steps, log.rate, log.digest) == (clean.steps, clean.rate, clean.digest)
        assert (log.config, log.reported, log.problems) == (clean.config, clean.reported, ())
        assert throughput(log, 1024) == throughput(clean, 1024)


def test_lines_are_counted_by_line_feeds() -> None:
    """A carriage return of a progress bar does not move the evidence."""
    bars = STEP.sub(lambda found: b" 10%\r 20%\r" + found[0], CLEAN)
    for raw in (CLEAN, bars, CLEAN.replace(b"\n", b"\r\n")):
        log = read(raw)
        assert log.start
        assert log.end
        assert (log.start.line, log.end.line) == (51, 91)


def test_bytes_that_are_no_text_are_no_trouble() -> None:
    """Latin-1, NUL and half characters between the lines and in the header."""
    raw = STEP.sub(lambda found: b"\xe9t\xe9 \x00\xff\n" + found[0], CLEAN)
    log = read(raw.replace(b"data : /imagenet", b"data : /im\xe9ge"))
    assert (log.steps, log.rate, log.problems) == (99, read(CLEAN).rate, ())
    assert log.config["data"] == "/im\\xe9ge"


def test_hole_in_front_of_a_line_does_not_hide_it() -> None:
    """A rotated log begins with zeros instead of lines: megabytes, and no line end in them."""
    log = read(b"\x00" * 3_000_000 + CLEAN)
    assert (log.steps, log.problems) == (99, ())
    assert log.start
    assert log.start.line == 51


def test_record_longer_than_any_record_is_not_believed() -> None:
    """A header of 70 kB is somebody else's text."""
    log = read(CLEAN.replace(b"seed : None", b"seed : " + b"x" * 70_000))
    assert (log.config, log.steps) == ({}, 99)
    assert codes(log) == {"NO-HEADER"}


def test_time_without_microseconds_is_a_time() -> None:
    """Python prints no fraction at the full second: one line in a million."""
    numbers = steps(range(1, 90)).replace(b".000000 -", b" -")
    log = read(numbers)
    assert (log.steps, codes(log)) == (89, {"NO-HEADER"})
    assert throughput(log, 10) == pytest.approx(100)


def test_report_file_lines_are_not_steps() -> None:
    """DLLL lines of raport.json, and validation steps, do not count."""
    other = (
        b'DLLL {"timestamp": "1608118647.0", "step": [0, 1], "data": {"train.total_ips": 1.0}}\n'
        b"DLL 2020-12-16 11:37:27.000000 - Epoch: 0 Iteration: 1 Validation Iteration: 2"
        b"  val.loss : 7.0\n"
    )
    log = read(CLEAN.replace(line_of(1), other + line_of(1)))
    assert (log.steps, log.rate, log.problems) == (99, read(CLEAN).rate, ())


def test_summary_gives_its_finite_numbers() -> None:
    """The numbers of both Summary lines; a value of None is no number."""
    assert read(CLEAN).reported == {
        "train_loss": 7.14941,
        "train_throughput": 6014.71,
        "lr": 0.1,
        "train_compute_ips": 6058.55,
        "train_data_time": 0.00126,
        "train_compute_time": 0.22256,
    }
    assert "val_loss" not in read(SHORT).reported


def test_digest_finds_the_same_evidence() -> None:
    """Seed 003 prints one log for 2 and for 4 nodes: other bytes, other config, one digest."""
    two, four = (read(SEED % world_size, (1, 4)) for world_size in (16, 32))
    assert two.digest == four.digest != ""
    assert two.sha256 != four.sha256
    assert (two.config["world_size"], four.config["world_size"]) == (16, 32)
    assert read(CLEAN).digest != two.digest


def test_seed_lines_are_read() -> None:
    """Three iterations in 1.913286 s, by the clock of seed 003's listing."""
    log = read(SEED % 32, (1, 4))
    assert log.start
    assert log.end
    assert log.end.clock_ns - log.start.clock_ns == 1_913_286_000
    assert log.window_rate == pytest.approx(3 / (1 / 4294.91 + 1 / 6928.79 + 1 / 11124.52))
    assert problems(log, "TRUNCATED") == ["have 4 of 120 steps"]
    assert "loss_scale" not in log.config


def test_a_clock_of_whole_seconds_is_marked() -> None:
    """The number is good to one part in its seconds; with fractions there is nothing to say."""
    log = read(re.sub(rb"(DLL \S+ \S+)\.\d{6} ", rb"\1 ", SEED % 32), (1, 4))
    assert problems(log, "COARSE-CLOCK") == [
        "line 2: the clock shows whole seconds; the 2 s between the ends of the window are"
        " good to 1 s"
    ]
    assert problems(read(SEED % 32, (1, 4)), "COARSE-CLOCK") == []


@pytest.mark.parametrize(("line", "before"), [(2, b"14:29:13.473765"), (5, b"14:29:15.387051")])
def test_either_end_without_a_fraction_is_a_coarse_clock(line: int, before: bytes) -> None:
    """One end that lost its fraction moves the number by up to a second, too."""
    log = read((SEED % 32).replace(before, before[:8]), (1, 4))
    assert problems(log, "COARSE-CLOCK")[0].startswith(f"line {line}: the clock shows whole")
    zeros = (SEED % 32).replace(before, before[:9] + b"000000")
    assert problems(read(zeros, (1, 4)), "COARSE-CLOCK") == []


def test_window_off_the_log_has_no_end() -> None:
    """A log of 63 steps has no iteration 120, and no rate up to it."""
    log = read(SHORT, (20, 120))
    assert log.start
    assert (log.end, log.window_rate) == (None, None)


def test_median_of_many_steps_is_exact() -> None:
    """Rates in any order, and in one made to mislead a sample."""
    dice = random.Random(3)
    mixed = [dice.randrange(9000, 11_000) for _ in range(20_001)]
    misleading = [99_999 if row % 20 == 1 else row for row in range(1, 20_001)]
    for rates in (mixed, misleading):
        lines = (steps([n], rate=f"{rate}.00") for n, rate in enumerate(rates, 1))
        log = READ(lines, WINDOW)
        ordered = sorted(rates)
        assert log.rate
        middle = (ordered[(len(rates) - 1) // 2] + ordered[len(rates) // 2]) / 2
        assert log.rate.median == middle


def test_progress_is_the_last_whole_step() -> None:
    """From a block that begins and ends in the middle of a line."""
    begin, end = CLEAN.index(line_of(40)) + 20, CLEAN.index(line_of(50)) + 90
    assert progress(DLLOGGER)(CLEAN[begin:end]) == (49, 6271.00)
    assert progress(DLLOGGER)(CLEAN) == (99, 6374.04)
    assert progress(DLLOGGER)(b" 5%|\r\x1b[32m" + line_of(7).rstrip() + b"\x1b[0m\r 6%|") == (
        7,
        float(line_of(7).split()[-2]),
    )
    assert progress(DLLOGGER)(b"Iteration: 5\n" + line_of(7)[:60]) is None


def test_many_lines_of_one_shape_that_are_no_steps_are_passed_over() -> None:
    """A library that says the same thing forty times between two steps changes nothing."""
    noise = b"".join(b"NCCL WARN channel %02d closed\n" % channel for channel in range(40))
    log = read(CLEAN.replace(line_of(50), noise + line_of(50)))
    assert (log.steps, log.problems, log.window_rate) == (99, (), read(CLEAN).window_rate)


@pytest.mark.parametrize("rates", [[inf, -inf, 1.0], [1e308, 1e308]])
def test_rates_without_a_sum_have_no_mean(rates: list[float]) -> None:
    """The mean is NaN, and reading goes on."""
    assert isnan(compute_mean(rates))


def test_steps_without_a_finite_rate_are_counted() -> None:
    """Twenty lines alike that say `nan`: each is told, and none enters a rate."""
    lost = b"".join(
        re.sub(rb"total_ips : [0-9.]+", b"total_ips : nan", line_of(n)) for n in range(60, 80)
    )
    whole = b"".join(line_of(n) for n in range(60, 80))
    log = read(CLEAN.replace(whole, lost))
    assert (log.steps, log.rate) == (99, None)
    assert len(problems(log, "NOT-FINITE")) == 1
    assert "the first of 20" in problems(log, "NOT-FINITE")[0]
