"""The traps of each format: headers, epochs, ends and broken lines that only one program prints.

The snapshot contains what a user sees of each change to a recorded log: its problems, and every
number or value of the header that is no longer the recorded one.
"""

import re
from collections.abc import Iterator
from statistics import fmean

import pytest

from orchestrator import workloads
from tests import SAMPLES
from tests.logs.recorded import LOGS, Recorded, codes, problems

PYTORCH, BENCHMARK, NVLOG = LOGS["pytorch"], LOGS["benchmark amp"], LOGS["nvlog"]
TRAINING, RN50, BERT, GPT = LOGS["training"], LOGS["rn50"], LOGS["bert"], LOGS["gpt"]
LINE = PYTORCH.line(30)
AMP = b"fp16 ............................................ True"
BATCH = b"global_batch_size ............................... 512"
ITERATIONS = b"train_iters ..................................... 100"
SCALE = b"loss_scale ...................................... None"
TITLE = b"| batches  | micro_batches   | samples         | throughput | latency    | loss"
CHANGES: dict[str, dict[str, tuple[bytes, bytes]]] = {
    "pytorch": {
        "dynamic loss scale": (b"dynamic_loss_scale : False", b"dynamic_loss_scale : True"),
        "no dynamic loss scale": (b"dynamic_loss_scale : False  ", b""),
        "no static loss scale": (b"static_loss_scale : 256.0  ", b""),
        "fp32": (b"amp : True", b"amp : False"),
        "bf16": (b"amp : True", b"amp : False  bf16 : True"),
        "fp16 of old versions": (b"fp16 : False  ", b"fp16 : True  "),
        "amp yes": (b"amp : True", b"amp : yes"),
        "batch 1_28": (b"  batch_size : 128 ", b"  batch_size : 1_28 "),
        "batch of foreign digits": (b"  batch_size : 128 ", "  batch_size : १२८ ".encode()),
        "batch -128": (b"  batch_size : 128 ", b"  batch_size : -128 "),
        "batch 0": (b"  batch_size : 128 ", b"  batch_size : 0 "),
        "batch 1e2": (b"  batch_size : 128 ", b"  batch_size : 1e2 "),
        "static loss scale 2_5": (b"static_loss_scale : 256.0", b"static_loss_scale : 2_5"),
        "a bar in the header": (b"resnet50  model_config : ", b"resnet50  model_co|fig : "),
        "prof 100.0": (b"prof : 100", b"prof : 100.0"),
        "prof -1": (b"prof : 100", b"prof : -1"),
        "a line feed in the header": (b"batch_size : 128 ", b"bat\nch_size : 128 "),
        "data that is no UTF-8": (b"data : /imagenet", b"data : /im\xe9ge"),
        "a header of 70 kB": (b"seed : None", b"seed : " + b"x" * 70_000),
        "two epochs": (b"  epochs : 1 ", b"  epochs : 2 "),
        "a second header of the same run": (
            PYTORCH.line(1),
            b"DLL 2020-12-16 11:37:19.700000 - PARAMETER batch_size : 256 \n" + PYTORCH.line(1),
        ),
        "words in a step": (b"Iteration: 30 ", b"Iteration: 30  NCCL INFO Channel 00 :"),
        "a step begins again": (LINE, b"DLL 2020-12-16 11:3" + LINE),
        "a second step in a line": (
            LINE,
            LINE.strip() + b"DLL 2020-12-16 11:37:32.9 - Epoch: 0 Iteration: 31  train.lo\n",
        ),
        "a zero byte in a unit": (LINE, LINE.replace(b"img/s", b"i\x00g/s")),
        "foreign digits in a date": (LINE, LINE.replace(b"DLL 2020", "DLL २०२०".encode())),
        "an underscore in a rate": (LINE, LINE.replace(b"ips : ", b"ips : 1_")),
        "a letter is lost": (LINE, LINE.replace(b"DLL", b"DL")),
        "a field is lost": (LINE, LINE.replace(b"train.total_ips", b"total")),
        "a library behind a step": (
            LINE,
            LINE.strip() + b" h:1:2 [0] NCCL INFO via NET/Socket/0\n",
        ),
        "torn lines before the window": (
            PYTORCH.line(3) + PYTORCH.line(4),
            b"DLL 2020-12\nDLL 2020-12\n",
        ),
        "a time without microseconds": (LINE[:30], LINE[:23]),
        "a time that does not exist": (LINE, LINE.replace(b"11:37:", b"11:77:")),
        "a result of None": (b"Summary: train.loss : 7.14941", b"Summary: train.loss : None"),
    },
    "benchmark amp": {
        "fp32": (b"use_tf_amp : True", b"use_tf_amp : False"),
        "half precision outright": (b"precision : fp32", b"precision : fp16"),
        "dynamic loss scale": (b"loss_scaling : True", b"loss_scaling : False"),
        "the switch of 2021": (b"use_tf_amp : True", b"amp : True"),
        "the loss scale of 2021": (b"  loss_scale : 128.0", b"  static_loss_scale : 64"),
        "no kind of loss scale": (b"use_static_loss_scaling : True  ", b""),
        "no switch of AMP": (b"  use_tf_amp : True", b""),
        "amp yes": (b"use_tf_amp : True", b"use_tf_amp : yes"),
        "no data": (b"data_dir : /data/tfrecords/", b"data_dir : None"),
        "data not given": (b"  data_dir : /data/tfrecords/", b""),
        "DALI without an index": (b"use_dali : False", b"use_dali : True"),
        "an index without DALI": (b"data_idx_dir : None", b"data_idx_dir : /idx"),
        "DALI not given": (b"  use_dali : False", b""),
        "iterations by epochs": (b"iter_unit : batch", b"iter_unit : epoch"),
        "iterations 5e2": (b"num_iter : 500", b"num_iter : 5e2"),
        "GPUs in letters": (b"Num GPUs 8", b"Num GPUs eight"),
        "two words": (b"arch : resnet50 ", b"arch : resnet 50 "),
        "batch 0": (b"batch_size : 256", b"batch_size : 0"),
        "batch with a unit": (b"batch_size : 256 ", b"batch_size : 256img "),
        "batches that differ": (b"batch_size : 256 ", b"batch_size : 128 "),
        "loss scale 2_5": (b"loss_scale : 128.0", b"loss_scale : 2_5"),
        "every step is printed anyway": (b"display_every : 1 ", b"display_every : 10 "),
        "a result with nan": (b"throughput : ", b"throughput : nan"),
        "a result with words behind it": (b"() train_throughput : 7810.758929502331 ", b""),
        "a result of an evaluation": (
            b"Ending Model",
            b"DLL 2020-12-16 11:37:27.000000 - () top1_accuracy : 0.76 eval_latency_avg : nan \n"
            b"Ending Model",
        ),
    },
    "nvlog": {
        "AMP is switched on": (
            b":::NVLOGv0.2.3 None 1621936119.109992743",
            b":::NVLOGv0.2.3 None 1621936118.830137491 (runner.py:123) TF AMP is activated"
            b" - Experimental Feature\n:::NVLOGv0.2.3 None 1621936119.109992743",
        ),
        "a letter in an iteration": (b"py:59) iteration: 210", b"py:59) iteration: 2x10"),
        "a letter in a rate": (b"total_ips: 3091.93", b"total_ips: x3091.93"),
        "two lines in one": (b"resnet 1621936294.436434746", b"resnet 16219:::NVLOG"),
        "a rate is lost": (b"total_ips: 3091.930967706173\n", b"epoch: 3\n"),
        "a rate of another rank": (
            b":::NVLOGv0.2.3 resnet 1621936294.438102245",
            b"[1,3]<stdout>::::NVLOGv0.2.3 resnet 1621936294.438102245",
        ),
        "an average of nan": (b"Average total_ips: 3089.5", b"Average total_ips: nan3089.5"),
        "no total of steps": (b"Total Steps", b"Total Stops"),
    },
    "training": {
        "an epoch ends": (
            TRAINING.line(31),
            b"DLL 2026-11-22 00:54:43.500000 - (0,) cross_entropy : 6.5  l2_loss : 0.66 \n"
            + TRAINING.line(31),
        ),
        "a loss that is a tensor": (b"cross_entropy : 8.697193145751953", b"loss : tensor(nan)"),
        "two losses": (b"total_loss : 9", b"total_loss : -Infinity"),
        "a mode that is damaged": (b"mode : train ", b"mo|de : train "),
        "steps of another kind": (
            TRAINING.line(45),
            TRAINING.line(45).replace(b"imgs_per_sec", b"total_ips"),
        ),
    },
    "rn50": {
        "amp": (b"use_fp16 = None", b"use_fp16 = True"),
        "no AMP": (b"use_fp16 = None", b"use_fp16 = False"),
        "AMP is not given": (b"use_fp16 = None\n", b"\n"),
        "no type": (b"dtype = float32\n", b"\n"),
        "float16": (b"dtype = float32", b"dtype = float16"),
        "amp maybe": (b"use_fp16 = None", b"use_fp16 = maybe"),
        "synthetic data": (
            b"train_data_dir = /bench/data/ofrecord/train",
            b"train_data_dir = None",
        ),
        "data not given": (b"train_data_dir = /bench/data/ofrecord/train\n", b"\n"),
        "batch 0": (b"\nbatch_size_per_device = 128", b"\nbatch_size_per_device = 0"),
        "batch 1_28": (b"\nbatch_size_per_device = 128", b"\nbatch_size_per_device = 1_28"),
        "batch that is no UTF-8": (
            b"\nbatch_size_per_device = 128",
            b"\nbatch_size_per_device = \xff",
        ),
        "GPUs -1": (b"gpu_num_per_node = 1\n", b"gpu_num_per_node = -1\n"),
        "nodes 1.0": (b"\nnum_nodes = 1\n", b"\nnum_nodes = 1.0\n"),
        "label smoothing nan": (b"label_smoothing = 0.1", b"label_smoothing = nan"),
        "label smoothing None": (b"label_smoothing = 0.1", b"label_smoothing = None"),
        "a last batch that is not full": (b"num_examples = 15360", b"num_examples = 15361"),
        "a last batch that lacks an image": (b"num_examples = 15360", b"num_examples = 15487"),
        "a last batch that is not printed": (b"num_examples = 15360", b"num_examples = 15250"),
        "more images": (b"num_examples = 15360", b"num_examples = 17813"),
        "fewer images": (b"num_examples = 15360", b"num_examples = 7680"),
        "two epochs": (b"num_epochs = 1", b"num_epochs = 2"),
        "a line each 40 steps": (b"print_every_n_iter = 20", b"print_every_n_iter = 40"),
        "a line without its time": (b" 1795309139.9921713", b""),
        "a cut time": (b" 1795309138.8663902", b" 17953"),
        "words behind a time": (b" 1795309138.8663902", b" 1795309138.8663902 x"),
        "a rate of one decimal": (b"4591.572 ", b"4591.5 "),
    },
    "bert": {
        "accumulation": (b"iter_num = 140\n", b"iter_num = 140\nnum_accumulation_steps = 2\n"),
        "more iterations": (b"iter_num = 140", b"iter_num = 160"),
        "the last snapshot": (b"save_last_snapshot = False", b"save_last_snapshot = True"),
        "synthetic data": (b"Init model", b"Loading synthetic data.\nInit model"),
        "data of files": (b"Init model", b"Loading data from /data\nInit model"),
        "another loss": (b"nsp_loss: 7.501", b"nsp_loss: nan"),
    },
    "gpt": {
        "fp32": (AMP, b"fp16 ...... False"),
        "AMP is not given": (AMP, b"fp16 .. None"),
        "amp perhaps": (AMP, b"fp16 .. perhaps"),
        "static loss scale": (SCALE, b"loss_scale .. 1024.0"),
        "no load of a GPU": (b"79 %, ", b"[Not Supported], "),
        "no memory": (b" MiB\n", b" \n"),
        "109 steps": (ITERATIONS, b"train_iters .. 109"),
        "50 steps": (ITERATIONS, b"train_iters .. 50"),
        "another batch size": (BATCH, b"global_batch_size .. 1024"),
        "no batch size": (BATCH, b"global_batch_size .. None"),
        "a latency that contradicts its rate": (b"13.11041", b"13.11341"),
        "a row without its end": (b"| 13.11041   | 7.08075    |", b"| 13.11041   | 7.08075"),
        "a row with words": (b"| 13.11041   | 7.08075    |", b"| 13.11041 | 7.0 x |"),
        "a latency of one decimal": (b"| 13.11041   |", b"| 13.1     |"),
        "a row without its beginning": (b"| 80       |", b"80       |"),
        "torn rows before the window": (b"| 30       |", b"| 25 |\n| 26 |\n| 30       |"),
        "the memory is printed later, with the title": (
            GPT.line(20),
            b"utilization.gpu [%], memory.used [MiB]\n100 %, 11838 MiB\n"
            + TITLE
            + b"       |\n"
            + GPT.line(20),
        ),
    },
    "all-reduce": {
        "a rate that is cut": (b" busbw=0.2512 GB/s", b" busbw=0.25"),
        "a rate that contradicts its time": (b"busbw=0.2512", b"busbw=0.2514"),
        "no header": (b"all-reduce ranks", b"some-reduce ranks"),
        "no size": (b"size_mib=64 ", b""),
    },
}


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
