"""What a log says twice: clock against rates, latencies against rates, its end against steps."""

import re
from collections.abc import Callable

import pytest

from orchestrator.logs import (
    DLLOGGER,
    ONEFLOW_BERT,
    ONEFLOW_GPT,
    ONEFLOW_RN50,
    TENSORFLOW,
    Format,
    reader,
)
from orchestrator.measuring import validity
from orchestrator.model.log import TrainingLog
from orchestrator.workloads import all_reduce, oneflow_bert, oneflow_rn50
from tests import SAMPLES
from tests.logs.said import codes, problems

PYTORCH = SAMPLES / "logs-pytorch-rn50"
UPSTREAM = SAMPLES / "real-upstream"
CLEAN = (PYTORCH / "paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt").read_bytes()
SHORT = (PYTORCH / "paddleperf_2022-06-16_8c650ff_pytorch_gpu8_amp_bs256.txt").read_bytes()
GPT = (SAMPLES / "logs-oneflow-gpt/of_gpt_4n8d_dp2_mp4_pp4_full_README.txt").read_bytes()
REDUCED = (SAMPLES / "logs-all-reduce/gloo_2ranks_64mib.log").read_bytes()
RN50 = (UPSTREAM / "oneflow_637bb9c_1n1g_rn50_b128_fp32_1.log").read_bytes()
BERT = (UPSTREAM / "oneflow_638d8f4_1n1g_bert_base_b160_amp_1.log").read_bytes()
OLD = (SAMPLES / "logs-oneflow-rn50/of_v0.1.8_1n1g_b128_no_timestamp.txt").read_bytes()
SLOW = (UPSTREAM / "pytorch_5cc03ca_1n2g_syntetic_r50_b1_amp_1.log").read_bytes()
SLOWER = (UPSTREAM / "oneflow_637bb9c_1n1g_bert_base_b96_fp32_1.log").read_bytes()
TRAIN = (UPSTREAM / "tensorflow_fed7ba99_1n1g_train_r50_b1_fp32_1.log").read_bytes()
GPU32 = (SAMPLES / "logs-tf-rn50/paddleperf_2020-12-19_45057af_tf_gpu32_amp_bs256.txt").read_bytes()
TENTH = (SAMPLES / "logs-tf-rn50/paddleperf_2021-05-27_37ea901_tf_gpu8_fp32_bs128.txt").read_bytes()


def read(form: Format, raw: bytes, window: tuple[int, int] | None = None) -> TrainingLog:
    return reader(form)([raw], window)


def timed(seconds: Callable[[int], float]) -> bytes:
    """A log of 8 ranks with batch 128, whose printed rates say 0.1 s a step."""
    header = "DLL 2020-12-16 11:37:00.5 - PARAMETER data : /data  arch : resnet50"
    header = f"{header}  batch_size : 128  prof : 100  amp : True  world_size : 8 \n"
    clock, lines = 0.4321, [header.replace(".5 ", ".500000 ")]
    for number in range(1, 100):
        clock += seconds(number)
        stamp = f"DLL 2020-12-16 11:{int(clock) // 60:02}:{clock % 60:09.6f}"
        rate = "train.loss : 7.1  train.total_ips : 10240.00 img/s"
        lines.append(f"{stamp} - Epoch: 0 Iteration: {number}  {rate}\n")
    return "".join(lines).encode()


def test_an_epoch_that_ends_before_the_promised_steps_counts() -> None:
    """63 of 99 steps with the program's Summary behind them; without its end they are cut."""
    log = read(DLLOGGER, SHORT, (20, 60))
    assert problems(log, "SHORT-RUN") == ["have 63 of 99 steps; the program ended there by itself"]
    assert codes(log) == {"SHORT-RUN"}
    assert validity.compute_throughput(log, 2048, "clock") == pytest.approx(5894.03, abs=0.01)
    cut = SHORT[: SHORT.index(b" - Summary: ")].rpartition(b"\n")[0] + b"\n"
    assert codes(read(DLLOGGER, cut, (20, 60))) == {"TRUNCATED"}
    again = SHORT.replace(b"Iteration: 30 ", b"Iteration: 31 ", 1)
    assert "TRUNCATED" in codes(read(DLLOGGER, again, (20, 60)))


@pytest.mark.parametrize(
    ("form", "raw", "window", "before"),
    [
        (ONEFLOW_RN50, RN50, (20, 80), rb"train: .*iter 100"),
        (TENSORFLOW, TENTH, (200, 400), rb":::.*iteration: 450\n"),
        (TENSORFLOW, TRAIN, (21, 30), rb"DLL .*\(0, 40\)"),
    ],
)
def test_the_end_of_every_program_that_has_one_proves_it(
    form: Format, raw: bytes, window: tuple[int, int], before: bytes
) -> None:
    """Steps are gone before the program's last words; without these the log is cut."""
    end = re.search(
        rb"Saving model to \S*epoch_0|^.*Ending Model Training|^.*Average total", raw, re.M
    )
    start = re.search(before, raw)
    assert end
    assert start
    log = read(form, raw[: start.start()] + raw[end.start() :], window)
    assert "SHORT-RUN" in codes(log)
    assert "TRUNCATED" not in codes(log)
    assert "TRUNCATED" in codes(read(form, raw[: start.start()], window))


@pytest.mark.parametrize(
    ("form", "raw", "window"),
    [
        (DLLOGGER, CLEAN[: CLEAN.index(b"Summary: lr") + 30], (20, 60)),
        (ONEFLOW_BERT, BERT.rstrip(b"\n"), (19, 119)),
        (all_reduce.FORMAT, REDUCED.rstrip(b"\n"), (6, 25)),
    ],
)
def test_a_lost_line_feed_behind_the_window_takes_no_number_away(
    form: Format, raw: bytes, window: tuple[int, int]
) -> None:
    """All that is measured stands before it; a cut record that is measured is TRUNCATED."""
    assert read(form, raw, window).problems == ()
    cut = raw.rstrip()[:-12] if form is not DLLOGGER else raw[: raw.rindex(b"99  train") + 40]
    assert "TRUNCATED" in codes(read(form, cut, window))


def test_a_headerless_log_keeps_its_number_without_the_last_line_feed() -> None:
    """Nothing promises more steps; the last rate may lack digits and is not taken."""
    log = read(TENSORFLOW, GPU32.rstrip(b"\n"), (250, 450))
    assert codes(log) == codes(read(TENSORFLOW, GPU32, (250, 450))) == {"HEADERLESS"}
    assert (log.last_iteration, log.end is None) == (498, False)
    assert "TRUNCATED" in codes(read(TENSORFLOW, GPU32.rstrip(b"\n"), (250, 499)))


def test_a_cut_clock_at_the_end_of_the_window_gives_no_number() -> None:
    """Nothing says how many digits of it are lost."""
    log = read(ONEFLOW_BERT, BERT.rstrip(b"\n"), (19, 139))
    assert "TRUNCATED" in codes(log)
    assert log.end is None


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
    (seen,) = problems(read(DLLOGGER, timed(took), (20, 60)), "CLOCK-JUMP")
    assert seen.startswith(lines)


def test_a_rate_of_few_digits_still_tells_a_moved_end() -> None:
    """0.27 images/s are 0.265 to 0.275: the 7.8 s up to step 21 agree with neither."""
    raw = SLOW.replace(b"00:49:38.328953", b"00:49:38.000000")
    assert problems(read(DLLOGGER, SLOW, (20, 44)), "CLOCK-JUMP") == []
    (seen,) = problems(read(DLLOGGER, raw, (20, 44)), "CLOCK-JUMP")
    assert "7.816 s by the clock" in seen


def test_bert_has_a_limit_over_the_window() -> None:
    """Each of its lines may be 70 ms late, and the window of 2.3 s agrees within 50 ms."""
    clock = re.compile(rb"\d{10}\.\d{4,}")
    start = float(clock.findall(SLOWER)[0])
    stretched = clock.sub(lambda it: b"%.6f" % (start + 1.01 * (float(it[0]) - start)), SLOWER)
    assert problems(read(ONEFLOW_BERT, SLOWER), "CLOCK-JUMP") == []
    assert len(problems(read(ONEFLOW_BERT, stretched), "CLOCK-JUMP")) == 1


def test_an_honest_clock_is_not_marked() -> None:
    """Steps within 2 %, as recorded ones are, and a line printed late, which the next makes up."""
    jitter = {30: 0.101, 31: 0.099, 40: 0.150, 41: 0.050}
    assert read(DLLOGGER, timed(lambda number: jitter.get(number, 0.1)), (20, 60)).problems == ()


@pytest.mark.parametrize(
    ("form", "raw", "line", "off"), [(ONEFLOW_RN50, RN50, 80, 0.3), (ONEFLOW_BERT, BERT, 79, 0.3)]
)
def test_a_clock_is_compared_with_means_since_the_line_before(
    form: Format, raw: bytes, line: int, off: float
) -> None:
    """OneFlow prints every twentieth iteration: the clock jumps by 0.3 s at one of them."""
    at = re.search(rb"(?:iter|step:) %d,.* (\d+\.\d+)\n" % line, raw)
    assert at
    later = raw[: at.start(1)] + re.sub(
        rb"\d{10}\.\d+", lambda it: b"%.6f" % (float(it[0]) + off), raw[at.start(1) :]
    )
    assert codes(read(form, raw)) == set()
    assert "CLOCK-JUMP" in codes(read(form, later))


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*")), ids=lambda path: path.name)
def test_no_recorded_log_is_accused(path: object) -> None:
    """Of none of the recordings does the clock jump within a whole window, nor crash a program."""
    raw = path.read_bytes() if path.is_file() else b""  # type: ignore[attr-defined] # a Path
    forms = (DLLOGGER, ONEFLOW_RN50, ONEFLOW_BERT, TENSORFLOW, ONEFLOW_GPT, all_reduce.FORMAT)
    for form in forms if re.search(rb"DLL |train: |step: |\| |busbw|NVLOG", raw) else ():
        for window in (None, (20, 60), (25, 40), (21, 120), (6, 25)):
            seen = codes(read(form, raw, window))
            assert not seen & {"CLOCK-JUMP", "CRASHED"}


def test_a_row_of_ten_times_the_latency_is_a_gap() -> None:
    """A format without a clock has gaps, too; its own rate agrees with it."""
    slow = GPT.replace(b"39.05294   | 13.11041", b"3.90529    | 131.10410")
    (seen,) = problems(read(ONEFLOW_GPT, slow), "GAP")
    assert seen == (
        "line 80: iteration 80, inside the window, took 131.104 s; the median step takes 13.125 s"
    )
    assert problems(read(ONEFLOW_GPT, slow, (10, 70)), "GAP") == []


def test_an_all_reduce_of_ten_times_the_time_is_a_gap() -> None:
    """As its microseconds say; outside the window it is none."""
    slow = REDUCED.replace(b"us=267152.5 busbw=0.2512", b"us=2671525.0 busbw=0.0251")
    assert (
        "iteration 24, inside the window, took 2.672 s"
        in problems(read(all_reduce.FORMAT, slow), "GAP")[0]
    )
    assert codes(read(all_reduce.FORMAT, slow, (6, 20))) == set()


def test_a_rate_of_a_tenth_is_a_gap_where_nothing_else_is_printed() -> None:
    """OneFlow of early 2020 has neither clock nor latency."""
    log = read(ONEFLOW_RN50, re.sub(rb"(iter 80,.*samples/s: )3(\d\d\.)", rb"\g<1>3\2", OLD))
    assert problems(log, "GAP") == []
    slow = re.sub(rb"(iter 80,.*samples/s: )\d\d\d\.", rb"\g<1>38.", OLD)
    (seen,) = problems(read(ONEFLOW_RN50, slow), "GAP")
    assert re.search(r"iteration 80, inside the window, has the rate 38\.\d+; the median is", seen)


@pytest.mark.parametrize("divisor", [8, 10, 1000])
def test_bandwidths_that_contradict_their_times_are_named(divisor: int) -> None:
    """busbw of nccl-tests is 2 (n - 1) / n of the buffer over the time."""
    wrong = re.sub(rb"busbw=([\d.]+)", lambda it: b"busbw=%.4f" % (float(it[1]) / divisor), REDUCED)
    assert "RATE-MISMATCH" in codes(read(all_reduce.FORMAT, wrong))
    one = REDUCED.replace(b"busbw=0.2512", b"busbw=0.2514")
    assert "iteration 24" in problems(read(all_reduce.FORMAT, one), "RATE-MISMATCH")[0]
    assert read(all_reduce.FORMAT, REDUCED).problems == ()


def test_a_latency_that_contradicts_its_rate_is_named() -> None:
    """Both are printed to five decimals; 0.02 % is no rounding."""
    wrong = GPT.replace(b"13.11041", b"13.11341")
    assert "iteration 80" in problems(read(ONEFLOW_GPT, wrong), "RATE-MISMATCH")[0]


@pytest.mark.parametrize("lost", ["nan", "-nan", "inf", "-inf", "NaN", "nan(ind)"])
@pytest.mark.parametrize(
    ("form", "raw", "number"),
    [
        (DLLOGGER, CLEAN, rb"(Iteration: 30  train\.loss : )[\d.]+"),
        (ONEFLOW_RN50, RN50, rb"(iter 40, loss: )[\d.]+"),
        (ONEFLOW_BERT, BERT, rb"(step: 39, total_loss: )[\d.]+"),
        (ONEFLOW_BERT, BERT, rb"(step: 39, .*nsp_loss: )[\d.]+"),
        (ONEFLOW_GPT, GPT, rb"(\| 80  .*\| )[\d.]+(?= +\|\n)"),
        (TENSORFLOW, TRAIN, rb"(\(0, 30\).*cross_entropy : )[\d.]+"),
        (TENSORFLOW, TRAIN, rb"(\(0, 30\).*l2_loss : )[\d.]+"),
        (TENSORFLOW, TRAIN, rb"(\(0, 30\).*total_loss : )[\d.]+"),
    ],
)
def test_a_lost_loss_of_every_kind_is_marked(
    form: Format, raw: bytes, number: bytes, lost: str
) -> None:
    """As Python, C libraries and Windows print it; the step counts all the same."""
    assert re.search(number, raw)
    log = read(form, re.sub(number, rb"\g<1>" + lost.encode(), raw, count=1))
    assert len(problems(log, "LOSS-NOT-FINITE")) == 1
    assert log.steps == read(form, raw).steps


@pytest.mark.parametrize("lost", [b"nan(ind)", b"NaN", b"Infinity"])
def test_a_lost_rate_of_every_kind_is_no_number(lost: bytes) -> None:
    """It is said, and ends no reading."""
    raw = re.sub(rb"(Iteration: 30 .*total_ips : )[\d.]+", rb"\g<1>" + lost, CLEAN)
    assert "NOT-FINITE" in codes(read(DLLOGGER, raw))


@pytest.mark.parametrize(
    "words",
    [
        b'Traceback (most recent call last):\n  File "main.py", line 5\nRuntimeError: NCCL error\n',
        b"[rank0]: Traceback (most recent call last):\n",
        b"Segmentation fault (core dumped)\n",
        b"RuntimeError: NCCL error in: /opt/pytorch/ProcessGroupNCCL.cpp:410\n",
        b"run.sh: line 34:   812 Killed    python main.py\n",
        b"subprocess.CalledProcessError: Command died with exit status 1\n",
        b"mpirun noticed that process rank 3 exited on signal 9 (Killed).\n",
        b"E1127 failed (exitcode: -9) local_rank: 0\n",
        b"RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0)\n",
        b"[1,3]<stderr>:RuntimeError: shape mismatch\n",
        b"[rank0]: torch.distributed.DistBackendError: timed out\n",
        b"KeyboardInterrupt\n",
    ],
)
@pytest.mark.parametrize(
    ("form", "raw", "end"),
    [
        (DLLOGGER, CLEAN, rb"\n(DLL [^\n]* - Epoch: 0  train)"),
        (TENSORFLOW, TRAIN, rb"\n(Ending Model Training)"),
        (ONEFLOW_RN50, RN50, rb"\n(Saving model to \S*epoch_0)"),
        (ONEFLOW_BERT, BERT, rb"\n()$"),
        (ONEFLOW_GPT, GPT, rb"\n()$"),
        (all_reduce.FORMAT, REDUCED, rb"\n()$"),
    ],
)
def test_a_crash_in_place_of_the_end_is_marked(
    form: Format, raw: bytes, end: bytes, words: bytes
) -> None:
    """All steps are there and count; before them, or behind the program's end, it is no crash."""
    at = re.search(end, raw)
    assert at
    window = (21, 30) if raw is TRAIN else None
    (seen,) = problems(read(form, raw[: at.start(1)] + words, window), "CRASHED")
    line = raw[: at.start(1)].count(b"\n") + 1
    assert seen.startswith(f"line {line}: ")
    assert problems(read(form, words + raw, window), "CRASHED") == []
    if at[1]:
        assert problems(read(form, raw + words, window), "CRASHED") == []


@pytest.mark.parametrize("form", [oneflow_rn50.WORKLOAD, oneflow_bert.WORKLOAD])
def test_oneflow_without_a_clock_is_measured_by_its_rates(form: object) -> None:
    """As the page of NO-CLOCK says: the rate printed at 20 is of the start, and is left out."""
    assert "rates" in form.rules  # type: ignore[attr-defined] # a Workload
    log = read(ONEFLOW_RN50, OLD)
    rates = [float(it) for it in re.findall(rb"samples/s: ([\d.]+)", OLD)][1:6]
    assert codes(log) == {"NO-CLOCK", "NO-HEADER"}
    value = validity.compute_throughput(log, None, "rates")
    assert value == pytest.approx(len(rates) / sum(1 / rate for rate in rates))


def test_rates_are_weighed_by_time() -> None:
    """Half of the steps at 100, half at 300 images/s: 150 of both, not 200."""
    raw = re.sub(
        rb"Iteration: (\d+)  (.*total_ips : )[\d.]+",
        lambda it: b"Iteration: %s  %s%d.00" % (it[1], it[2], 100 if int(it[1]) % 2 else 300),
        CLEAN,
    )
    log = read(DLLOGGER, raw, (21, 60))
    assert validity.compute_throughput(log, None, "rates") == pytest.approx(150)
    assert validity.compute_throughput(log, None, "arithmetic") == pytest.approx(200)


def test_copies_are_known_by_their_times_or_by_their_words() -> None:
    """One changed microsecond leaves losses and rates, changed losses leave the times."""
    log = read(DLLOGGER, CLEAN)
    moved = read(DLLOGGER, re.sub(rb"(:\d\d\.\d{5})\d( - Epoch: 0 Iteration)", rb"\g<1>7\2", CLEAN))
    other = read(DLLOGGER, re.sub(rb"train\.loss : \d\.", b"train.loss : 5.", CLEAN))
    assert moved.digest != log.digest
    assert moved.words == log.words
    assert other.digest == log.digest
    assert other.words != log.words
