"""The readers of OneFlow's ResNet-50 and BERT: recorded logs, and logs with one fault put in.

Over 400 lines: all tests doctor the same few logs, with the helpers that stand before them.
"""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from orchestrator.logs import ONEFLOW_BERT, ONEFLOW_RN50, progress, reader
from orchestrator.measuring import validity
from orchestrator.model.log import TrainingLog, global_batch_size
from orchestrator.model.problem import Problem
from tests import SAMPLES
from tests.logs.said import codes, problems

READ, READ_BERT = reader(ONEFLOW_RN50), reader(ONEFLOW_BERT)

RN50 = (SAMPLES / "logs-oneflow-rn50" / "of_2n8g_b128_with_timestamp_excerpt.txt").read_bytes()
OLD = (SAMPLES / "logs-oneflow-rn50" / "of_v0.1.8_1n1g_b128_no_timestamp.txt").read_bytes()
BERT = (SAMPLES / "logs-oneflow-bert" / "of_1n1g_b24_with_timestamp_excerpt.txt").read_bytes()

# A whole log of ResNet-50 as rn50_train.sh makes it with 2 nodes of 8 GPUs: the two recorded steps,
# and between them others at even distance. 2048 x 120 images are one epoch.
HEADER = b"""\
==================================================================
Running resnet50: num_gpu_per_node = 8, num_nodes = 2.
==================================================================
                                        dtype = float32
                             gpu_num_per_node = 8
                                    num_nodes = 2
                                     node_ips = ['10.11.0.2', '10.11.0.3']
                                        model = resnet50
                                     use_fp16 = None
                                      use_xla = None
                                 channel_last = None
                                   num_epochs = 1
                               model_load_dir = None
                        batch_size_per_device = 128
                    val_batch_size_per_device = 125
                     nccl_fusion_threshold_mb = 0
                                 fuse_bn_relu = False
                                  num_classes = 1000
                                 num_examples = 245760
                              label_smoothing = 0.1
                      loss_print_every_n_iter = 20
                               train_data_dir = /datasets/ImageNet/ofrecord/train
                          train_data_part_num = 256
                                    optimizer = sgd
                                learning_rate = 0.001
                                     momentum = 0.875
------------------------------------------------------------------
Time stamp: 2020-08-20-22:32:11
Loading data from /datasets/ImageNet/ofrecord/train
Loading synthetic data.
Saving model to ./output/snapshots/model_save-20200820223211/snapshot_initial_model.
Init model on demand.
"""
CLOCKS = {
    20: b"1597933942.9863544",
    40: b"1597933949.9103646",
    60: b"1597933956.8343748",
    80: b"1597933963.7583849",
    100: b"1597933970.6823952",
    120: b"1597933977.6064055",
}


def train(iteration: int, rate: bytes = b"5915.650", *, epoch: int = 0) -> bytes:
    """The line of one step of ResNet-50."""
    return (
        b"train: epoch %d, iter %d, loss: 7.087004, top_1: 0.000000, top_k: 0.000000,"
        b" samples/s: %s %s\n" % (epoch, iteration, rate, CLOCKS[iteration])
    )


def steps(*, epoch: int = 0) -> bytes:
    """The lines of a whole epoch of ResNet-50."""
    lines = (train(iteration, epoch=epoch) for iteration in list(CLOCKS)[1:])
    return train(20, b"3988.891", epoch=epoch) + b"".join(lines)


def bert(number: int, clock: bytes) -> bytes:
    """The line of one step of BERT."""
    return (
        b"step: %d, total_loss: 9.725, mlm_loss: 8.960, nsp_loss: 0.766, throughput: 139.896 %s\n"
        % (number, clock)
    )


END = b"Saving model to ./output/snapshots/model_save-20200820223211/snapshot_epoch_0.\n"
WHOLE = HEADER + steps() + END


def read(log: bytes, window: tuple[int, int] | None = None) -> TrainingLog:
    return READ([log], window)


def throughput(log: TrainingLog) -> float | Problem:
    return validity.compute_throughput(log, global_batch_size(log.config), log.rule)


def test_recorded_resnet_gives_the_reported_throughput() -> None:
    """The two lines behind the report's 5915.6 samples/s give 5915.65 (facts: 204800 / 34.62 s)."""
    log = read(RN50)
    assert throughput(log) == float(2048 * 100 / Fraction("34.6200511"))
    assert throughput(log) == pytest.approx(5915.65, abs=0.005)
    assert (log.unit, log.runs, log.steps, log.window) == ("images/s", 1, 2, (20, 120))
    assert (log.first_iteration, log.last_iteration) == (20, 120)
    assert (log.rule, log.problems) == ("clock", ())


def test_a_clock_of_whole_seconds_is_marked() -> None:
    """What was rounded before it was printed is good to a second."""
    log = read(re.sub(rb"(159793\d{4})\.\d+$", rb"\1.0", RN50, flags=re.MULTILINE))
    assert log.end
    assert log.end.clock_ns == 35_000_000_000
    assert problems(log, "COARSE-CLOCK") == [
        "line 5: the clock shows whole seconds; the 35 s between the ends of the window are"
        " good to 1 s"
    ]


def test_recorded_resnet_says_where_its_evidence_is() -> None:
    """Both ends of the window carry iteration, time and line."""
    log = read(RN50)
    assert log.start
    assert log.end
    assert (log.start.iteration, log.start.clock_ns, log.start.line) == (20, 0, 5)
    assert (log.end.iteration, log.end.clock_ns, log.end.line) == (120, 34_620_051_100, 6)
    assert log.window_rate == pytest.approx(5917.583)
    assert log.window_mean == pytest.approx((3988.891 + 5917.583) / 2)
    assert log.rate
    assert log.rate.count == 2
    assert log.rate.mean == pytest.approx(4953.237)


def test_recorded_resnet_says_its_case() -> None:
    """The excerpt has four arguments; what it does not say of precision is absent."""
    assert read(RN50).config == {
        "model": "resnet50",
        "micro_batch_size": 128,
        "gpus_per_node": 8,
        "nodes": 2,
        "world_size": 16,
    }


def test_recorded_bert_gives_its_throughput() -> None:
    """24 sentences x 100 steps in 17.1185 s are 140.20 sentences/s."""
    log = READ_BERT([BERT], None)
    assert throughput(log) == pytest.approx(140.20, abs=0.005)
    assert (log.unit, log.runs, log.steps, log.window) == ("sentences/s", 1, 2, (19, 119))
    assert log.config == {
        "micro_batch_size": 24,
        "gpus_per_node": 1,
        "nodes": 1,
        "world_size": 1,
    }
    assert log.problems == ()


def test_log_of_an_old_version_has_no_throughput_but_rates() -> None:
    """Before 21 August 2020 no line has a time: NO-CLOCK, and the ten printed rates summed up."""
    log = read(OLD)
    assert codes(log) == {"NO-CLOCK", "NO-HEADER"}
    assert "iteration 20 without the time" in problems(log, "NO-CLOCK")[0]
    assert (log.start, log.end, log.steps, log.last_iteration) == (None, None, 10, 200)
    assert log.rate
    assert log.rate.count == 10
    assert log.rate.mean == pytest.approx(375.3949)
    assert log.rate.median == pytest.approx(384.8155)
    assert isinstance(throughput(log), Problem)
    lines = replace(read(OLD, (20, 120)), rule="rates").evidence
    assert lines is not None
    first, last = (OLD.split(b"\n")[number - 1] for number in lines)
    assert b"iter 20," in first
    assert b"iter 120," in last


def test_whole_header_is_read_by_name() -> None:
    """A header's words come back under the project's names; what is None is absent."""
    log = read(WHOLE)
    assert log.config == {
        "model": "resnet50",
        "nodes": 2,
        "gpus_per_node": 8,
        "world_size": 16,
        "micro_batch_size": 128,
        "precision": "fp32",
        "xla": False,
        "iterations": 120,
        "data": "ofrecord",
        "num_epochs": 1,
        "num_classes": 1000,
        "num_examples": 245760,
        "nccl_fusion_threshold_mb": 0,
        "fuse_bn_relu": False,
        "label_smoothing": 0.1,
        "print_every": 20,
        "data_part_num": 256,
        "optimizer": "sgd",
        "learning_rate": 0.001,
        "momentum": 0.875,
    }
    assert log.problems == ()
    assert throughput(log) == pytest.approx(5915.65, abs=0.005)


@pytest.mark.parametrize(
    ("before", "after", "precision"),
    [
        (b"use_fp16 = None", b"use_fp16 = True", "amp"),
        (b"use_fp16 = None", b"use_fp16 = False", "fp32"),
        (b"use_fp16 = None\n", b"\n", "fp32"),
        (b"dtype = float32\n", b"\n", "fp32"),
        (b"dtype = float32", b"dtype = float16", None),
        (b"use_fp16 = None", b"use_fp16 = maybe", "fp32"),
    ],
)
def test_precision_follows_the_switches(before: bytes, after: bytes, precision: str | None) -> None:
    """An unset switch is off; what the arguments leave open is absent, not guessed."""
    assert read(WHOLE.replace(before, after)).config.get("precision") == precision


def test_precision_is_absent_where_nothing_tells_it() -> None:
    """A header that names neither float16 nor a type says nothing of precision."""
    log = read(WHOLE.replace(b"dtype = float32\n", b"\n").replace(b"use_fp16 = None\n", b"\n"))
    assert "precision" not in log.config


@pytest.mark.parametrize(
    ("before", "after", "data"),
    [
        (
            b"train_data_dir = /datasets/ImageNet/ofrecord/train",
            b"train_data_dir = None",
            "synthetic",
        ),
        (b"train_data_dir = /datasets/ImageNet/ofrecord/train\n", b"\n", None),
    ],
)
def test_kind_of_data_is_that_of_training(before: bytes, after: bytes, data: str | None) -> None:
    """Both functions of the program say what they load; the argument says which is trained on."""
    config = read(WHOLE.replace(before, after)).config
    assert config.get("data") == data
    assert ("data_part_num" in config) is (data is None)


def test_log_that_loads_nothing_but_synthetic_data_says_so() -> None:
    """Without an argument, lines of one kind tell the kind of data."""
    log = read(b"Loading synthetic data.\nLoading synthetic data.\n" + RN50)
    assert log.config["data"] == "synthetic"


def test_arguments_of_bert_are_read_by_name() -> None:
    """iter_num is the number of iterations; accumulation counts into the global batch."""
    header = (
        b"use_fp16 = True\nuse_xla = True\niter_num = 140\nseq_length = 128\n"
        b"num_hidden_layers = 12\nnum_accumulation_steps = 2\nloss_print_every_n_iter = 20\n"
        b"attention_probs_dropout_prob = 0.1\nsave_last_snapshot = False\n"
    )
    config = READ_BERT([header + BERT], None).config
    assert config["iterations"] == 140
    assert config["accumulation_steps"] == 2
    assert (config["precision"], config["xla"], config["seq_length"]) == ("amp", True, 128)
    assert (config["num_hidden_layers"], config["save_last_snapshot"]) == (12, False)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        (b"batch_size_per_device", b"0"),
        (b"batch_size_per_device", b"1_28"),
        (b"batch_size_per_device", "१२८".encode()),
        (b"batch_size_per_device", b"\xff8"),
        (b"gpu_num_per_node", b"-8"),
        (b"num_nodes", b"2.0"),
        (b"nccl_fusion_threshold_mb", b"x"),
        (b"momentum", b"nan"),
        (b"fuse_bn_relu", b"1"),
    ],
)
def test_argument_that_does_not_read_is_absent(argument: bytes, value: bytes) -> None:
    """A value that is not of its kind in ASCII is named, and left out with what follows from it."""
    line = next(line for line in HEADER.split(b"\n") if line.strip().startswith(argument + b" ="))
    log = read(WHOLE.replace(line, b"%s = %s" % (argument, value)))
    assert log.runs == 1
    assert len(problems(log, "MALFORMED")) == 1
    assert f"header: {argument.decode()} : " in problems(log, "MALFORMED")[0]
    assert len(log.config) < len(read(WHOLE).config)


@pytest.mark.parametrize(
    ("log", "window"),
    [(WHOLE, (25, 120)), (WHOLE, (20, 110)), (WHOLE, (20, 140)), (RN50, (40, 120))],
)
def test_window_off_the_printed_steps_names_the_iteration(
    log: bytes, window: tuple[int, int]
) -> None:
    """A window that the log cannot answer is an error that says which iteration it needs."""
    said = read(log, window)
    missing = next(end for end in window if end not in (20, 120))
    found = throughput(said)
    assert isinstance(found, Problem)
    assert f"needs iteration {missing}; the log has" in found.message
    assert (said.window, said.window_rate, said.window_mean) == (window, None, None)


def test_window_that_is_asked_for_is_measured() -> None:
    """2048 images x 40 iterations in 13.8480203 s."""
    log = read(WHOLE, (40, 80))
    assert throughput(log) == pytest.approx(2048 * 40 / 13.8480203, rel=1e-8)
    assert log.window_mean == pytest.approx(5915.65)


def test_log_that_ends_early_gives_its_number_and_a_problem() -> None:
    """The window 20 to 80 is there, the iterations that the images are enough for are not."""
    log = read(HEADER + steps()[: steps().index(train(100))], (20, 80))
    assert codes(log) == {"TRUNCATED"}
    assert "ends at iteration 80 of epoch 0; its header promises 120" in log.problems[0].message
    assert throughput(log) == pytest.approx(5915.65, abs=0.01)


@pytest.mark.parametrize("images", [b"245761", b"247807", b"285000", b"244000"])
def test_batch_that_no_images_fill_is_no_promise(images: bytes) -> None:
    """Whether it is trained differs between versions: neither too few steps nor too many."""
    log = read(WHOLE.replace(b"245760", images))
    assert "TRUNCATED" not in codes(log) or images == b"285000"
    assert "iterations" not in log.config
    assert "MIXED-CONFIG" not in codes(log)


def test_log_that_goes_on_after_its_promise_is_not_of_its_header() -> None:
    """A header that promises 60 iterations is not the header of 120."""
    log = read(WHOLE.replace(b"num_examples = 245760", b"num_examples = 122880"))
    assert "promises 60 iterations" in problems(log, "MIXED-CONFIG")[0]


def test_bert_that_ends_early_is_named() -> None:
    """Of 140 iterations the last that is printed is 139; 119 is too early."""
    header = b"iter_num = 140\nloss_print_every_n_iter = 20\nuse_fp16 = None\n"
    early = READ_BERT([header + BERT], None)
    assert "ends at iteration 119; its header promises 140" in (problems(early, "TRUNCATED")[0])
    whole = READ_BERT([header + BERT + bert(139, b"1598056540.4266925")], None)
    assert problems(whole, "TRUNCATED") == []
    assert "SKIPPED-STEPS" in codes(whole)


def test_every_cut_of_a_log_gives_its_number_or_none() -> None:
    """Wherever a log is cut, it never gives another throughput, nor one without a problem."""
    needed = len(HEADER + steps())
    for size in range(len(HEADER), len(WHOLE)):
        log = read(WHOLE[:size])
        if size < needed:
            assert log.end is None
            assert {"TRUNCATED", "NO-STEPS"} & codes(log)
        else:
            assert throughput(log) == pytest.approx(5915.65, abs=0.005)
            assert log.problems == ()


def test_last_line_of_another_kind_may_lack_its_line_feed() -> None:
    """Only a record that is cut is missed; the start of another line is nothing."""
    log = read(WHOLE + b"Loading data from /datasets")
    assert (log.steps, log.problems) == (6, ())


def test_last_record_without_a_line_feed_does_not_count() -> None:
    """A time that lost its last digits would still look like one."""
    log = read(WHOLE.removesuffix(END).removesuffix(b"\n"))
    assert (log.steps, log.end) == (5, None)
    assert "in the middle of a record, in line 38" in problems(log, "TRUNCATED")[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\n", b"\r\n"),
        (b"\ntrain: ", b"\n[1,0]<stdout>:train: "),
        (b"\ntrain: ", b"\nThu Dec 17 18:27:52 2020[1,0]<stdout>:    train: "),
        (b"\n    ", b"\n[1,0]<stdout>:  "),
        (b"\ntrain: ", b"\n\x1b[32m 5 %\x1b[0m\r\x1b[Ktrain: "),
        (b"\ntrain: ", b"\nroot@VS002:~/oneflow_temp# ls\n\x00\xff\ntrain: "),
        (
            b"\nSaving",
            b"\nvalidation: epoch 0, iter 100, top_1: 0.074620, top_k: 0.194120,"
            b" samples/s: 2014.683 1597933990.0\nSaving",
        ),
        (b"\nSaving", b"\ndata_dir = 5\nload average = \npretrain: epoch 7, iter 3\nSaving"),
    ],
)
def test_what_stands_around_the_records_makes_no_difference(before: bytes, after: bytes) -> None:
    """Line ends, mpirun's tags, prompts, progress bars and validation change no number."""
    log, clean = read(WHOLE.replace(before, after)), read(WHOLE)
    assert (log.problems, log.config, log.steps) == ((), clean.config, 6)
    assert throughput(log) == throughput(clean)
    assert (log.rate, log.digest) == (clean.rate, clean.digest)


def test_iterations_of_the_next_epoch_are_no_second_run() -> None:
    """The window means the first epoch, though the second one has the same iterations."""
    later = steps(epoch=1).replace(b" 15979339", b" 15979349")
    log = read(HEADER.replace(b"num_epochs = 1", b"num_epochs = 2") + steps() + later)
    assert (log.runs, log.steps, log.problems) == (1, 12, ())
    assert log.end
    assert log.end.line == 38
    assert throughput(log) == pytest.approx(5915.65, abs=0.005)


def test_epoch_that_is_missing_is_named() -> None:
    """A header that promises two epochs is not kept by one."""
    log = read(WHOLE.replace(b"num_epochs = 1", b"num_epochs = 2"))
    assert "in each of 2 epochs" in problems(log, "TRUNCATED")[0]


@pytest.mark.parametrize(
    ("second", "seen"),
    [
        (steps(), "iteration 20 of epoch 0 after 120 of epoch 0"),
        (WHOLE, "line 43: another header"),
        (b"num_nodes = 2\n", "another header"),
    ],
)
def test_several_runs_in_one_log_give_no_throughput(second: bytes, seen: str) -> None:
    """Steps that go back or a second header are another run: counted, and nothing is measured."""
    log = read(WHOLE + second)
    assert log.runs == 2
    assert seen in problems(log, "SEVERAL-RUNS")[0]
    assert (log.start, log.end, log.window_rate, log.window_mean, log.digest) == (None,) * 4 + ("",)


def test_steps_and_rates_of_several_runs_are_the_last_ones() -> None:
    """A crashed run before a whole one does not count into its steps."""
    log = read(HEADER + train(20) + WHOLE)
    assert (log.runs, log.steps, log.config["nodes"]) == (2, 6, 2)
    assert log.rate
    assert log.rate.count == 6


@pytest.mark.parametrize("iteration", [20, 120])
def test_step_with_two_times_is_no_end_of_a_window(iteration: int) -> None:
    """Of two different records of one step nobody knows which is right."""
    line = WHOLE.split(b"iter %d," % iteration)[1].split(b"\n")[0]
    step = b"train: epoch 0, iter %d,%s\n" % (iteration, line)
    log = read(WHOLE.replace(step, step + step.replace(b" 15979339", b" 15979329")))
    assert None in (log.start, log.end)
    assert "DUP-STEPS" in codes(log)


def test_step_of_a_later_epoch_that_is_there_twice_leaves_the_window_alone() -> None:
    """Only the first epoch has a window."""
    twice = train(120, epoch=1).replace(b" 15979339", b" 15979359")
    log = read(
        HEADER.replace(b"num_epochs = 1", b"num_epochs = 2") + steps() + steps(epoch=1) + twice
    )
    assert "DUP-STEPS" in codes(log)
    assert throughput(log) == pytest.approx(5915.65, abs=0.005)


def test_iterations_that_take_far_too_long_are_marked() -> None:
    """20 iterations that take 69 s among others that take 7 s are named with their line."""
    slow = {100: b"1597934032.6823952", 120: b"1597934039.6064055"}
    log = WHOLE
    for iteration, clock in slow.items():
        log = log.replace(CLOCKS[iteration], clock)
    said = problems(read(log), "GAP")
    assert said == [
        "line 37: iteration 100, inside the window, took 3.446 s; the median step takes 0.346 s"
    ]


def test_line_without_its_time_is_no_end_of_a_window() -> None:
    """Where one record lost its time, the others keep theirs."""
    log = read(WHOLE.replace(b" " + CLOCKS[120], b""))
    assert problems(log, "NO-CLOCK") == ["line 38: iteration 120 without the time of its print"]
    assert log.start
    assert (log.end, log.steps) == (None, 6)


@pytest.mark.parametrize(
    "broken",
    [
        b"train: epoch 0, iter 80, loss: 7.08\n",
        b"7.087004, top_1: 0.000000, top_k: 0.000000, samples/s: 5915.650 1597933963.7583849\n",
        b"train: epoch 0, iter 80, loss: 7.087004, samples/s: 5915.6 1597933963.7583849\n",
        b"train: epoch 0, iter 80, loss: 7.087004, samples/s: 5915.650 15979\n",
        b"train: epoch 0, iter 80, loss: 7.087004, samples/s: 5915.650 1597933963.7 x\n",
        train(80).rstrip() + train(80),
        "train: epoch 0, iter ८०, loss: 7.087004, samples/s: 5915.650 1597933963.75\n".encode(),
    ],
)
def test_broken_record_inside_the_window_is_a_problem(broken: bytes) -> None:
    """What begins or ends as a record and does not match is named, with its line."""
    log = read(WHOLE.replace(train(80), broken))
    assert "line 36 begins or ends as a record" in problems(log, "MALFORMED")[0]
    assert log.steps == 5
    assert "SKIPPED-STEPS" in codes(log)


def test_broken_records_outside_the_window_are_ignored() -> None:
    """Before the first iteration of the window and after its last one nothing is lost."""
    log = read(HEADER + b"train: epoch\ntrain: x\n" + steps() + b"train: epoch 1, iter\n")
    assert log.problems == ()


def test_broken_record_at_the_end_of_an_unfinished_window_is_a_problem() -> None:
    """It could have been the window's last iteration."""
    log = read(HEADER + steps().removesuffix(train(120)) + b"train: epoch 0, iter 120, lo\nx\n")
    assert "line 38" in problems(log, "MALFORMED")[0]


@pytest.mark.parametrize(
    ("log", "seen"),
    [
        (WHOLE.replace(train(80), b""), "line 36: iteration 100 after 60"),
        (WHOLE.replace(train(20, b"3988.891"), b""), "the log begins at iteration 40; needed 20"),
        (WHOLE.replace(b"every_n_iter = 20", b"every_n_iter = 40"), "begins at iteration 20"),
    ],
)
def test_steps_that_are_left_out_are_named(log: bytes, seen: str) -> None:
    """A header that promises a line every 20 iterations is held to it."""
    assert any(seen in problem for problem in problems(read(log), "SKIPPED-STEPS"))


def test_steps_that_are_left_out_show_without_a_header() -> None:
    """Where nothing is promised, the usual distance of the steps tells."""
    log = read(steps().replace(train(80), b""))
    assert problems(log, "SKIPPED-STEPS") == ["line 4: iteration 100 after 60"]
    assert "NO-HEADER" in codes(log)


def test_copies_of_one_evidence_have_one_digest() -> None:
    """Another header or another indentation does not make other evidence; another step does."""
    copy = read(WHOLE.replace(b"num_nodes = 2", b"num_nodes = 4").replace(b"\ntrain", b"\n  train"))
    assert copy.digest == read(WHOLE).digest != ""
    assert read(WHOLE.replace(CLOCKS[60], b"1597933956.8343749")).digest != copy.digest


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (WHOLE, (120, 5915.65)),
        (steps()[5:-30], (100, 5915.65)),
        (
            WHOLE + b"validation: epoch 0, iter 100, top_1: 0.07, samples/s: 2014.683\n",
            (120, 5915.65),
        ),
        (steps().replace(b"\n", b"\r"), (120, 5915.65)),
        (train(20) + train(40, b"nan"), None),
        (OLD, (200, 384.517)),
        (HEADER, None),
        (b"", None),
        (b"\n", None),
    ],
)
def test_progress_is_the_last_whole_step(block: bytes, expected: tuple[int, float] | None) -> None:
    """A cut line or one without a finite rate is no progress; the one before it is."""
    assert progress(ONEFLOW_RN50)(block) == expected


def test_progress_of_bert_counts_from_0() -> None:
    """The recorded lines end at step 119 with 139.896 sentences/s."""
    assert progress(ONEFLOW_BERT)(BERT) == (119, 139.896)
    assert progress(ONEFLOW_BERT)(RN50) is None
