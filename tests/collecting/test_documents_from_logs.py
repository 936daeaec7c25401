"""The documents' numbers from logs: trees of logs as the programs write them, through `collect`.

The logs are made here, with the header and the lines of the recorded ones and with clocks that give
the throughput that a document prints; so it is the way from bytes to tables that is tested.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import SAMPLES
from tests.collecting.oneflow_logs import SEED_000, bert, gpt, ranks, rn50
from tests.collecting.pytorch_logs import codes, results

SEED_000_FINAL = {
    "1x1": ("384.9", "1.00"),
    "1x8": ("2969.5", "7.71"),
    "2x8": ("5906.6", "15.35"),
    "4x8": ("11711.2", "30.43"),
}
# DLPerf's report of 2020-08-22, batch 96, of which seed 001 prints one decimal. Its 29.75 is
# 4456.0 / 149.8, rounded before it was divided; of the report's own figures it is 29.74.
BERT = {"1n1g": 149.84, "1n8g": 1158.51, "2n8g": 2257.71, "4n8g": 4455.97}
SEED_001_BERT = {
    "1x1": ("149.8", "1.00"),
    "1x8": ("1158.5", "7.73"),
    "2x8": ("2257.7", "15.07"),
    "4x8": ("4456.0", "29.74"),
}
# Seed 002, "Test Result": name, shape from "Test Case", ms, MiB, samples/s.
SEED_002 = (SAMPLES / "seed-trials/gpt-seed-002.txt").read_text().splitlines()


def gpt_text(name: str, latency_ms: float, memory_mib: int) -> str:
    """Return a log whose header is what upstream's name of a log says."""
    text = gpt(gpt_shape(name), latency_ms, memory_mib)
    return text.replace("  train_iters", f"  fp16 {'.' * 44} True\n  train_iters")


def gpt_shape(name: str) -> dict[str, int]:
    """Return the arguments behind upstream's name of a log."""
    token, *words = name.split("_")
    said = {
        word.rstrip("0123456789"): int(word.lstrip("abcdefghijklmnopqrstuvwxyz")) for word in words
    }
    nodes, gpus = ranks(token)
    return {
        "num_nodes": nodes,
        "num_gpus_per_node": gpus,
        "data_parallel_size": said["dp"],
        "tensor_model_parallel_size": said["mp"],
        "pipeline_model_parallel_size": said["pp"],
        "micro_batch_size": said["mbz"],
        "global_batch_size": said["gbz"],
        "num_accumulation_steps": said["gbz"] // said["mbz"] // said["dp"],
        "seq_length": said["s"],
        "num_layers": said["l"],
        "hidden_size": said["h"],
        "num_attention_heads": said["nh"],
        "train_iters": 100,
    }


def printed(document: Any, decimals: int) -> dict[str, tuple[str, str]]:
    """Return throughput and speedup by placement, as a document prints them."""
    return {
        case["case"]["placement"]: (f"{case['median']:.{decimals}f}", f"{case['speedup']:.2f}")
        for case in document["cases"]
    }


def write(folder: Path, name: str, trials: Mapping[str, Sequence[str]]) -> None:
    """Write logs by placement, numbered as DLPerf numbers repeats."""
    for token, logs in trials.items():
        (folder / token).mkdir(parents=True)
        for number, text in enumerate(logs, 1):
            (folder / token / f"{name}_{number}.log").write_text(text)


def test_seed_000_comes_out_of_28_logs(tmp_path: Path) -> None:
    """Each of the 28 rows, the four medians and their speedups."""
    began = iter(range(1597933942, 1597993942, 500))
    logs = {
        token: [rn50(token, value, next(began)) for value in values]
        for token, values in SEED_000.items()
    }
    write(tmp_path, "rn50_b128_fp32", logs)
    document = results(tmp_path, "oneflow_rn50")
    assert printed(document, 1) == SEED_000_FINAL
    rows = [f"{trial['throughput']:.1f}" for case in document["cases"] for trial in case["trials"]]
    assert rows == [f"{value:.1f}" for values in SEED_000.values() for value in values]


def test_oneflow_of_before_august_2020_is_measured_by_its_rates(tmp_path: Path) -> None:
    """Its logs have no clock: with `--rule rates`, as the page of NO-CLOCK says, a mark."""
    timeless = re.sub(r" \d{10}\.\d+$", "", rn50("1n1g", 385.628, 1.6e9), flags=re.MULTILINE)
    write(tmp_path, "rn50_b128_fp32", {"1n1g": [timeless]})
    (case,) = results(tmp_path, "oneflow_rn50")["cases"]
    assert (case["median"], case["trials"][0]["state"]) == (None, "invalid")
    (case,) = results(tmp_path, "oneflow_rn50", rule="rates")["cases"]
    assert case["median"] == pytest.approx(385.628)
    assert codes(case["trials"][0], "marks") == ["NO-CLOCK"]


def test_seed_001_comes_out_of_logs_of_bert(tmp_path: Path) -> None:
    """The four rows of batch 96; speedups of unrounded medians."""
    began = iter(range(1598056519, 1598059519, 500))
    write(tmp_path, "bert_base_b96_fp32", {k: [bert(k, it, next(began))] for k, it in BERT.items()})
    assert printed(results(tmp_path, "oneflow_bert"), 1) == SEED_001_BERT


@pytest.mark.parametrize("line", SEED_002)
def test_seed_002_comes_out_of_logs_by_their_headers(tmp_path: Path, line: str) -> None:
    """Latency, memory and throughput as printed; the shape is what the log itself says."""
    name, shape, latency_ms, memory, samples = line.split()
    text = gpt_text(shape, float(latency_ms), int(memory))
    (tmp_path / f"pretrain_gpt_{shape}.log").write_text(text)
    (case,) = results(tmp_path, "oneflow_gpt")["cases"]
    digits = len(samples.partition(".")[2])
    assert f"{case['median']:.{digits}f}" == samples
    assert (case["memory_mib"], round(case["latency_s"] * 1000, 3)) == (
        int(memory),
        float(latency_ms),
    )
    split = (case["case"][key] for key in ("data_parallel", "tensor_parallel", "pipeline_parallel"))
    assert "x".join(map(str, split)) in name


def test_layouts_of_one_shape_stay_apart_by_their_names(tmp_path: Path) -> None:
    """DP_8x1x1 and 2D_8x1x1 print equal headers; our names of their logs differ."""
    shape = "1n8d_dp8_mp1_pp1_mbz2_gbz16_s2048_l16_h1536_nh16"
    folder = tmp_path / "1n8g"
    folder.mkdir()
    for name, latency_ms in (("DP_8x1x1_16_1536x16", 417.952), ("2D_8x1x1_16_1536x16", 417.902)):
        log = folder / f"{name}-pretrain_gpt_{shape}_1.log"
        log.write_text(gpt_text(shape, latency_ms, 12404))
    cases = results(tmp_path, "oneflow_gpt")["cases"]
    seen = {case["case"]["params.group"]: f"{case['median']:.2f}" for case in cases}
    assert seen == {"DP": "38.28", "2D": "38.29"}


def test_a_log_of_another_layout_than_its_name_counts_for_neither(tmp_path: Path) -> None:
    """The header says 2 x 4, the name 8 x 1: one of them is wrong."""
    wrong = tmp_path / "pretrain_gpt_1n8d_dp8_mp1_pp1_mbz2_gbz16_s2048_l16_h1536_nh16.log"
    header = "1n8d_dp2_mp4_pp1_mbz8_gbz16_s2048_l16_h1536_nh16"
    wrong.write_text(gpt_text(header, 539.696, 6366))
    (case,) = results(tmp_path, "oneflow_gpt")["cases"]
    (trial,) = case["trials"]
    assert (trial["state"], case["median"]) == ("invalid", None)
    assert "CASE-MISMATCH" in codes(trial)


# DLPerf's report on TensorFlow: AMP, batch 224, with XLA, one GPU.
XLA_RATE = 1198.55


def test_our_names_of_tensorflow_logs_find_what_was_published(tmp_path: Path) -> None:
    """The label -xla is the case's own, whether a header says it too or there is none."""
    head = (
        "DLL 2020-09-01 06:00:00.000000 - PARAMETER arch : resnet50  mode : train  batch_size : 224"
        "  num_iter : 120  iter_unit : batch  warmup_steps : 0  display_every : 1  precision : fp32"
        "  loss_scale : 128.0  use_static_loss_scaling : True  use_xla : True  use_dali : True"
        "  use_tf_amp : True  name : x \nNum GPUs 1\n"
    )
    began = datetime(2020, 9, 1, 6)
    lines = "".join(
        f"DLL {began + timedelta(seconds=224 * step / XLA_RATE):%Y-%m-%d %H:%M:%S.%f}"
        f" - (0, {step}) imgs_per_sec : {XLA_RATE}  cross_entropy : 3.4  total_loss : 4.1\n"
        for step in range(21, 121)
    )
    for name, header in (("told", head), ("headerless", "")):
        write(tmp_path / name, "r50_b224_amp-xla", {"1n1g": [header + lines]})
        (case,) = results(tmp_path / name, "ngc_tensorflow_rn50")["cases"]
        assert (case["case"]["params.xla"], case["trials_valid"]) == (True, 1)
        assert case["median"] == pytest.approx(XLA_RATE, rel=1e-4)
        assert case["published"][0]["throughput"] == XLA_RATE
