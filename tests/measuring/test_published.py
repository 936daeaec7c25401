"""Published results: what the package ships, and which of it belongs to a case."""

import pytest

from orchestrator import workloads
from orchestrator.collecting import package
from orchestrator.measuring import hardware, published
from orchestrator.model.case import Case
from orchestrator.model.report import PublishedResult
from orchestrator.workloads import Published

ROWS = package.published_results()
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
        result
        for result in ROWS
        if (result.framework, result.nodes, result.gpus_per_node) == (framework, nodes, gpus)
        and (result.batch, result.precision, result.model) == (batch, precision, "resnet50v1.5")
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
    found = published.select_for_case(ROWS, case("4x8", 96), BERT, "oneflow-0.1.9")
    first, second = (result for result in found if result.framework == "oneflow-0.1.9")
    assert (first.throughput, second.throughput) == (4456.0, 4455.97)
    assert "29.75 is 29.74 before rounding" in first.source
    assert "speedup 29.74" in second.source


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


V100, A100 = "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("gpus", "found"),
    [
        ((V100,), ["ngc-pytorch", "ngc-pytorch-2020.12"]),
        (("Tesla V100-SXM2-32GB",), []),
        (("Tesla V100-PCIE-16GB",), []),
        ((A100,), []),
        ((V100, A100), []),
        (("a card",), []),
        ((), ["ngc-pytorch", "ngc-pytorch-2020.12"]),
    ],
)
def test_a_case_is_compared_with_its_own_kind_of_gpu_only(
    gpus: tuple[str, ...], found: list[str]
) -> None:
    """All GPUs of the cluster must be of the kind; where none is known, the report says so."""
    called = Published(("ngc-pytorch*",), "resnet50v1.5", ("fp32",))
    rows = published.select_for_case(ROWS, case("1x8", 128), called, "", gpus)
    assert [result.framework for result in rows] == found


@pytest.mark.parametrize(
    ("transport", "count"),
    [("IB mlx5_0", 1), ("-", 1), ("Socket eth0", 0), ("RoCE mlx5_0", 0), ("IB mlx5_0 (IBext)", 1)],
)
def test_cases_over_nodes_are_compared_over_the_same_network(transport: str, count: int) -> None:
    """DLPerf had InfiniBand; what ran over sockets is another matter."""
    called = Published(("ngc-pytorch",), "resnet50v1.5", ("fp32",))
    rows = published.select_for_case(ROWS, case("4x8", 128), called, "", (V100,), transport)
    assert len(rows) == count


@pytest.mark.parametrize(
    ("driver", "printed"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB (DGX A100)"),
        ("NVIDIA A100-SXM-80GB", "A100-SXM4-80GB (Lambda)"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB (LambdaCloud)"),
        ("NVIDIA H100 80GB HBM3", "DGX-H100"),
        ("NVIDIA H200", "H200-SXM-141GB (Lambda ENG04)"),
        ("NVIDIA GH200 480GB", "GH200-96GB (Lambda OD)"),
        ("NVIDIA B200", "B200-192GB (Lambda OD)"),
        ("Tesla V100-SXM2-16GB", "V100-16GB (LambdaCloud)"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-80GB? (DGX A100)"),
    ],
)
def test_names_of_one_kind(driver: str, printed: str) -> None:
    """As nvidia-smi prints them and as others published them."""
    own, theirs = hardware.parse_kind(driver), hardware.parse_kind(printed)
    assert own
    assert theirs
    assert own.fits(theirs)
    assert theirs.fits(own)


@pytest.mark.parametrize(
    ("driver", "printed"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-80GB (DGX A100)"),
        ("NVIDIA H100 PCIe", "H100-SXM5-80GB (LambdaCloud)"),
        ("NVIDIA H100 80GB HBM3", "H100-96GB-HBM2e (Grand Teton)"),
        ("NVIDIA H200", "DGX-H100"),
        ("NVIDIA H100 PCIe", "DGX-H100"),
        ("NVIDIA H100 NVL", "DGX-H100"),
        ("NVIDIA H100 NVL", "H100-80GB"),
        ("NVIDIA H200 NVL", "H200-SXM (WhiteFiber)"),
        ("Tesla V100-SXM2-32GB", "V100-SXM3-32GB (DGX-2)"),
        ("NVIDIA GH200 480GB", "H200-SXM (WhiteFiber)"),
    ],
)
def test_names_of_different_kinds(driver: str, printed: str) -> None:
    """Another chip, form or memory is another machine."""
    own, theirs = hardware.parse_kind(driver), hardware.parse_kind(printed)
    assert own
    assert theirs
    assert not own.fits(theirs)


def test_hardware_that_names_no_chip_is_no_kind() -> None:
    """It is shown where nothing is known of the GPUs either, and nowhere else."""
    assert hardware.parse_kind("four workstations") is None
    assert hardware.is_comparable("four workstations", "")
    assert not hardware.is_comparable("four workstations", "", (V100,))


def test_synthetic_data_is_no_result_of_a_real_set() -> None:
    """Lambda's numbers are of synthetic data: no case that reads ImageNet is set beside them."""
    called = Published(("ngc-pytorch*",), "resnet50v1.5", ("fp32", "amp"))
    rows = published.select_for_case(ROWS, case("1x8", 128), called, "", (V100,))
    assert {result.suite for result in rows} == {"dlperf", "paddleperf"}
    lambdas = published.select(ROWS, {"framework": "synthetic-*", "hardware": "H200*"})
    assert [result.throughput for result in lambdas] == [3079, 24479, 2259, 17947]
