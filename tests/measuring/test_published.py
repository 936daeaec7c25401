"""Published results: which of them belong to a case, and what the hardware can give at most."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator import workloads
from orchestrator.collecting import package
from orchestrator.measuring import hardware, published
from orchestrator.model.case import Case
from orchestrator.model.report import PublishedResult, Report
from orchestrator.workloads import Published
from tests.reported import results, sweep

GPUS: Any = yaml.safe_load((Path(__file__).parent / "gpus.yaml").read_text())
ROWS = package.published_results()
BERT = Published(("oneflow-*",), "bert-base", ("fp32",))
RN50 = Published(("ngc-pytorch*",), "resnet50v1.5", ("fp32", "amp"))
V100, A100 = "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB"
SHAPE = (("num_layers", 16), ("hidden_size", 1536), ("num_attention_heads", 16))


def case(placement: str, batch: int, precision: str = "fp32", **params: float) -> Case:
    nodes, gpus = map(int, placement.split("x"))
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=batch,
        precision=precision,
        device="cuda",
        params=tuple(params.items()),
    )


def row(framework: str, placement: str, batch: str, precision: str = "fp32") -> PublishedResult:
    """Return the only row of these."""
    nodes, gpus = map(int, placement.split("x"))
    (found,) = (
        result
        for result in ROWS
        if (result.framework, result.nodes, result.gpus_per_node) == (framework, nodes, gpus)
        and (result.batch, result.precision, result.model) == (batch, precision, "resnet50v1.5")
    )
    return found


def complete(report: Report, workload: str = "oneflow_gpt") -> Report:
    """Return the report with all that a workload knows of its cases."""
    found = workloads.find(workload)
    assert found is not None
    return published.complete_report(report, found, ROWS)


@pytest.mark.parametrize(
    ("framework", "placement", "batch", "precision", "throughput"),
    [
        ("ngc-pytorch", "4x8", "128", "fp32", 10917.09),
        ("ngc-pytorch", "1x4", "256", "amp-static", 3253.68),
        ("oneflow-0.1.9", "2x8", "128", "fp32", 5906.6),
        ("oneflow-0.2.0", "4x8", "256", "amp", 33141.02),
        ("ngc-tf1", "1x1", "224", "amp-xla", 1198.55),
        ("mindspore", "1x1", "256", "amp", 1116.0),
        ("ngc-tf1-xla-2022", "4x8", "256", "amp", 33317.67),
    ],
)
def test_rows_are_those_of_the_reports(
    framework: str, placement: str, batch: str, precision: str, throughput: float
) -> None:
    """Numbers typed from DLPerf's and PaddlePaddle/Perf's reports."""
    found = row(framework, placement, batch, precision)
    assert (found.throughput, found.unit, found.placement) == (throughput, "images/sec", placement)


def test_every_row_is_whole() -> None:
    """477 results, each with a positive number, hardware and a source; none twice by one source."""
    assert len(ROWS) == 348 + 119 + 10
    assert all(result.throughput > 0 and result.source and result.batch for result in ROWS)
    assert all(hardware.parse_kind(result.hardware) for result in ROWS)
    keys = {
        (
            *(result.framework, result.model, result.precision, result.batch, result.placement),
            *(result.hardware, result.source),
        )
        for result in ROWS
    }
    assert len(keys) == len(ROWS)


def test_a_source_says_where_its_document_disagrees_with_itself() -> None:
    listing = row("ngc-pytorch", "2x8", "128").source
    assert "its 4-node listing with another world_size" in listing
    assert "11233.92 (28.67) at the top of the README" in row("ngc-mxnet", "4x8", "128").source


def test_results_of_the_images_version_come_first() -> None:
    """All versions are shown, but nobody compares with another one unawares."""
    found = published.select_for_case(ROWS, case("1x8", 96), BERT, "oneflow-0.2.0")
    assert [result.framework for result in found] == [
        *("oneflow-0.2.0-clip", "oneflow-0.2.0-noclip", "oneflow-0.1.9", "oneflow-0.1.9"),
    ]
    for image in ("", "mine", "ngc-pytorch-20.03"):
        found = published.select_for_case(ROWS, case("1x8", 96), BERT, image)
        assert [result.throughput for result in found] == [1158.5, 1158.51, 1201.7, 1234.65]


@pytest.mark.parametrize(
    ("asked", "called"),
    [
        (case("1x8", 97), BERT),
        (case("3x8", 96), BERT),
        (case("1x8", 96), Published(("oneflow-*",), "bert-base", ("amp",))),
        (case("1x8", 96), Published(("oneflow-*",), "bert-large", ("fp32",))),
        (case("1x8", 96), Published(("ngc-*",), "bert-base", ("fp32",))),
        (case("1x8", 96), Published((), "bert-base", ("fp32",))),
    ],
)
def test_nothing_is_of_a_case_that_differs_in_anything(asked: Case, called: Published) -> None:
    """Another batch, placement, precision, model or framework is another case."""
    assert published.select_for_case(ROWS, asked, called, "") == ()


def test_batch_can_be_what_was_published_instead() -> None:
    """OneFlow GPT publishes global batch sizes."""
    called = Published(("oneflow-*",), "gpt 2D_PP_2x4x4_512_2304x24", ("fp16",), "gbs=512")
    (found,) = published.select_for_case(ROWS, case("4x8", 8), called, "oneflow-gpt-0.3.5")
    assert (found.throughput, found.framework) == (39.03, "oneflow-0.3.5")
    assert "13117.188 ms and 11958 MiB" in found.source


def test_results_are_selected_by_patterns() -> None:
    """Framework, model and precision, each a glob."""
    found = published.select(
        ROWS, {"framework": "ngc-pytorch", "model": "resnet*", "precision": "amp-*"}
    )
    assert [result.throughput for result in found] == [
        *(802.9, 3137.44, 6154.66, 11991.94, 22551.16),
        *(827.86, 3253.68, 6446.74),
    ]
    assert published.select(ROWS, {"framework": "ngc"}) == ()
    assert published.select(ROWS, {"framework": "*", "hardware": "*"}) == ROWS


def test_pytorchs_loss_scales_have_results_of_their_own() -> None:
    """Dynamic and static differ by up to 4.7 %: a case is compared with its own kind."""
    workload = workloads.find("ngc_pytorch_rn50")
    assert workload is not None
    assert workload.published is not None
    asked = [
        case("1x8", 128),
        case("1x8", 256, "amp"),
        case("1x8", 256, "amp", loss_scale=128.0),
    ]
    found = [
        published.select_for_case(ROWS, one, called, "ngc-pytorch-20.03")
        for one in asked
        if (called := workload.published(one))
    ]
    assert [rows[0].throughput for rows in found] == [2887.65, 6154.66, 6446.74]


@pytest.mark.parametrize(
    ("placement", "gpus", "transport", "count"),
    [
        ("1x8", (V100,), "-", 2),
        *[
            ("1x8", gpus, "-", 0)
            for gpus in (
                *(("Tesla V100-SXM2-32GB",), ("Tesla V100-PCIE-16GB",)),
                *((A100,), (V100, A100), ("a card",)),
            )
        ],
        ("1x8", (), "-", 2),
        *[("4x8", (V100,), transport, 1) for transport in ("IB mlx5_0", "-", "IB mlx5_0 (IBext)")],
        *[("4x8", (V100,), transport, 0) for transport in ("Socket eth0", "RoCE mlx5_0")],
    ],
)
def test_a_case_is_compared_with_its_own_kind_of_gpu_and_network_only(
    placement: str, gpus: tuple[str, ...], transport: str, count: int
) -> None:
    """All GPUs of the cluster must be of the kind; DLPerf had InfiniBand between nodes."""
    called = replace(RN50, precision=("fp32",))
    if placement == "4x8":
        called = replace(called, frameworks=("ngc-pytorch",))
    rows = published.select_for_case(ROWS, case(placement, 128), called, "", gpus, transport)
    assert len(rows) == count


@pytest.mark.parametrize(
    ("pair", "fits"),
    [(pair, key == "one_kind") for key in ("one_kind", "other_kinds") for pair in GPUS[key]],
)
def test_names_of_drivers_and_publications_are_of_one_kind_or_not(pair: str, *, fits: bool) -> None:
    driver, printed = pair.split(" | ")
    own, theirs = hardware.parse_kind(driver), hardware.parse_kind(printed)
    assert own
    assert theirs
    assert (own.fits(theirs), theirs.fits(own)) == (fits, fits)
    assert hardware.is_comparable(printed, "", (driver,)) == fits


def test_hardware_that_names_no_chip_is_no_kind() -> None:
    """It is shown where nothing is known of the GPUs either, and nowhere else."""
    assert hardware.parse_kind("four workstations") is None
    assert hardware.is_comparable("four workstations", "")
    assert not hardware.is_comparable("four workstations", "", (V100,))


def test_synthetic_data_is_no_result_of_a_real_set() -> None:
    """Lambda's numbers are of synthetic data: no case that reads ImageNet is set beside them."""
    rows = published.select_for_case(ROWS, case("1x8", 128), RN50, "", (V100,))
    assert {result.suite for result in rows} == {"dlperf", "paddleperf"}
    lambdas = published.select(ROWS, {"framework": "synthetic-*", "hardware": "H200*"})
    assert [result.throughput for result in lambdas] == [3079, 24479, 2259, 17947]


@pytest.mark.parametrize("model", GPUS["peaks"])
def test_peaks_are_those_of_the_data_sheets(model: str) -> None:
    found = [hardware.find_peak([model], precision) for precision in ("fp32", "amp", "fp8")]
    printed = GPUS["peaks"][model].split()
    assert found == [None if it == "-" else float(it) for it in printed]


def test_every_peak_has_a_kind_of_its_own_and_a_source() -> None:
    """No name fits two rows, and BF16 is never faster than FP16."""
    kinds = [hardware.parse_kind(gpu) for gpu, _, _ in hardware.PEAKS]
    for place, one in enumerate(kinds):
        assert one
        assert not any(other and one.fits(other) for other in kinds[place + 1 :])
    for _, tflops, source in hardware.PEAKS:
        assert source.startswith(("NVIDIA ", "AMD "))
        _, _, fp16, bf16, _ = tflops.split()
        assert bf16 in ("-", fp16)
    assert hardware.find_peak(["NVIDIA GeForce RTX 4090"], "bf16") is None


@pytest.mark.parametrize("models", GPUS["unknown"])
def test_what_is_not_known_has_no_peak(models: list[str]) -> None:
    assert hardware.find_peak(models, "amp") is None


@pytest.mark.parametrize(("gpu", "precision"), [(V100, "fp8"), ("NVIDIA H200", "int4")])
def test_a_precision_that_is_not_known_has_no_peak(gpu: str, precision: str) -> None:
    assert hardware.find_peak([gpu], precision) is None


@pytest.mark.parametrize(
    ("gpu", "peak"),
    [("Tesla T4", 65), ("NVIDIA L4", 121), ("AMD Instinct MI300X", 1307.4), (V100, 125)],
)
def test_more_than_a_gpu_can_give_is_implausible(gpu: str, peak: float) -> None:
    """The report of May 2021 has 49.43 TFLOP/s for 4.92 samples/s; 1 % above the peak is marked."""
    for device, factor, marked in (("cuda", 1.01, 1), ("cuda", 0.99, 0), ("cpu", 1.01, 0)):
        (fast,) = results({"1x1": (4.92 * factor * peak / 49.43,)})
        own = replace(fast.case, micro_batch_size=2, device=device, params=SHAPE)
        found = complete(sweep((replace(fast, case=own),), gpus=(gpu,)))
        assert [mark.code for mark in found.results[0].marks] == ["IMPLAUSIBLE"] * marked


@pytest.mark.parametrize(
    ("workload", "params", "count"),
    [
        ("ngc_pytorch_rn50", (), 1),
        ("ngc_pytorch_rn50", (("folder", "monday"),), 1),
        ("ngc_pytorch_rn50", (("named", "rn101"),), 0),
        ("ngc_pytorch_rn50", (("loss_scale", "odd"),), 0),
        ("reference_rn50", (), 0),
    ],
)
def test_published_results_are_of_the_same_program_only(
    workload: str, params: tuple[tuple[str, str], ...], count: int
) -> None:
    """The folder that a log lies in does not matter; another model or a stray value does."""
    found = complete(sweep(results({"1x8": (6154.66,)}, params=params)), workload)
    assert [rows[0].throughput for rows in found.published.values()] == [6154.66] * count


def test_names_of_a_plan_come_before_those_of_a_workload() -> None:
    """And a case that lacks what its name is made of has none, and no operations either."""
    bare = case("1x1", 2, "amp")
    whole = replace(bare, params=SHAPE)
    (one,) = results({"1x1": (4.92,)})
    found = complete(sweep((replace(one, case=whole), replace(one, case=bare))))
    assert found.names == {whole: "DP_1x1x1_2_1536x16"}
    assert found.step_flops.keys() == {whole}
    assert found.layout.kind == "groups"
    again = complete(replace(found, names={whole: "as planned"}))
    assert again.names == {whole: "as planned"}
