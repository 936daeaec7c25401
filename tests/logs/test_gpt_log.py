"""The reader of OneFlow's GPT: the recorded log, and that log with one fault put in.

Over 400 lines: all tests doctor the same few logs, with the helpers that stand before them.
"""

import pytest

import tests
from orchestrator.logs import ONEFLOW_GPT, progress, reader
from orchestrator.measuring import validity
from orchestrator.model.log import TrainingLog, global_batch_size
from orchestrator.model.problem import Problem
from tests.logs.said import codes, problems

READ = reader(ONEFLOW_GPT)

SAMPLES = tests.SAMPLES / "logs-oneflow-gpt"
WHOLE = (SAMPLES / "of_gpt_4n8d_dp2_mp4_pp4_full_README.txt").read_bytes()
TITLE = b"| batches  | micro_batches   | samples         | throughput | latency    | loss       |\n"
HEADER = WHOLE[: WHOLE.index(b"utilization.gpu")]
TABLE = WHOLE[WHOLE.index(TITLE) :]
LATENCIES = {  # of the recorded rows
    10: "14.26962",
    20: "13.12142",
    30: "13.12469",
    40: "13.12390",
    50: "13.12932",
    60: "13.12500",
    70: "13.11330",
    80: "13.11041",
    90: "13.11229",
    100: "13.12494",
}

# DLPerf's extract_gpt_result.py shows this of a log with a row each step; nvidia-smi, asked at step
# 10, prints inside the table.
EVERY_STEP = b"""\
    num_nodes ....................................... 1
    num_gpus_per_node ............................... 8
    data_parallel_size .............................. 1
    tensor_model_parallel_size ...................... 8
    pipeline_model_parallel_size .................... 1
    global_batch_size ............................... 32
    micro_batch_size ................................ 32
    num_accumulation_steps .......................... 1
    num_layers ...................................... 16
    hidden_size ..................................... 2304
    num_attention_heads ............................. 16
    seq_length ...................................... 2048
    log_interval .................................... 1
    Training...
    | step     | micro_batches   | samples         | throughput | latency    | loss       |
    | -------- | --------------- | --------------- | ---------- | ---------- | ---------- |
    | 1        | 1               | 32              | 3.65895    | 8.74569    | 11.27187   |
    | 2        | 2               | 64              | 5.92391    | 5.40183    | 22.54614   |
    | 3        | 3               | 96              | 33.08657   | 0.96716    | 33.82825   |
    | 4        | 4               | 128             | 32.91274   | 0.97227    | 45.10602   |
    | 5        | 5               | 160             | 33.05942   | 0.96795    | 56.36795   |
    | 6        | 6               | 192             | 32.97452   | 0.97045    | 67.64371   |
    | 7        | 7               | 224             | 32.75634   | 0.97691    | 78.92993   |
    | 8        | 8               | 256             | 33.13264   | 0.96581    | 90.20315   |
    | 9        | 9               | 288             | 33.01570   | 0.96924    | 101.47802  |
    utilization.gpu [%], memory.used [MiB]
    100 %, 13858 MiB
    100 %, 13994 MiB
    93 %, 13994 MiB
    100 %, 14102 MiB
    100 %, 13850 MiB
"""


def row(step: int) -> bytes:
    """The recorded line of a row."""
    return next(line for line in TABLE.splitlines(True) if line.startswith(b"| %d " % step))


def without(*steps: int) -> bytes:
    """The recorded log without some of its rows."""
    log = WHOLE
    for step in steps:
        log = log.replace(row(step), b"")
    return log


def argument(name: str, value: str) -> bytes:
    """The recorded log with another value of an argument."""
    lines = [
        f"  {name} ...... {value}".encode() if line.startswith(f"  {name} .".encode()) else line
        for line in WHOLE.split(b"\n")
    ]
    assert lines != WHOLE.split(b"\n")
    return b"\n".join(lines)


def read(log: bytes, window: tuple[int, int] | None = None) -> TrainingLog:
    return READ([log], window)


def throughput(log: TrainingLog) -> float | Problem:
    return validity.compute_throughput(log, global_batch_size(log.config), log.rule)


def test_recorded_log_gives_the_published_latency() -> None:
    """The mean of the last five rows is the report's 13117.188 ms, to its last digit."""
    log = read(WHOLE)
    assert log.latency_s == 13.117188
    assert (log.window, log.rule, log.unit) == ((60, 100), "latency", "samples/s")
    assert throughput(log) == pytest.approx(512 / 13.117188)
    assert throughput(log) == pytest.approx(39.03, abs=0.005)
    assert log.problems == ()


def test_recorded_log_gives_the_published_memory() -> None:
    """The largest of the eight GPUs of the node uses 11958 MiB."""
    assert read(WHOLE).memory_mib == 11958


def test_recorded_log_sums_up_its_rates() -> None:
    """All ten rows count, the window's mean only five; neither line has a time."""
    log = read(WHOLE)
    assert (log.runs, log.steps, log.first_iteration, log.last_iteration) == (1, 10, 10, 100)
    assert (log.start, log.end) == (None, None)
    assert log.rate
    assert log.rate.count == 10
    assert log.rate.mean == pytest.approx(38.708435)
    assert log.rate.median == pytest.approx(39.01162)
    assert log.window_mean == pytest.approx(39.032768)
    assert log.window_rate == pytest.approx(39.03276, abs=1e-5)


def test_arguments_are_read_by_name() -> None:
    """What the block says comes back under the project's names."""
    assert read(WHOLE).config == {
        "nodes": 4,
        "gpus_per_node": 8,
        "world_size": 32,
        "micro_batch_size": 8,
        "global_batch_size": 512,
        "accumulation_steps": 32,
        "data_parallel": 2,
        "tensor_parallel": 4,
        "pipeline_parallel": 4,
        "iterations": 100,
        "precision": "amp",
        "loss_scale": "dynamic",
        "initial_loss_scale": 1048576.0,
        "num_layers": 24,
        "hidden_size": 2304,
        "num_attention_heads": 24,
        "seq_length": 2048,
        "log_interval": 10,
        "vocab_size": 50257,
        "padded_vocab_size": 50688,
        "make_vocab_size_divisible_by": 128,
        "checkpoint_activations": True,
        "multihead_attention_fusion": True,
        "rdma": True,
    }


@pytest.mark.parametrize(
    ("name", "value", "precision", "loss_scale"),
    [
        ("fp16", "False", "fp32", None),
        ("fp16", "None", "fp32", None),
        ("fp16", "perhaps", None, None),
        ("loss_scale", "1024.0", "amp", 1024.0),
    ],
)
def test_precision_and_loss_scale_follow_the_switches(
    name: str, value: str, precision: str | None, loss_scale: float | None
) -> None:
    """A loss scale that is unset is dynamic with AMP, and none without it."""
    config = read(argument(name, value)).config
    assert (config.get("precision"), config.get("loss_scale")) == (precision, loss_scale)


def test_table_inside_which_nvidia_smi_prints_is_one_table() -> None:
    """A row each step, another head, and the use of the GPUs after the rows."""
    log = read(EVERY_STEP)
    assert (log.steps, log.window, log.memory_mib) == (9, (5, 9), 14102)
    # (0.96795 + 0.97045 + 0.97691 + 0.96581 + 0.96924) / 5
    assert log.latency_s == 0.970072
    assert log.problems == ()
    assert "precision" not in log.config


def test_title_that_is_printed_again_and_memory_between_rows_change_nothing() -> None:
    """The block stands anywhere, and after it the table has its title once more."""
    block = WHOLE[WHOLE.index(b"utilization") : WHOLE.index(TITLE)]
    title = TABLE[: TABLE.index(row(10))]
    moved = HEADER + title + row(10) + block + title + TABLE[TABLE.index(row(20)) :]
    log, clean = read(moved), read(WHOLE)
    assert (log.problems, log.latency_s, log.memory_mib) == ((), 13.117188, 11958)
    assert (log.digest, log.config, log.rate) == (clean.digest, clean.config, clean.rate)


@pytest.mark.parametrize(
    ("window", "used"),
    [
        ((60, 100), (60, 100)),
        ((20, 40), (20, 40)),
        ((15, 45), (20, 40)),
        ((1, 19), (10, 10)),
        ((100, 100), (100, 100)),
    ],
)
def test_window_means_the_rows_inside(window: tuple[int, int], used: tuple[int, int]) -> None:
    """The rows whose step lies in the window, ends included, say the latency."""
    log = read(WHOLE, window)
    inside = [float(text) for step, text in LATENCIES.items() if used[0] <= step <= used[1]]
    assert log.window == used
    assert log.latency_s == pytest.approx(sum(inside) / len(inside), abs=1e-9)
    assert log.problems == ()


@pytest.mark.parametrize(
    ("log", "window"),
    [
        (WHOLE, (60, 105)),
        (WHOLE, (61, 69)),
        (WHOLE, (1, 9)),
        (WHOLE, (110, 120)),
        (without(80), (60, 100)),
        (without(60), (60, 100)),
        (without(100), (60, 100)),
        (without(10, 20, 30), (20, 100)),
    ],
)
def test_window_that_the_table_does_not_fill_gives_none(
    log: bytes, window: tuple[int, int]
) -> None:
    """Where a row of the window is missing there is no latency, and one problem that says so."""
    said = read(log, window)
    assert (said.latency_s, said.window_rate, said.window_mean, said.digest) == (None,) * 3 + ("",)
    assert said.window == window
    assert f"needed the window {window[0]}-{window[1]}, one every" in problems(said, "WINDOW")[0]
    assert isinstance(throughput(said), Problem)


def test_fewer_than_five_rows_give_none() -> None:
    """Four rows are no result; they are named, and nothing is made of them."""
    log = read(without(50, 60, 70, 80, 90, 100))
    assert (log.latency_s, log.window, log.steps) == (None, None, 4)
    assert problems(log, "WINDOW") == [
        "the log has 4 records, from 10 to 40; needed its last 5, one every 10 iterations"
    ]
    assert isinstance(throughput(log), Problem)


def test_last_five_rows_with_one_missing_give_none() -> None:
    """The six last rows without one are not the five last ones."""
    log = read(without(80))
    assert (log.latency_s, log.window) == (None, None)
    assert codes(log) == {"SKIPPED-STEPS", "WINDOW"}


def test_five_rows_without_arguments_are_enough_for_a_latency() -> None:
    """How far the rows are apart shows in the table; the batch size does not."""
    log = read(TABLE)
    assert (log.latency_s, log.config) == (13.117188, {})
    assert codes(log) == {"NO-HEADER"}
    assert validity.compute_throughput(log, 512, "latency") == pytest.approx(39.03, abs=0.005)


def test_single_row_without_arguments_can_be_a_window() -> None:
    """A lone row at step 10 stands for the ten steps up to it."""
    assert read(TITLE + row(10), (1, 10)).latency_s == 14.26962


def test_log_that_ends_early_gives_its_number_and_a_problem() -> None:
    """Rows up to 90 of 100: five of them are there, the run was not whole."""
    log = read(without(100))
    assert (log.window, codes(log)) == ((50, 90), {"TRUNCATED"})
    assert "ends at iteration 90; its header promises 100" in log.problems[0].message


def test_last_step_that_no_row_is_due_for_is_no_cut() -> None:
    """Of 109 steps with a row every ten the last row is that of step 100."""
    assert read(argument("train_iters", "109")).problems == ()


def test_table_that_goes_on_after_its_promise_is_not_of_its_arguments() -> None:
    """Arguments that promise 50 steps are not those of 100."""
    assert "promises 50" in problems(read(argument("train_iters", "50")), "MIXED-CONFIG")[0]


def test_run_that_went_on_from_a_checkpoint_is_named() -> None:
    """A table that begins at step 30 has lost its beginning, or resumed another run."""
    log = read(without(10, 20))
    assert problems(log, "SKIPPED-STEPS") == ["the log begins at iteration 30; needed 10"]


def test_every_cut_of_a_log_gives_a_problem() -> None:
    """Wherever the log is cut before the last latency, it says that something is missing."""
    end = WHOLE.rindex(b"13.12494") + len(b"13.12494   |")
    for size in range(WHOLE.index(TITLE), end):
        log = read(WHOLE[:size])
        assert {"TRUNCATED", "NO-STEPS"} & codes(log)
        assert log.window != (60, 100)


@pytest.mark.parametrize("lost", [b"\n", b" 6.82232    |\n"])
def test_last_row_counts_without_a_line_feed(lost: bytes) -> None:
    """The bar behind its latency says that the number is whole."""
    log = read(WHOLE.removesuffix(lost))
    assert (log.steps, log.last_iteration, log.problems) == (10, 100, ())
    assert log.latency_s == read(WHOLE).latency_s == 13.117188


def test_last_line_of_another_kind_may_lack_its_line_feed() -> None:
    """Only a row that is cut is missed."""
    assert read(WHOLE + b"100 %, 119 MiB").problems == ()


def test_row_that_contradicts_the_batch_size_is_named() -> None:
    """39 samples/s x 13.1 s are 512 samples, whatever arguments stand above the table."""
    log = read(
        argument("global_batch_size", "1024").replace(
            b"steps .......................... 32", b"steps .......................... 64"
        )
    )
    assert problems(log, "RATE-MISMATCH") == [
        "line 73: iteration 10: 35.8804 samples/s x 14.26962 s are 512 samples;"
        " the header says 1024 (the first of 10)"
    ]


def test_batch_size_follows_from_its_parts_where_it_is_not_said() -> None:
    """8 x 2 x 32 samples a step hold without the product."""
    log = read(argument("global_batch_size", "None"))
    assert "global_batch_size" not in log.config
    assert codes(log) == set()


def test_row_of_fewer_steps_than_the_others_is_named() -> None:
    """Upstream divides the time of the last steps by the steps of a whole row: half its latency."""
    last = row(100).replace(b"| 100 ", b"| 105 ").replace(b"13.12494", b"6.56247 ")
    log = read(argument("train_iters", "105") + last)
    assert {"RATE-MISMATCH", "SKIPPED-STEPS"} <= codes(log)
    assert log.latency_s is None


@pytest.mark.parametrize("latency", [b"nan     ", b"inf     ", b"0.00000 "])
def test_latency_that_is_no_positive_number_gives_none(latency: bytes) -> None:
    """No mean is made of a latency that cannot be."""
    log = read(WHOLE.replace(b"13.11041", latency))
    assert "line 80: iteration 80: the latency is not" in problems(log, "NOT-FINITE")[0]
    assert (log.latency_s, log.window) == (None, (60, 100))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\n", b"\r\n"),
        (b"\n|", b"\n[1,0]<stdout>:|"),
        (b"\n", b"\n    "),
        (b"\n  ", b"\nThu Dec 17 18:27:52 2020[1,0]<stdout>:  "),
        (b"\nTraining...", b"\nroot@VS002:~# nvidia-smi\n| N/A   34C    P0    42W / 300W |"),
        (b"\n|", b"\n\x1b[32m 5 %\x1b[0m\r|"),
        (b"\nTraining...", b"\n\x00\xff\n|    0     12345      C   python3     10MiB |"),
        (b" %, ", b" %, "),
    ],
)
def test_what_stands_around_the_rows_makes_no_difference(before: bytes, after: bytes) -> None:
    """Line ends, tags, indentation, prompts and nvidia-smi's own table change no number."""
    log, clean = read(WHOLE.replace(before, after)), read(WHOLE)
    assert (log.problems, log.config, log.steps) == ((), clean.config, 10)
    assert (log.latency_s, log.memory_mib, log.digest) == (13.117188, 11958, clean.digest)


def test_use_of_gpus_that_tell_no_load_counts() -> None:
    """Where the driver gives no load, it still gives the memory; without either there is none."""
    assert read(WHOLE.replace(b"79 %, ", b"[Not Supported], ")).memory_mib == 11958
    assert read(WHOLE.replace(b" MiB\n", b"\n")).memory_mib is None


@pytest.mark.parametrize(
    "broken",
    [
        b"| 80       | 2560            | 40960\n",
        b"80       | 2560            | 40960           | 39.05294   | 13.11041   | 7.08075    |\n",
        b"| 80       | 2560            | 40960           | 39.05294   | 13.1     | 7.08075  |\n",
        b"| 80       | 2560            | 40960           | 39.05294   | 13.11041   | 7.08075\n",
        b"| 80       | 2560            | 40960           | 39.05294   | 13.11041 | 7.0 x |\n",
    ],
)
def test_broken_row_inside_the_window_is_a_problem(broken: bytes) -> None:
    """What begins or ends as a record and does not match is named, and nothing is measured."""
    log = read(WHOLE.replace(row(80), broken), (60, 100))
    assert "line 80 begins or ends as a record" in problems(log, "MALFORMED")[0]
    assert log.latency_s is None
    log = read(WHOLE.replace(row(80), broken))
    assert (codes(log), log.latency_s) == ({"SKIPPED-STEPS", "WINDOW"}, None)


@pytest.mark.parametrize("window", [None, (60, 100), (30, 100)])
def test_broken_row_before_the_window_is_ignored(window: tuple[int, int] | None) -> None:
    """Before the last five rows, or the first row of the window, nothing is lost."""
    log = read(WHOLE.replace(row(30), b"| 25 |\n| 26 |\n" + row(30)), window)
    assert log.problems == ()
    assert log.latency_s is not None


def test_broken_row_at_the_end_may_be_one_of_the_window() -> None:
    """After the end of a window, or of the promised rows, it is not."""
    log = WHOLE + b"| 110      | 3\n"
    assert codes(read(log)) == codes(read(log, (60, 100))) == set()
    assert "MALFORMED" in codes(read(log, (60, 110)))
    assert "MALFORMED" in codes(read(HEADER + b"| 10 |\n", (60, 110)))


@pytest.mark.parametrize("window", [None, (60, 100)])
def test_row_with_two_latencies_gives_none(window: tuple[int, int] | None) -> None:
    """Of two different rows of one step nobody knows which is right."""
    other = row(80).replace(b"13.11041", b"13.11042")
    assert read(WHOLE.replace(row(80), row(80) + other), window).latency_s is None


@pytest.mark.parametrize("window", [None, (60, 100)])
def test_row_with_two_latencies_outside_the_window_leaves_it_alone(
    window: tuple[int, int] | None,
) -> None:
    """The rows that are measured are there once."""
    other = row(50).replace(b"13.12932", b"13.12933")
    log = read(WHOLE.replace(row(50), row(50) + other), window)
    assert (log.latency_s, codes(log)) == (13.117188, {"DUP-STEPS"})


@pytest.mark.parametrize(
    ("second", "seen"),
    [
        (TABLE, "iteration 10 after 100"),
        (WHOLE, "line 83: another header"),
        (WHOLE[WHOLE.index(b"---") :], "line 83: another header"),
        (b"  num_nodes ..... 4\n", "line 83: another header"),
    ],
)
def test_several_runs_in_one_log_give_no_throughput(second: bytes, seen: str) -> None:
    """Steps that go back or other arguments are another run: counted, and nothing is measured."""
    log = read(WHOLE + second)
    assert log.runs == 2
    assert any(seen in problem for problem in problems(log, "SEVERAL-RUNS"))
    assert (log.latency_s, log.window_rate, log.window, log.digest) == (None, None, None, "")


def test_run_that_crashed_before_its_first_row_counts() -> None:
    """Arguments twice and one table are two runs; what is said is the last one's."""
    log = read(HEADER + WHOLE)
    assert (log.runs, log.steps, log.latency_s) == (2, 10, None)
    assert log.config["global_batch_size"] == 512


def test_copies_of_one_evidence_have_one_digest() -> None:
    """Other arguments or wider columns do not make other evidence; another row does."""
    copy = argument("num_nodes", "2").replace(b" | ", b"  |  ")
    assert read(copy).digest == read(WHOLE).digest != ""
    assert read(WHOLE.replace(b"13.11041", b"13.11042")).digest != read(WHOLE).digest


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (WHOLE, (100, 39.00969)),
        (WHOLE[:-3], (90, 39.04735)),
        (TABLE[200:], (100, 39.00969)),
        (row(10) + row(20).replace(b"39.02016", b"nan     "), None),
        (row(10)[3:], None),
        (row(10)[20:], None),
        (HEADER, None),
        (b"", None),
    ],
)
def test_progress_is_the_last_whole_row(block: bytes, expected: tuple[int, float] | None) -> None:
    """A cut row is no progress; the one before it is."""
    assert progress(ONEFLOW_GPT)(block) == expected
