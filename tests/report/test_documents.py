"""The numbers of DLPerf's documents, made again from what they print of their trials.

Expected rows are typed from the documents.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator import report, workloads
from orchestrator.measuring import medians, validity
from orchestrator.model.case import Case
from orchestrator.model.report import Report
from orchestrator.model.result import Result
from orchestrator.probes import topology
from orchestrator.report import node_facts
from orchestrator.workloads import oneflow_gpt
from tests.reported import LOG, RN50_AMP, results, rows, section, sweep, tables, trial

PRINTED: Any = yaml.safe_load((Path(__file__).parent / "documents.yaml").read_text())
TABLES = {
    name: [line.split() for line in table.splitlines()] for name, table in PRINTED["tables"].items()
}
GPT_CASES, GPT_RESULTS = PRINTED["gpt_cases"], PRINTED["gpt_results"]
TOPOLOGY = PRINTED["topology"]


def final(found: Report) -> list[list[str]]:
    """Return the medians and speedups of the only table as rows of the documents."""
    shown = rows(report.markdown(found), "Cases at a glance")
    batch = str(found.results[0].case.micro_batch_size)
    return [
        [*row["case"].split("x"), batch, row["images/s"], row["speedup"].split(",")[0]]
        for row in shown
    ]


def of_medians(printed: Sequence[Sequence[str]]) -> dict[str, tuple[float]]:
    """Return one trial for each row of a table of medians."""
    return {f"{row[0]}x{row[1]}": (float(row[3]),) for row in printed}


def oneflow(values: Mapping[str, Sequence[float]], workload: str, batch: int) -> Report:
    """Return a report on FP32 by OneFlow."""
    found, own = results(values, precision="fp32", micro_batch_size=batch), workloads.find(workload)
    assert own is not None
    return sweep(found, layout=own.layout, trials_planned=7)


RN50_TRIALS = {
    place: tuple(map(float, said.split())) for place, said in PRINTED["oneflow_trials"].items()
}
UNROUNDED = {"1x1": (149.84,), "1x8": (1158.51,), "2x8": (2257.71,), "4x8": (4455.97,)}
FP32 = {"precision": "fp32", "micro_batch_size": 128}


@pytest.mark.parametrize(
    ("found", "printed"),
    [
        (oneflow(RN50_TRIALS, "oneflow_rn50", 128), TABLES["RN50_ONEFLOW"]),
        (oneflow(of_medians(TABLES["RN50_ONEFLOW"]), "oneflow_rn50", 128), TABLES["RN50_ONEFLOW"]),
        (oneflow(of_medians(TABLES["BERT_ONEFLOW"]), "oneflow_bert", 96), TABLES["BERT_ONEFLOW"]),
        # The later report prints 4455.97 and 149.84, whose quotient is 29.74.
        (
            oneflow(UNROUNDED, "oneflow_bert", 96),
            [*TABLES["BERT_ONEFLOW"][:3], ["4", "8", "96", "4456.0", "29.74"]],
        ),
        (sweep(results(RN50_AMP)), TABLES["RN50_AMP"]),
        (sweep(results(of_medians(TABLES["RN50_FP32"]), **FP32)), TABLES["RN50_FP32"]),
        (
            sweep(results(of_medians(TABLES["RN50_STATIC"]), params=(("loss_scale", 128.0),))),
            TABLES["RN50_STATIC"],
        ),
    ],
    ids=["rn50", "rn50 medians", "bert", "bert unrounded", "amp", "fp32", "static loss scale"],
)
def test_a_report_has_the_documents_table(found: Report, printed: list[list[str]]) -> None:
    """Medians and speedups of each trial that a document prints; else from its medians."""
    assert final(found) == printed


def test_every_trial_of_oneflow_resnet50_is_there_to_the_decimal() -> None:
    """Seed 000 prints 28."""
    every = rows(report.markdown(oneflow(RN50_TRIALS, "oneflow_rn50", 128)), "All trials")
    assert [(row["case"], row["images/s"]) for row in every] == [
        (place, value)
        for place, said in PRINTED["oneflow_trials"].items()
        for value in said.split()
    ]


def test_pytorch_amp_has_the_documents_result_file() -> None:
    """Seed 003 prints this of its `_result.json`: averages, medians, speedups."""
    keys, cases = ("average_speed", "median_speed", "speedup"), {}
    for place, *said in map(str.split, PRINTED["result_file"].splitlines()):
        numbers = dict(zip(keys, map(float, said), strict=True))
        cases[place] = {"batch_size_per_device": 256, **numbers}
    assert report.exports(sweep(results(RN50_AMP))) == {"_result.json": {"r50": cases}}


def test_topology_is_written_as_the_driver_prints_it() -> None:
    """Seeds 000 and 002: what is read of the table gives the table, to the blank."""
    read = topology.parse(TOPOLOGY)
    assert node_facts.matrix(read.links, read.cpu_affinity) + "\n" == TOPOLOGY
    assert "CPU Affinity" not in node_facts.matrix(read.links, {})
    text = node_facts.matrix(read.links, read.cpu_affinity)
    page = report.html_page(sweep((), topologies={"vs001": text, "vs002": text}), "en", {})
    _, _, block = page.partition("<code>nvidia-smi topo -m</code> on vs[001-002]:")
    assert re.findall("<code>(.*?)</code>", block.partition("</pre>")[0]) == TOPOLOGY.splitlines()


def gpt() -> tuple[Result, ...]:
    """Return the 18 cases of seed 002, each measured once with its printed latency and memory."""
    found = []
    for asked, said in zip(GPT_CASES.splitlines(), GPT_RESULTS.splitlines(), strict=True):
        group, _, *sizes = asked.split()
        nodes, gpus, _, tensor, pipeline, micro, _, steps, _, hidden, heads, layers = map(
            int, sizes
        )
        shape = (("num_layers", layers), ("hidden_size", hidden), ("num_attention_heads", heads))
        case = Case(
            nodes=nodes,
            gpus_per_node=gpus,
            micro_batch_size=micro,
            precision="amp",
            device="cuda",
            accumulation_steps=steps,
            tensor_parallel=tensor,
            pipeline_parallel=pipeline,
            params=(("group", group), *shape),
        )
        milliseconds, memory = said.split()[:2]
        log = replace(
            LOG,
            rule="latency",
            latency_s=float(milliseconds) / 1000,
            memory_mib=int(memory),
            lines=None,
            window=(60, 100),
        )
        samples_per_s, _ = validity.value(log, case.global_batch_size)
        path = f"logs/{oneflow_gpt.stem(case)}_1.log"
        once = replace(trial(case, 1, samples_per_s), path=path, log=log)
        found.append(medians.result(case, [once]))
    return tuple(found)


def gpt_report() -> Report:
    """Return the report of those 18 cases."""
    found, workload = gpt(), oneflow_gpt.WORKLOAD
    return sweep(
        found,
        layout=workload.layout,
        names={result.case: oneflow_gpt.case_name(result.case) for result in found},
        step_flops={result.case: oneflow_gpt.step_flops(result.case) for result in found},
        peak_tflops={result.case: 125.0 for result in found},
        unit=workload.unit,
        rule="latency",
        window=(60, 100),
    )


def shown_cases(found: Report) -> list[dict[str, str]]:
    """Return what both tables of cases show of each, without escapes."""
    text = section(report.markdown(found), "Cases at a glance").replace("\\", "")
    (head, *cells), (more, *others) = tables(text)
    return [
        dict(zip((*head, *more), (*first, *second), strict=True))
        for first, second in zip(cells, others, strict=True)
    ]


def test_gpt_results_have_the_documents_18_rows() -> None:
    """Seed 002, "Test Result": from the latency the throughput, each as printed."""
    shown = shown_cases(gpt_report())
    for row, asked, said in zip(
        shown, GPT_CASES.splitlines(), GPT_RESULTS.splitlines(), strict=True
    ):
        _, name, nodes, gpus, *_ = asked.split()
        latency, memory, throughput, tflops = said.split()
        assert (row["case"], row["nodes x GPUs"]) == (name, f"{nodes}x{gpus}")
        assert (row["latency"], row["peak memory"]) == (f"{latency} (ms)", f"{memory} (MiB)")
        unit = oneflow_gpt.WORKLOAD.unit
        assert (row[unit], row["TFLOP/s per GPU"]) == (throughput, tflops)
    assert shown[0]["of peak"] == "39.5%"  # 49.43 of the 125 of a V100


def test_gpt_logs_stand_with_their_cases() -> None:
    """Seed 002, "Test Logs": two cases of one shape have two logs, not one."""
    every = rows(report.markdown(gpt_report()).replace("\\", ""), "Evidence of each trial")
    logs = {row["case"]: row["log"] for row in every}
    assert len(set(logs.values())) == len(logs) == 18
    stem = "pretrain_gpt_1n8d_dp8_mp1_pp1_mbz2_gbz16_s2048_l16_h1536_nh16"
    assert stem in logs["2D_8x1x1_16_1536x16"]
