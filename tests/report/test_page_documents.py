"""Every table of DLPerf's documents is found in report.html, with the numbers that they print."""

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace

from orchestrator import report
from orchestrator.model.report import Report
from orchestrator.probes import topology
from tests.report.test_documents import (
    GPUS,
    RN50_AMP_FINAL,
    RN50_FP32_FINAL,
    RN50_ONEFLOW,
    RN50_ONEFLOW_FINAL,
    TOPOLOGY,
    medians,
    oneflow,
)
from tests.report.test_documents_gpt import GPT_CASES, GPT_RESULTS, gpt_report
from tests.reported import results, sweep
from tests.seeds import RN50_AMP


def tables(found: Report) -> dict[str, list[list[str]]]:
    """Rows of cells of every table of a page, by its name, which begins with its section's."""
    page = report.html_page(found, "en", {})
    pattern = r'aria-label="Table: ([^"]*)"><table>(.*?)</table>'
    return {
        html.unescape(name): [
            ["".join(cell.itertext()) for cell in row]
            for row in ET.fromstring(f"<table>{rows}</table>").iter("tr")
        ]
        for name, rows in re.findall(pattern, page, re.DOTALL)
    }


def of(found: dict[str, list[list[str]]], words: str) -> list[list[str]]:
    """The one table whose name begins so."""
    (rows,) = (rows for name, rows in found.items() if name.startswith(words))
    return rows


def columns(rows: Sequence[Sequence[str]], count: int) -> list[list[str]]:
    """The first cells of every row below the head."""
    return [[*row[:count]] for row in rows[1:]]


def test_seeds_000_and_001_medians_and_28_trials() -> None:
    """Final Result with speedups, and All Results."""
    printed = {case: [*map(float, values)] for case, values in RN50_ONEFLOW.items()}
    found = tables(oneflow(printed, "oneflow_rn50", 128))
    shown = columns(of(found, "Final Result: FP32, batch size 128"), 5)
    assert [[*row[:3], float(row[3]), row[4]] for row in shown] == [
        [*row[:3], float(row[3]), row[4]] for row in RN50_ONEFLOW_FINAL
    ]
    for place, values in printed.items():
        assert trials(found, "FP32, batch size 128", place) == values


def trials(found: dict[str, list[list[str]]], series: str, place: str) -> list[float]:
    """The numbers of all trials of a case."""
    rows = of(found, f"All Results: {series}")[1:]
    return [float(row[3]) for row in rows if row[:2] == place.split("x")]


def named(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows of cases, each with its group, which has a row of its own, before its name."""
    found, title = [], ""
    for first, *rest in rows[1:]:
        title = first or title
        found += [[title, *rest]] if any(rest) else []
    return found


def test_seed_003_medians_of_each_precision() -> None:
    """FP32 beside AMP, a table of its own for each; and the trials that it prints of AMP."""
    fp32 = results(medians(RN50_FP32_FINAL), precision="fp32", micro_batch_size=128)
    found = tables(sweep((*fp32, *results(RN50_AMP))))
    assert columns(of(found, "Final Result: FP32"), 5) == RN50_FP32_FINAL
    assert columns(of(found, "Final Result: AMP"), 5) == RN50_AMP_FINAL
    for place, values in RN50_AMP.items():
        assert trials(found, "AMP", place) == [*values]


def test_seed_002_cases_logs_and_results() -> None:
    """14 columns of settings, the log of each, latency, memory and samples a second."""
    found = tables(gpt_report())
    settings = of(found, "Test Cases")
    assert named(settings) == [line.split() for line in GPT_CASES.splitlines()]
    assert settings[0][2:] == [
        *("num-nodes", "num-gpus-per-node", "data-parallel-size", "tensor-model-parallel-size"),
        *("pipeline-model-parallel-size", "micro-batch-size"),
        *("micro-batch-size-times-data-parallel-size", "num-accumulation-steps"),
        *("global-batch-size", "hidden-size", "num-attention-heads", "num-layers"),
    ]
    shown = {row[1]: row[2:5] for row in named(of(found, "Test Results"))}
    logs = {row[1]: row[2] for row in named(of(found, "Test Logs"))}
    for case, line in zip(GPT_CASES.splitlines(), GPT_RESULTS.splitlines(), strict=True):
        name, (latency, memory, throughput, _) = case.split()[1], line.split()
        assert shown[name] == [f"{latency} (ms)", f"{memory} (MiB)", throughput]
        assert logs[name].endswith(".log")


def test_seed_004_tables_by_number_of_gpus() -> None:
    """Throughputs and speedups, a row per number of GPUs and a column per precision and batch."""
    values = {"1x1": (362.44,), "1x8": (2721.98,), "4x8": (9514.64,)}
    fp32 = results(values, precision="fp32", micro_batch_size=128)
    amp = results({"4x8": (24734.22,)}, micro_batch_size=224)
    found = tables(sweep((*fp32, *amp), layout=GPUS))
    assert of(found, "Final Result: Training throughput (images/s)") == [
        ["GPUs", "FP32(BS=128)", "AMP(BS=224)"],
        ["1", "362.44", "-"],
        ["8", "2721.98", "-"],
        ["32", "9514.64", "24734.22"],
    ]
    assert columns(of(found, "Final Result: Speedup over one GPU"), 2) == [
        ["1", "1.00"],
        ["8", "7.51"],
        ["32", "26.25"],
    ]


def test_the_topology_stands_as_the_driver_prints_it() -> None:
    """Seeds 000 and 002: `nvidia-smi topo -m` to the blank, with CPU affinity."""
    read = topology.parse(TOPOLOGY)
    text = report.matrix(read.links, read.cpu_affinity)
    found = replace(sweep(results(RN50_AMP)), topologies={"vs001": text, "vs002": text})
    page = report.html_page(found, "en", {})
    _, _, block = page.partition("<code>nvidia-smi topo -m</code> on vs[001-002]:")
    lines = re.findall("<code>(.*?)</code>", block.partition("</pre>")[0])
    assert lines == TOPOLOGY.splitlines()
