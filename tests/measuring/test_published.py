"""Published results: what the package ships, and which of it belongs to a case."""

from pathlib import Path

import pytest

import orchestrator
from orchestrator import workloads
from orchestrator.measuring import published
from orchestrator.model.case import Case
from orchestrator.model.report import PublishedResult
from orchestrator.workloads import Published

ROWS = published.rows(
    (Path(orchestrator.__file__).parent / published.FILE).read_text(encoding="utf-8")
)
BERT = Published(("oneflow-*",), "bert-base", ("fp32",))


def case(placement: str, batch: int, precision: str = "fp32", **params: float) -> Case:
    """A case of ResNet-50 or BERT."""
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
    """The only row of these."""
    nodes, gpus = map(int, placement.split("x"))
    (found,) = (
        each
        for each in ROWS
        if (each.framework, each.nodes, each.gpus_per_node) == (framework, nodes, gpus)
        and (each.batch, each.precision, each.model) == (batch, precision, "resnet50v1.5")
    )
    return found


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
    """348 results, each with a positive number and a source, and none twice by one source."""
    assert len(ROWS) == 348
    assert all(each.throughput > 0 and each.source and each.batch for each in ROWS)
    keys = {
        (each.framework, each.model, each.precision, each.batch, each.placement, each.source)
        for each in ROWS
    }
    assert len(keys) == len(ROWS)


@pytest.mark.parametrize(
    ("framework", "placement", "batch", "words"),
    [
        ("ngc-pytorch", "1x1", "128", "886372 of 1281167 images"),
        ("ngc-pytorch", "2x8", "128", "its 4-node listing with another world_size"),
        ("ngc-mxnet", "4x8", "128", "11233.92 (28.67) at the top of the README"),
        ("oneflow-0.1.9", "1x1", "128", "rn50_fp32_report_0821.md"),
    ],
)
def test_source_says_where_documents_disagree(
    framework: str, placement: str, batch: str, words: str
) -> None:
    """A reader who compares with such a number knows what is odd about it."""
    assert words in row(framework, placement, batch).source


def test_source_says_that_a_speedup_was_rounded_twice() -> None:
    """BERT on 32 GPUs: 4456.0/149.8 is 29.75, and 4455.97/149.84 is 29.74."""
    found = published.of_case(ROWS, case("4x8", 96), BERT, "oneflow-0.1.9")
    first, second = (each for each in found if each.framework == "oneflow-0.1.9")
    assert (first.throughput, second.throughput) == (4456.0, 4455.97)
    assert "29.75 is 29.74 before rounding" in first.source
    assert "speedup 29.74" in second.source


def test_results_of_the_images_version_come_first() -> None:
    """All versions are shown, but nobody compares with another one unawares."""
    found = published.of_case(ROWS, case("1x8", 96), BERT, "oneflow-0.2.0")
    assert [each.framework for each in found] == [
        *("oneflow-0.2.0-clip", "oneflow-0.2.0-noclip", "oneflow-0.1.9", "oneflow-0.1.9"),
    ]
    for image in ("", "mine", "ngc-pytorch-20.03"):
        found = published.of_case(ROWS, case("1x8", 96), BERT, image)
        assert [each.throughput for each in found] == [1158.5, 1158.51, 1201.7, 1234.65]


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
    assert published.of_case(ROWS, asked, called, "") == ()


def test_batch_can_be_what_was_published_instead() -> None:
    """OneFlow GPT publishes global batch sizes."""
    called = Published(("oneflow-*",), "gpt 2D_PP_2x4x4_512_2304x24", ("fp16",), "gbs=512")
    (found,) = published.of_case(ROWS, case("4x8", 8), called, "oneflow-gpt-0.3.5")
    assert (found.throughput, found.framework) == (39.03, "oneflow-0.3.5")
    assert "13117.188 ms and 11958 MiB" in found.source


def test_results_are_selected_by_patterns() -> None:
    """Framework, model and precision, each a glob."""
    found = published.selected(ROWS, "ngc-pytorch", "resnet*", "amp-*")
    assert [each.throughput for each in found] == [
        *(802.9, 3137.44, 6154.66, 11991.94, 22551.16),
        *(827.86, 3253.68, 6446.74),
    ]
    assert published.selected(ROWS, "ngc", "*", "*") == ()
    assert published.selected(ROWS, "*", "*", "*") == ROWS


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
        published.of_case(ROWS, each, called, "ngc-pytorch-20.03")
        for each in asked
        if (called := workload.published(each))
    ]
    assert [rows[0].throughput for rows in found] == [2887.65, 6154.66, 6446.74]
