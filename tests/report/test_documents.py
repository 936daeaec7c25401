"""The numbers of the five documents, made again from what they print of their trials.

Expected rows are typed from the documents.
"""

import re
from collections.abc import Mapping, Sequence

import pytest

from orchestrator import report, workloads
from orchestrator.model.report import Report
from orchestrator.probes import topology
from orchestrator.report import node_facts
from orchestrator.workloads import Workload
from tests.reported import results, rows, sweep
from tests.seeds import RN50_AMP

# Seed 000, "All Results": 28 rows in the order printed.
RN50_ONEFLOW = {
    "1x1": ("383.8", "384.9", "385.1", "384.9", "383.7", "384.9", "382.3"),
    "1x8": ("2961.6", "2961.6", "2969.5", "2990.0", "3006.3", "2985.9", "2967.2"),
    "2x8": ("5915.6", "5921.0", "5862.3", "5974.3", "5906.6", "5826.5", "5859.8"),
    "4x8": ("11651.9", "11797.7", "11613.3", "11746.5", "11749.2", "11682.2", "11711.2"),
}
# Seeds 000 and 001, the same table in both.
RN50_ONEFLOW_FINAL = [
    ["1", "1", "128", "384.9", "1.00"],
    ["1", "8", "128", "2969.5", "7.71"],
    ["2", "8", "128", "5906.6", "15.35"],
    ["4", "8", "128", "11711.2", "30.43"],
]
# Seed 001; the speedup of 32 GPUs was divided from these numbers, after rounding.
BERT_ONEFLOW_FINAL = [
    ["1", "1", "96", "149.8", "1.00"],
    ["1", "8", "96", "1158.5", "7.73"],
    ["2", "8", "96", "2257.7", "15.07"],
    ["4", "8", "96", "4456.0", "29.75"],
]
RN50_AMP_FINAL = [
    ["1", "1", "256", "802.90", "1.00"],
    ["1", "4", "256", "3137.44", "3.91"],
    ["1", "8", "256", "6154.66", "7.67"],
    ["2", "8", "256", "11991.94", "14.94"],
    ["4", "8", "256", "22551.16", "28.09"],
]
# Seed 003 prints no trials of these two tables: each case is one trial with its median.
RN50_FP32_FINAL = [
    ["1", "1", "128", "367.29", "1.00"],
    ["1", "4", "128", "1449.48", "3.95"],
    ["1", "8", "128", "2887.65", "7.86"],
    ["2", "8", "128", "5716.79", "15.56"],
    ["4", "8", "128", "10917.09", "29.72"],
]
RN50_STATIC_FINAL = [
    ["1", "1", "256", "827.86", "1.00"],
    ["1", "4", "256", "3253.68", "3.93"],
    ["1", "8", "256", "6446.74", "7.79"],
]
# Seeds 000 and 002, `nvidia-smi topo -m`.
TOPOLOGY = """\
        GPU0    GPU1    GPU2    GPU3    GPU4    GPU5    GPU6    GPU7    mlx5_0  CPU Affinity
GPU0     X      NV1     NV1     NV2     NV2     SYS     SYS     SYS     NODE    0-11,24-35
GPU1    NV1      X      NV2     NV1     SYS     NV2     SYS     SYS     NODE    0-11,24-35
GPU2    NV1     NV2      X      NV2     SYS     SYS     NV1     SYS     PIX     0-11,24-35
GPU3    NV2     NV1     NV2      X      SYS     SYS     SYS     NV1     PIX     0-11,24-35
GPU4    NV2     SYS     SYS     SYS      X      NV1     NV1     NV2     SYS     12-23,36-47
GPU5    SYS     NV2     SYS     SYS     NV1      X      NV2     NV1     SYS     12-23,36-47
GPU6    SYS     SYS     NV1     SYS     NV1     NV2      X      NV2     SYS     12-23,36-47
GPU7    SYS     SYS     SYS     NV1     NV2     NV1     NV2      X      SYS     12-23,36-47
mlx5_0  NODE    NODE    PIX     PIX     SYS     SYS     SYS     SYS      X
"""


def the(name: str) -> Workload:
    """A workload of this package."""
    found = workloads.find(name)
    assert found is not None
    return found


def final(found: Report) -> list[list[str]]:
    """The medians and speedups of the only table, as rows of the documents."""
    shown = rows(report.markdown(found), "Cases at a glance")
    batch = str(found.results[0].case.micro_batch_size)
    return [
        [*row["case"].split("x"), batch, row["images/s"], row["speedup"].split(",")[0]]
        for row in shown
    ]


def medians(printed: Sequence[Sequence[str]]) -> dict[str, tuple[float]]:
    """One trial for each row of a table of medians."""
    return {f"{row[0]}x{row[1]}": (float(row[3]),) for row in printed}


def oneflow(values: Mapping[str, Sequence[float]], workload: str, batch: int) -> Report:
    """A report on FP32 by OneFlow."""
    found = results(values, precision="fp32", micro_batch_size=batch)
    return sweep(found, layout=the(workload).layout, trials_planned=7)


def test_oneflow_resnet50_has_the_documents_28_trials_and_their_medians() -> None:
    """Seed 000: every trial to the decimal, the medians of seven, and the speedups."""
    values = {place: tuple(map(float, said)) for place, said in RN50_ONEFLOW.items()}
    found = oneflow(values, "oneflow_rn50", 128)
    assert final(found) == RN50_ONEFLOW_FINAL
    every = rows(report.markdown(found), "All trials")
    assert [(row["case"], row["images/s"]) for row in every] == [
        (place, value) for place, said in RN50_ONEFLOW.items() for value in said
    ]
    assert len(every) == 28


def test_oneflow_resnet50_is_the_same_in_the_summary() -> None:
    """Seed 001 repeats the medians of seed 000."""
    assert final(oneflow(medians(RN50_ONEFLOW_FINAL), "oneflow_rn50", 128)) == RN50_ONEFLOW_FINAL


def test_oneflow_bert_has_the_documents_table() -> None:
    """Seed 001: from its printed medians, its printed speedups."""
    found = final(oneflow(medians(BERT_ONEFLOW_FINAL), "oneflow_bert", 96))
    assert found == BERT_ONEFLOW_FINAL


def test_oneflow_bert_from_unrounded_medians_differs_in_one_digit() -> None:
    """The later report prints 4455.97 and 149.84, whose quotient is 29.74; the report says why."""
    values = {"1x1": (149.84,), "1x8": (1158.51,), "2x8": (2257.71,), "4x8": (4455.97,)}
    found = oneflow(values, "oneflow_bert", 96)
    assert final(found) == [*BERT_ONEFLOW_FINAL[:3], ["4", "8", "96", "4456.0", "29.74"]]
    assert "both unrounded" in report.markdown(found)


def test_pytorch_amp_has_the_documents_table() -> None:
    """Seed 003, dynamic loss scale: medians of five and speedups."""
    assert final(sweep(results(RN50_AMP))) == RN50_AMP_FINAL


def test_pytorch_amp_has_the_documents_result_file() -> None:
    """Seed 003 prints this of its `_result.json`: averages, medians, speedups."""
    printed = {
        "1n1g": (801.31, 802.9, 1.0),
        "1n4g": (3133.7, 3137.44, 3.91),
        "1n8g": (6150.81, 6154.66, 7.67),
        "2n8g": (11979.95, 11991.94, 14.94),
        "4n8g": (22599.43, 22551.16, 28.09),
    }
    assert report.exports(sweep(results(RN50_AMP))) == {
        "_result.json": {
            "r50": {
                place: {
                    "average_speed": average,
                    "batch_size_per_device": 256,
                    "median_speed": median,
                    "speedup": speedup,
                }
                for place, (average, median, speedup) in printed.items()
            }
        }
    }


@pytest.mark.parametrize(
    ("printed", "fields"),
    [
        (RN50_FP32_FINAL, {"precision": "fp32", "micro_batch_size": 128}),
        (RN50_STATIC_FINAL, {"params": (("loss_scale", 128.0),)}),
    ],
)
def test_pytorch_fp32_and_static_loss_scale_have_the_documents_tables(
    printed: Sequence[Sequence[str]], fields: dict[str, object]
) -> None:
    """Seed 003: the medians give the printed speedups."""
    assert final(sweep(results(medians(printed), **fields))) == printed


def test_topology_is_written_as_the_driver_prints_it() -> None:
    """Seeds 000 and 002: what is read of the table gives the table, to the blank."""
    read = topology.parse(TOPOLOGY)
    assert node_facts.matrix(read.links, read.cpu_affinity) + "\n" == TOPOLOGY
    assert "CPU Affinity" not in node_facts.matrix(read.links, {})


def test_the_topology_stands_in_the_page_as_the_driver_prints_it() -> None:
    """To the blank, with CPU affinity."""
    read = topology.parse(TOPOLOGY)
    text = node_facts.matrix(read.links, read.cpu_affinity)
    found = sweep(results(RN50_AMP), topologies={"vs001": text, "vs002": text})
    page = report.html_page(found, "en", {})
    _, _, block = page.partition("<code>nvidia-smi topo -m</code> on vs[001-002]:")
    lines = re.findall("<code>(.*?)</code>", block.partition("</pre>")[0])
    assert lines == TOPOLOGY.splitlines()


def test_tensorflow_has_a_row_for_each_precision_and_batch() -> None:
    """FP32 numbers of DLPerf, XLA apart from what is without; a failed case is n/a."""
    values = {"1x1": (362.44,), "1x8": (2721.98,), "4x8": (9514.64,)}
    fp32 = results(values, precision="fp32", micro_batch_size=128, params=(("xla", False),))
    amp = results({"1x1": (None,), "4x8": (24734.22,)}, params=(("xla", True),))
    found = rows(report.markdown(sweep((*fp32, *amp))), "Cases at a glance")
    assert [(row["case"], row["images/s"], row["speedup"]) for row in found] == [
        ("1x1 FP32(BS=128, xla=False)", "362.44", "1.00"),
        ("1x8 FP32(BS=128, xla=False)", "2721.98", "7.51"),
        ("4x8 FP32(BS=128, xla=False)", "9514.64", "26.25"),
        ("1x1 AMP(BS=256, xla=True)", "n/a", "n/a"),
        ("4x8 AMP(BS=256, xla=True)", "24734.22", "n/a (no valid 1x1)"),
    ]
