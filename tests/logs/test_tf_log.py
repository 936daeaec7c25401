"""The reader of NVIDIA's TensorFlow logs: real logs, and real logs with one fault put in.

Over 400 lines: all tests doctor the same few logs, with the helpers that stand before them.
"""

import csv
import re
from collections.abc import Iterable
from statistics import fmean

import pytest

import tests
from orchestrator.logs import TENSORFLOW, progress, reader
from orchestrator.model.log import SECOND_NS, TrainingLog
from tests.logs.said import codes, problems

READ = reader(TENSORFLOW)
SAMPLES = tests.SAMPLES / "logs-tf-rn50"
with (SAMPLES / "expected.csv").open(encoding="ascii") as file:
    EXPECTED = tuple(csv.DictReader(file))
ONE_GPU = (SAMPLES / "paddleperf_2020-12-18_be362d9_tf_gpu1_fp32_bs128.txt").read_bytes()
AMP = (SAMPLES / "paddleperf_2020-12-18_be362d9_tf_gpu8_amp_bs256.txt").read_bytes()
TAGGED = (SAMPLES / "paddleperf_2020-12-19_45057af_tf_gpu32_amp_bs256.txt").read_bytes()
NVLOG = (SAMPLES / "paddleperf_2021-05-27_37ea901_tf_gpu8_fp32_bs128.txt").read_bytes()
TENTH = (SAMPLES / "paddleperf_2022-06-16_8c650ff_tf_gpu8_amp_bs256.txt").read_bytes()
TRAINING = (SAMPLES / "dali_issue2242_train_mode_20.03_excerpt.txt").read_bytes()
STEP = re.compile(rb"(?m)^.*\(0, (\d+)\) .*\n")

# The ten rates that the log of one GPU prints from 200 to 209.
TEN = (
    *(395.8594442183251, 407.46431894595435, 410.3645494306256, 409.1760642278889),
    *(411.59277323835033, 410.9903283048276, 413.4438620783129, 410.1081295794961),
    *(409.3551464578072, 409.8291906713578),
)
# DLPerf's command line as the program's own header, in the words of the samples' headers.
HEADER = (
    b"DLL 2020-12-16 11:00:00.000000 - PARAMETER arch : resnet50  mode : train  data_dir :"
    b" /data/tfrecords  data_idx_dir : /data/dali_idx  export_dir : None  batch_size : 128 "
    b" num_iter : 120  run_iter : -1  iter_unit : batch  warmup_steps : 10000  data_format : NCHW "
    b" display_every : 1  precision : fp32  loss_scale : 256.0  use_static_loss_scaling : False "
    b" use_xla : False  use_dali : True  use_tf_amp : False  name : False \n"
    b"Starting Model Training...\nTotal Steps 120.0\nNum GPUs 1\nPer-GPU Batch Size 128\n"
)
RESULT = b"DLL 2020-12-16 12:59:00.000000 - () train_throughput : 1280.0 \n"


def read(log: bytes, window: tuple[int, int] | None = None) -> TrainingLog:
    return READ([log], window)


def line_of(iteration: int, log: bytes = ONE_GPU) -> bytes:
    return next(found[0] for found in STEP.finditer(log) if int(found[1]) == iteration)


def rate(log: TrainingLog, samples: int) -> float:
    """Samples per second by the clock; ``samples`` of an iteration."""
    assert log.start
    assert log.end
    iterations = log.end.iteration - log.start.iteration
    return samples * iterations * SECOND_NS / (log.end.clock_ns - log.start.clock_ns)


def steps(numbers: Iterable[int], *, rate: str = "1280.0", tag: str = "") -> bytes:
    """Lines of mode train, one each tenth of a second."""
    return b"".join(
        b"%sDLL 2020-12-16 11:%02d:%02d.%d00000 - (0, %d) imgs_per_sec : %s  cross_entropy : 6.5 "
        b" l2_loss : 0.66  total_loss : 7.2  learning_rate : 0.1 \n"
        % (tag.encode(), row // 600 % 60, row // 10 % 60, row % 10, number, rate.encode())
        for row, number in enumerate(numbers)
    )


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"])
def test_real_log_says_what_was_found_in_it(row: dict[str, str]) -> None:
    """Lines, runs and mean of each sample are those of its expected.csv."""
    log = read((SAMPLES / row["file"]).read_bytes())
    assert log.rate
    assert (log.runs, log.unit) == (int(row["runs_in_file"]), "images/s")
    assert log.steps == log.rate.count == int(row["n_total_ips_lines"])
    assert log.rate.mean == pytest.approx(float(row["mean_total_ips"]), abs=0.005)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"])
def test_benchmark_without_a_window_is_what_the_program_reports(row: dict[str, str]) -> None:
    """train_throughput to its last digit, and its line; a log without it says so, and why."""
    text = (SAMPLES / row["file"]).read_bytes()
    log = read(text)
    assert (log.rule, log.window, log.window_mean, log.window_rate) == (
        "reported",
        None,
        None,
        None,
    )
    assert (log.start, log.end) == (None, None)
    if row["reported_train_throughput"]:
        assert log.reported == {"train_throughput": float(row["reported_train_throughput"])}
        assert log.problems == ()
        first, last = log.evidence or (0, 0)
        printed = row["reported_train_throughput"].encode()
        assert first == last
        assert re.search(
            rb"(throughput :|Average total_ips:) " + printed, text.split(b"\n")[first - 1]
        )
    else:
        assert (log.reported, codes(log)) == ({}, {"HEADERLESS", "NO-RESULT"})
        assert log.evidence is None
        assert len(problems(log, "NO-RESULT")) == 1


def test_window_takes_the_time_between_its_ends() -> None:
    """8 GPUs x 256 over the 299 iterations between the two printed times."""
    log = read(AMP, (200, 499))
    assert (log.rule, log.window) == ("clock", (200, 499))
    assert rate(log, 2048) == pytest.approx(2048 * 299 / (68.755510 + 60 - 49.397291))
    assert (log.start and log.start.line, log.end and log.end.line) == (34, 333)
    assert log.window_rate == pytest.approx(rate(log, 2048), rel=0.01)
    assert log.problems == ()


def test_mean_of_a_window_counts_both_of_its_ends() -> None:
    """The ten rates from 200 to 209, arithmetically; the harmonic mean leaves out the first."""
    log = read(ONE_GPU, (200, 209))
    assert log.window_mean == pytest.approx(fmean(TEN), rel=1e-12)
    assert log.window_rate == pytest.approx(9 / sum(1 / rate for rate in TEN[1:]), rel=1e-12)


def test_times_of_nvlog_are_seconds() -> None:
    """The printed times of iterations 200 and 490; a step's two lines are one step."""
    log = read(NVLOG, (200, 490))
    seconds = 1621936387.456557 - 1621936291.127942
    assert rate(log, 1024) == pytest.approx(1024 * 290 / seconds, rel=1e-7)
    assert (log.start and log.start.line, log.end and log.end.line) == (35, 93)
    assert (log.first_iteration, log.last_iteration, log.problems) == (200, 490, ())


@pytest.mark.parametrize("window", [(200, 500), (199, 300), (21, 120), (205, 300)])
def test_window_off_the_log_has_no_mean(window: tuple[int, int]) -> None:
    """Every tenth iteration from 200 on is printed here, and no other is made up."""
    log = read(TENTH, window)
    assert (log.start is None) or (log.end is None)
    assert (log.window_mean, log.window_rate) == (None, None)
    assert log.window == window


def test_header_is_read_by_name() -> None:
    """Parameters come back under the project's names, with the two counts beside them."""
    assert read(AMP).config == {
        "arch": "resnet50",
        "mode": "training_benchmark",
        "micro_batch_size": 256,
        "world_size": 8,
        "iterations": 500,
        "warmup_steps": 200,
        "data_format": "NCHW",
        "precision": "amp",
        "loss_scale": 128.0,
        "xla": True,
        "dali": False,
        "data": "tfrecord",
    }
    assert read(TENTH).config == {**read(AMP).config, "data_format": "NHWC"}


def test_header_of_nvlog_says_less() -> None:
    """It has no precision without AMP, so that no whole log of its time must say one."""
    log = read(NVLOG)
    assert log.config == {
        "micro_batch_size": 128,
        "world_size": 8,
        "iterations": 500,
        "xla": True,
    }
    assert log.tells == {"micro_batch_size", "world_size"}
    assert read(AMP).tells == {"micro_batch_size", "world_size", "precision"}


def test_nvlog_names_automatic_mixed_precision() -> None:
    """The line that a log of AMP of the same day begins with."""
    line = b":::NVLOGv0.2.3 None 1621940943.830137491 (runner.py:123)"
    log = read(line + b" TF AMP is activated - Experimental Feature\n" + NVLOG)
    assert (log.config["precision"], log.problems) == ("amp", ())


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"use_tf_amp : True", b"use_tf_amp : False", ("fp32", None)),
        (b"use_static_loss_scaling : True", b"use_static_loss_scaling : False", ("amp", "dynamic")),
        (b"use_tf_amp : True", b"amp : True", ("amp", 128.0)),
        (b"loss_scale : 128.0", b"static_loss_scale : 64", ("amp", 64.0)),
        (b"use_static_loss_scaling : True  ", b"", ("amp", None)),
        (b"  use_tf_amp : True", b"", (None, None)),
        (b"use_tf_amp : True", b"use_tf_amp : yes", (None, None)),
    ],
)
def test_precision_and_loss_scale_follow_the_flags(
    before: bytes, after: bytes, expected: tuple[object, object]
) -> None:
    """What the flags leave open is absent, not guessed."""
    config = read(AMP.replace(before, after)).config
    assert (config.get("precision"), config.get("loss_scale")) == expected


def test_half_precision_outright_is_amp_here() -> None:
    """--precision=fp16 has no graph rewritten, and is no FP32."""
    log = read(
        AMP.replace(b"precision : fp32", b"precision : fp16").replace(b"p : True", b"p : False")
    )
    assert log.config["precision"] == "amp"


@pytest.mark.parametrize(
    ("before", "after", "key", "expected"),
    [
        (b"data_dir : /data/tfrecords/", b"data_dir : None", "data", "synthetic"),
        (b"  data_dir : /data/tfrecords/", b"", "data", None),
        (b"use_dali : False", b"use_dali : True", "dali", False),
        (b"data_idx_dir : None", b"data_idx_dir : /idx", "dali", False),
        (b"  use_dali : False", b"", "dali", None),
        (b"iter_unit : batch", b"iter_unit : epoch", "iterations", 500),
        (b"num_iter : 500", b"num_iter : 5e2", "iterations", None),
        (b"Num GPUs 8", b"Num GPUs eight", "world_size", None),
        (b"arch : resnet50 ", b"arch : resnet 50 ", "arch", None),
        (b"batch_size : 256", b"batch_size : 0", "micro_batch_size", None),
        (b"loss_scale : 128.0", b"loss_scale : 2_5", "loss_scale", None),
    ],
)
def test_header_says_what_the_program_does(
    before: bytes, after: bytes, key: str, expected: object
) -> None:
    """DALI without an index is not used, no data means synthetic data, rubbish means nothing."""
    assert before in AMP
    assert read(AMP.replace(before, after)).config.get(key) == expected


def test_dali_with_its_index_is_dali() -> None:
    """As DLPerf starts it; the warm-up that mode train ignores is no part of the case."""
    log = read(HEADER + steps(range(21, 121)) + RESULT)
    assert log.config == {
        "arch": "resnet50",
        "mode": "train",
        "micro_batch_size": 128,
        "world_size": 1,
        "iterations": 120,
        "data_format": "NCHW",
        "precision": "fp32",
        "xla": False,
        "dali": True,
        "data": "tfrecord",
    }


def test_header_value_that_does_not_read_is_named() -> None:
    """With its line, and what was needed."""
    log = read(ONE_GPU.replace(b"batch_size : 128 ", b"batch_size : 128img "))
    assert problems(log, "MALFORMED") == [
        "line 1: header: batch_size : 128img; a positive number was needed"
    ]
    assert "micro_batch_size" not in log.config


def test_header_that_contradicts_itself_is_named() -> None:
    """Its parameters say 256 images a GPU, its count 128: neither is taken."""
    log = read(ONE_GPU.replace(b"batch_size : 128 ", b"batch_size : 256 "))
    assert problems(log, "MIXED-CONFIG") == [
        "line 17: header: Per-GPU Batch Size : 128 against 256"
    ]
    assert "micro_batch_size" not in log.config


def test_damaged_header_names_what_it_lacks() -> None:
    """The counts of a log whose line of parameters is lost, and a log without any."""
    log = read(ONE_GPU.partition(b"\n")[2].replace(b"Total Steps 500.0\n", b""))
    assert (log.config, log.runs) == ({"world_size": 1, "micro_batch_size": 128}, 1)
    assert problems(log, "NO-HEADER") == ["the header does not say iterations"]
    assert problems(read(TAGGED), "HEADERLESS")[0].startswith("no line of parameters")


def test_counts_may_bear_tags() -> None:
    """As mpirun prints them for 32 GPUs, with and without the time."""
    tags = (
        b"Thu Dec 17 18:27:52 2020[1,0]<stdout>:Num GPUs 32\n[1,0]<stdout>:Per-GPU Batch Size 256\n"
    )
    assert read(tags + TAGGED).config == {"world_size": 32, "micro_batch_size": 256}


def test_training_is_measured_over_the_hundred_steps_that_it_shows() -> None:
    """DLPerf's rule: 21 to 120 of 120 steps, of which the first 20 are never printed."""
    rates = [1000 + number for number in range(21, 121)]
    lines = b"".join(
        steps([n], rate=f"{rate}.5") for n, rate in zip(range(21, 121), rates, strict=True)
    )
    log = read(HEADER + lines + RESULT)
    assert (log.rule, log.window, log.steps) == ("clock", (21, 120), 100)
    assert log.window_mean == pytest.approx(fmean(rates) + 0.5)
    assert (log.problems, log.reported) == ((), {"train_throughput": 1280.0})


def test_clock_of_training_gives_its_throughput() -> None:
    """128 images in each tenth of a second."""
    log = read(HEADER + steps(range(21, 121)) + RESULT)
    assert rate(log, 128) == pytest.approx(1280)
    assert log.window_rate == pytest.approx(1280)


def test_epochs_end_without_ending_the_run() -> None:
    """A step's number goes on over epochs, whose end has a line of its own."""
    end = b"DLL 2020-12-16 11:00:05.500000 - (0,) cross_entropy : 6.5  l2_loss : 0.66 \n"
    first, later = steps(range(21, 121)).split(steps(range(21, 71)))
    assert first == b""
    log = read(HEADER + steps(range(21, 71)) + end + later.replace(b"(0, ", b"(1, ") + RESULT)
    assert (log.runs, log.steps, log.window_mean, log.problems) == (1, 100, 1280.0, ())


def test_steps_may_be_counted_from_0() -> None:
    """What is printed may be the count before a step, not after it: 20 to 119 is whole, too."""
    log = read(HEADER + steps(range(20, 120)) + RESULT)
    assert (log.problems, log.window, log.end) == ((), (21, 120), None)


def test_excerpt_of_a_training_has_no_window() -> None:
    """Two steps of the fourth epoch, from a bug report."""
    log = read(TRAINING)
    assert (log.runs, log.steps, log.first_iteration, log.last_iteration) == (1, 2, 16135, 16136)
    assert log.rate
    assert log.rate.mean == pytest.approx((1146.8574254443538 + 1146.482712670826) / 2)
    assert (log.window, log.start, log.end, log.rule) == ((21, 120), None, None, "clock")
    assert codes(log) == {"HEADERLESS"}


def test_older_training_prints_six_lines_a_step() -> None:
    """NVLOG's iteration, rate and losses; a loss that is not finite is named with its step."""
    lines = b"".join(
        b":::NVLOGv0.2.3 resnet 16219362%02d.500000000 (training_hooks.py:97) iteration: %d\n"
        b":::NVLOGv0.2.3 resnet 16219362%02d.600000000 (training_hooks.py:98) imgs_per_sec: 128.5\n"
        b":::NVLOGv0.2.3 resnet 16219362%02d.700000000 (training_hooks.py:99) total_loss: %s\n"
        % (number, number, number, number, b"nan" if number == 30 else b"7.2")
        for number in range(20, 40)
    )
    log = read(lines, (20, 39))
    assert (log.steps, rate(log, 128), log.window_mean) == (20, 128, 128.5)
    assert problems(log, "LOSS-NOT-FINITE") == ["line 33: iteration 30: the loss is not finite"]


def test_header_alone_is_a_run_without_steps() -> None:
    """A program that died before its first step is truncated."""
    log = read(ONE_GPU[: ONE_GPU.index(line_of(200))])
    assert (log.runs, log.config["world_size"], log.rule) == (1, 1, "reported")
    assert problems(log, "TRUNCATED") == ["have 0 of 300 steps"]
    assert {"NO-STEPS", "NO-RESULT"} <= codes(log)
    assert problems(read(HEADER), "TRUNCATED") == ["have 0 of 100 steps"]


def test_log_cut_between_lines_is_truncated() -> None:
    """A log that covers the window but not the promise gives its number and a problem."""
    log = read(AMP[: AMP.index(line_of(410, AMP))], (200, 400))
    assert rate(log, 2048) == pytest.approx(rate(read(AMP, (200, 400)), 2048))
    assert [(p.code, p.message) for p in log.problems] == [("TRUNCATED", "have 210 of 300 steps")]


@pytest.mark.parametrize(
    ("log", "last", "expected"),
    [
        (TENTH, 480, "have 29 of 30 steps"),
        (HEADER + steps(range(21, 121)), 119, "have 99 of 100 steps"),
        (HEADER + steps(range(20, 120)), 118, "have 99 of 100 steps"),
        (
            HEADER.replace(b"run_iter : -1", b"run_iter : 60") + steps(range(21, 61)),
            59,
            "have 39 of 40 steps",
        ),
        (
            HEADER.replace(b"every : 1 ", b"every : 7 ") + steps(range(22, 121, 7)),
            113,
            "have 14 of 15 steps",
        ),
    ],
)
def test_header_promises_its_last_step(log: bytes, last: int, expected: str) -> None:
    """Of 500 steps every tenth; of 120 all after 20, counted from 0 or from 1."""
    assert problems(read(log), "TRUNCATED") == []
    cut = log[: log.index(line_of(last, log)) + len(line_of(last, log))]
    assert problems(read(cut), "TRUNCATED") == [expected]


def test_nvlog_cut_between_lines_is_truncated() -> None:
    """Its count of steps is the promise; an iteration without its rate is no step."""
    cut = NVLOG[: NVLOG.index(b"(benchmark_hooks.py:60) total_ips: 3033.9167605575103")]
    log = read(cut[: cut.rindex(b"\n") + 1])
    assert problems(log, "TRUNCATED") == [
        "have 29 of 30 steps",
        "the log ends in the middle of a record, in line 93",
    ]


@pytest.mark.parametrize(
    ("raw", "window"),
    [(ONE_GPU, None), (ONE_GPU, (200, 209)), (TENTH, None), (NVLOG, (200, 490)), (NVLOG, None)],
)
def test_log_cut_at_any_byte_never_says_anything_else(
    raw: bytes, window: tuple[int, int] | None
) -> None:
    """At each byte the log has a problem, or says exactly what the whole log says."""
    whole, body = read(raw, window), raw.index(b"200")
    for cut in [*range(0, body, 37), *range(len(raw) - 700, len(raw), 1)]:
        log = read(raw[:cut], window)
        if not codes(log) & {"TRUNCATED", "NO-STEPS", "NO-RESULT"}:
            assert (log.steps, log.config, log.digest) == (whole.steps, whole.config, whole.digest)
            assert (log.rate, log.start, log.end) == (whole.rate, whole.start, whole.end)
            assert log.window_mean == whole.window_mean
        assert log.config.items() <= whole.config.items()
        assert log.reported.items() <= whole.reported.items()


@pytest.mark.parametrize("size", range(60, 200))
def test_last_line_counts_if_its_rate_is_whole(size: int) -> None:
    """Without a line feed a step counts as soon as something follows its number."""
    text = HEADER + steps(range(21, 31))
    last = steps([31])[:size]
    log = read(text + last)
    whole = len(b"DLL 2020-12-16 11:00:00.000000 - (0, 31) imgs_per_sec : 1280.0 ") <= size
    assert log.last_iteration == (31 if whole else 30)
    assert (
        "the log ends in the middle of a record, in line 16" in problems(log, "TRUNCATED")
    ) != whole


def test_last_line_may_be_the_result() -> None:
    """A number that something follows cannot go on; any other is not believed."""
    for kept, reported in (
        (b"DLL 2020-12-16 07:23:31.189858 - () train_throughput : 408.3 ", 408.3),
        (b"DLL 2020-12-16 07:23:31.189858 - () train_throughput : 408.3", None),
    ):
        log = read(ONE_GPU[: ONE_GPU.index(b"DLL 2020-12-16 07:23:31.189858")] + kept)
        assert log.reported.get("train_throughput") == reported
        assert codes(log) == (set() if reported else {"TRUNCATED", "NO-RESULT"})


def test_result_that_is_no_number_is_none() -> None:
    """nan, and what is glued to it, is no throughput."""
    for result in (b"nan", b"inf", b"408.3[1,3]<stderr>:x", b"None"):
        log = read(re.sub(rb"throughput : \S+", b"throughput : " + result, ONE_GPU))
        assert (log.reported, codes(log)) == ({}, {"NO-RESULT"})


def test_result_with_two_values_is_none() -> None:
    """Two ranks that both report, one of them otherwise; the same again is the same."""
    result = ONE_GPU[ONE_GPU.index(b"DLL 2020-12-16 07:23:31") :]
    log = read(ONE_GPU + result.replace(b"408.32054537977405", b"407.5"))
    assert (log.reported, log.evidence) == ({}, None)
    assert problems(log, "DUP-STEPS") == ["line 322: train_throughput 407.5 after 408.321"]
    assert "NO-RESULT" in codes(log)
    again = read(ONE_GPU + result)
    assert again.reported == {"train_throughput": 408.32054537977405}
    assert again.evidence == (321, 321)


def test_average_of_nvlog_that_is_no_number_is_none() -> None:
    """As a program says it that has timed nothing."""
    log = read(re.sub(rb"Average total_ips: \S+", b"Average total_ips: nan", NVLOG))
    assert (log.reported, codes(log)) == ({}, {"NO-RESULT"})


@pytest.mark.parametrize("window", [None, (200, 300)])
def test_two_runs_in_one_file_have_no_window(window: tuple[int, int] | None) -> None:
    """As in a log of 32 GPUs that PaddlePaddle published: the last run's steps, and no number."""
    crashed = TAGGED[: TAGGED.index(line_of(497, TAGGED))]
    prompt = b" user@host  ~/report   master  cat fp16_bs128_tf\n"
    log = read(crashed + prompt + TAGGED, window)
    assert (log.runs, log.steps, log.first_iteration, log.last_iteration) == (2, 300, 200, 499)
    assert (log.start, log.end, log.window_rate, log.window_mean, log.digest) == (*(None,) * 4, "")
    assert problems(log, "SEVERAL-RUNS") == ["line 299: iteration 200 after 496"]
    assert "NO-RESULT" not in codes(log)


def test_second_header_is_a_second_run() -> None:
    """Whether the first run had steps or not."""
    for first in (ONE_GPU, ONE_GPU.partition(b"\n")[0] + b"\n"):
        log = read(first + AMP)
        assert (log.runs, log.steps, log.config["world_size"]) == (2, 300, 8)
        assert problems(log, "SEVERAL-RUNS")[0].endswith("another header")


def test_second_training_of_nvlog_is_a_second_run() -> None:
    """It has no header of one line."""
    log = read(NVLOG + NVLOG)
    assert (log.runs, log.steps) == (2, 30)
    assert problems(log, "SEVERAL-RUNS") == ["line 103: another training is started"]


def test_training_that_is_started_again_is_a_second_run() -> None:
    """The line of parameters is lost, the rest of the header is there."""
    log = read(HEADER + steps(range(21, 30)) + HEADER.partition(b"\n")[2] + steps(range(40, 50)))
    assert (log.runs, log.steps) == (2, 10)


def test_step_after_the_result_is_of_another_run() -> None:
    """And so is a step that is timed otherwise, as an evaluation after the training is."""
    log = read(ONE_GPU + line_of(499).replace(b"(0, 499)", b"(0, 500)"))
    assert problems(log, "SEVERAL-RUNS") == [
        "line 322: total_ips of iteration 500 after the result"
    ]
    mixed = read(HEADER + steps(range(21, 30)) + line_of(499))
    assert mixed.runs == 2
    assert "total_ips of iteration 499 after imgs_per_sec" in problems(mixed, "SEVERAL-RUNS")[0]


def test_iterations_that_go_back_into_the_middle_are_a_second_run() -> None:
    """Even if the second run's first lines are lost."""
    log = read(steps([*range(21, 70), *range(40, 80)]))
    assert (log.runs, log.steps) == (2, 40)


def test_steps_of_two_ranks_are_named() -> None:
    """Only rank 0 prints; a third rank's lines are a repetition."""
    pairs = STEP.sub(lambda found: found[0] + found[0].replace(b"[1,0]", b"[1,3]"), TAGGED)
    log = read(pairs)
    assert (log.steps, log.runs) == (300, 1)
    assert problems(log, "DUP-STEPS")[0].endswith("is there again (the first of 300)")


def test_skipped_steps_are_named_where_they_are() -> None:
    """Iterations 208, and 250 to 252, lost from a log; and every other one."""
    lost = [line_of(number) for number in (208, 250, 251, 252)]
    log = ONE_GPU
    for line in lost:
        log = log.replace(line, b"")
    assert problems(read(log), "SKIPPED-STEPS") == [
        "line 28: iteration 209 after 207 (the first of 2)",
    ]
    assert problems(read(log), "TRUNCATED") == ["have 296 of 300 steps"]
    half = STEP.sub(lambda found: found[0] if int(found[1]) % 2 else b"", ONE_GPU)
    assert {"SKIPPED-STEPS", "TRUNCATED"} <= codes(read(half))


def test_log_that_begins_late_is_named() -> None:
    """Its header says from where on steps are printed."""
    head = ONE_GPU[: ONE_GPU.index(line_of(200))]
    log = read(head + ONE_GPU[ONE_GPU.index(line_of(204)) :])
    assert problems(log, "SKIPPED-STEPS") == ["the log begins at iteration 204; needed 200"]
    late = read(HEADER + steps(range(22, 121)))
    assert problems(late, "SKIPPED-STEPS") == ["the log begins at iteration 22; needed 21"]


def test_every_step_may_be_printed_whatever_was_asked() -> None:
    """The hook of 2020 knows no --display_every."""
    log = read(ONE_GPU.replace(b"display_every : 1 ", b"display_every : 10 "))
    assert (log.steps, log.problems) == (300, ())


def test_header_whose_mode_is_unknown_promises_its_last_step_only() -> None:
    """Steps begin where they begin, and end where the count says."""
    header = HEADER.replace(b"mode : train ", b"mo|de : train ").replace(
        b"display_every", b"dis|play"
    )
    assert problems(read(header + steps(range(50, 121))), "TRUNCATED") == []
    assert problems(read(header + steps(range(50, 100))), "TRUNCATED") == ["have 50 of 70 steps"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"(0, 230)", "(0, २३०)".encode()),
        (b"(0, 230)", b"(0, 23_0)"),
        (b"(0, 230) ", b"(0, 230) NCCL INFO Channel 00 :"),
        (b"(0, 230) ", b"(0, 2\n30) "),
        (b"DLL 20", b"DLL 2020-12-16 11:3DLL 20"),
        (b"total_ips : ", b"total_ips : 1_"),
        (b"total_ips : ", b"total_ips : None "),
        (b" \n", b"[1,3]<stderr>:x\n"),
        (b"DLL 2020", "DLL २०२०".encode()),
        (b"DLL 2020", b"DL 2020"),
    ],
)
def test_line_that_does_not_match_is_counted(before: bytes, after: bytes) -> None:
    """Interleaved writers and foreign digits: the line is no step, and is named."""
    broken = line_of(230).replace(before, after)
    log = read(ONE_GPU.replace(line_of(230), broken), (200, 300))
    assert (log.steps, log.last_iteration) == (299, 499)
    assert "does not match, inside the window" in problems(log, "MALFORMED")[0]
    assert {"SKIPPED-STEPS", "TRUNCATED"} <= codes(log)


def test_broken_line_outside_the_window_is_ignored() -> None:
    """And without a window no line is inside one."""
    broken = ONE_GPU.replace(line_of(350), b"DLL 2020-12\n")
    for window in ((200, 300), None):
        assert "MALFORMED" not in codes(read(broken, window))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"(benchmark_hooks.py:59) iteration: 210", b"(benchmark_hooks.py:59) iteration: 2x10"),
        (
            b"(benchmark_hooks.py:60) total_ips: 3091.93",
            b"(benchmark_hooks.py:60) total_ips: x3091.93",
        ),
        (b":::NVLOGv0.2.3 resnet 1621936294.436434746", b":::NVLOGv0.2.3 resnet 16219:::NVLOG"),
        (b"total_ips: 3091.930967706173\n", b"epoch: 3\n"),
    ],
)
def test_broken_pair_of_nvlog_is_no_step(before: bytes, after: bytes) -> None:
    """A number without its rate, or a rate without its number, is named and left out."""
    assert before in NVLOG
    log = read(NVLOG.replace(before, after), (200, 490))
    assert (log.steps, log.rate and log.rate.count) == (29, 29)
    assert {"MALFORMED", "SKIPPED-STEPS", "TRUNCATED"} <= codes(log)


@pytest.mark.parametrize("word", [b"nan", b"tensor(nan)", b"None", b"-Infinity"])
def test_loss_that_is_not_finite_is_named_apart(word: bytes) -> None:
    """The rates stand."""
    lines = steps(range(21, 121)).replace(b"total_loss : 7.2", b"total_loss : " + word, 2)
    log = read(HEADER + lines + RESULT)
    assert log.rate == read(HEADER + steps(range(21, 121))).rate
    assert [(p.code, p.message) for p in log.problems] == [
        ("LOSS-NOT-FINITE", "line 6: iteration 21: the loss is not finite (the first of 2)")
    ]


def test_other_records_are_no_steps() -> None:
    """Lines of log.json, what an evaluation reports, and mere talk of throughput do not count."""
    other = (
        b"the mean throughput follows\n"
        b'DLLL {"timestamp": "1608118647.0", "step": [0, 1], "data": {"total_ips": 1.0}}\n'
        b"DLL 2020-12-16 11:37:27.000000 - () top1_accuracy : 0.76 eval_latency_avg : nan \n"
    )
    log = read(ONE_GPU.replace(line_of(300), other + line_of(300)))
    assert (log.steps, log.rate, log.problems) == (300, read(ONE_GPU).rate, ())
    assert log.reported == {"train_throughput": 408.32054537977405, "top1_accuracy": 0.76}


def test_digest_finds_the_same_evidence() -> None:
    """Over the window, or over all steps of a benchmark; other bytes, same steps."""
    for window in (None, (200, 300)):
        log = read(AMP, window)
        assert log.digest == read(AMP.replace(b"Num GPUs 8", b"Num GPUs 16"), window).digest != ""
        assert log.digest != read(ONE_GPU, window).digest


def test_progress_is_the_last_whole_step() -> None:
    """From a block that begins and ends in the middle of a line; in NVLOG, of a pair."""
    begin, end = ONE_GPU.index(line_of(210)) + 20, ONE_GPU.index(line_of(221)) + 50
    assert progress(TENSORFLOW)(ONE_GPU[begin:end]) == (220, 411.593404335573)
    assert progress(TENSORFLOW)(ONE_GPU) == (499, 407.3925856451023)
    assert progress(TENSORFLOW)(TAGGED) == (499, 22880.195274231482)
    assert progress(TENSORFLOW)(NVLOG) == (490, 3033.9167605575103)
    between = NVLOG[: NVLOG.index(b"(benchmark_hooks.py:60) total_ips: 3033.9167605575103")]
    assert progress(TENSORFLOW)(between) == (480, 3116.5634789675714)
    assert progress(TENSORFLOW)(b"iteration: 5\n" + line_of(207)[:50]) is None
    assert progress(TENSORFLOW)(line_of(207)[:60]) is None
    assert progress(TENSORFLOW)(re.sub(rb"ips : \S+", b"ips : nan", line_of(207))) is None
