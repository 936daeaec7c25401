"""The numbers of seed 002 on GPT, made again from what it prints of its trials."""

from dataclasses import replace

from orchestrator import report
from orchestrator.measuring import medians, validity
from orchestrator.model.case import Case
from orchestrator.model.report import Report
from orchestrator.model.result import Result
from orchestrator.workloads import oneflow_gpt
from tests.reported import LOG, rows, section, sweep, tables, trial

# Seed 002, "Test Case": one space for each border between two cells.
GPT_CASES = """\
DP DP_1x1x1_2_1536x16 1 1 1 1 1 2 2 1 2 1536 16 16
DP DP_8x1x1_16_1536x16 1 8 8 1 1 2 16 1 16 1536 16 16
DP DP_16x1x1_32_1536x16 2 8 16 1 1 2 32 1 32 1536 16 16
DP DP_32x1x1_64_1536x16 4 8 32 1 1 2 64 1 64 1536 16 16
MP MP_1x1x1_8_768x12 1 1 1 1 1 8 8 1 8 768 12 12
MP MP_1x8x1_16_1536x16 1 8 1 8 1 16 16 1 16 1536 16 16
MP MP_1x16x1_16_3072x16 2 8 1 16 1 16 16 1 16 3072 32 16
MP MP_1x32x1_16_3072x32 4 8 1 32 1 16 16 1 16 3072 32 32
2D 2D_8x1x1_16_1536x16 1 8 8 1 1 2 16 1 16 1536 16 16
2D 2D_1x8x1_16_1536x16 1 8 1 8 1 16 16 1 16 1536 16 16
2D 2D_2x4x1_16_1536x16 1 8 2 4 1 8 16 1 16 1536 16 16
2D 2D_4x2x1_16_1536x16 1 8 4 2 1 4 16 1 16 1536 16 16
2D 2D_2x8x1_16_2304x24 2 8 2 8 1 8 16 1 16 2304 24 24
2D 2D_4x8x1_32_2304x24 4 8 4 8 1 8 32 1 32 2304 24 24
PP DP_PP_8x1x4_512_1536x16 4 8 8 1 4 2 16 32 512 1536 16 16
PP MP_PP_1x8x4_512_2304x24 4 8 1 8 4 16 16 32 512 2304 24 24
PP 2D_PP_2x4x4_512_2304x24 4 8 2 4 4 8 16 32 512 2304 24 24
PP 2D_PP_2x8x2_512_2304x24 4 8 2 8 2 8 16 32 512 2304 24 24
"""
# Seed 002, "Test Result": latency in ms, memory in MiB, samples/s; and the TFLOP/s of each GPU in
# DLPerf's summary of the same measurements.
GPT_RESULTS = """\
406.16 11066 4.92 49.43
417.952 12404 38.28 48.03
489.674 12200 65.35 41.00
518.642 12208 123.4 38.71
525.214 7416 15.23 37.98
642.134 6264 24.92 31.26
4819.296 8678 3.32 7.25
9505.832 11256 1.68 3.57
417.902 12396 38.29 48.04
644.4 6264 24.83 31.15
539.696 6366 29.65 37.20
543.888 7368 29.42 36.91
1268.532 6998 12.61 23.81
1480.34 6996 21.62 20.41
4006.318 8712 127.8 40.09
19196.65 15670 26.67 25.18
13117.188 11958 39.03 36.85
14375.352 10708 35.62 33.62
"""


UNIT = oneflow_gpt.WORKLOAD.unit


def gpt() -> tuple[Result, ...]:
    """The 18 cases of seed 002, each measured once with its printed latency and memory."""
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
        once = replace(
            trial(case, 1, samples_per_s),
            path=f"logs/{oneflow_gpt.stem(case)}_1.log",
            log=log,
        )
        found.append(medians.result(case, [once]))
    return tuple(found)


def gpt_report() -> Report:
    """The report of those 18 cases."""
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
    """What both tables of cases show of each, without escapes."""
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
        assert (row[UNIT], row["TFLOP/s per GPU"]) == (throughput, tflops)
    assert shown[0]["of peak"] == "39.5%"  # 49.43 of the 125 of a V100
    text = report.markdown(gpt_report())
    assert "publishes, without sparsity: 125 (AMP)." in text
    assert "over the rows that the program prints from step 60 to 100" in text
    assert "All cases" not in text


def test_gpt_logs_stand_with_their_cases() -> None:
    """Seed 002, "Test Logs": two cases of one shape have two logs, not one."""
    every = rows(report.markdown(gpt_report()).replace("\\", ""), "Evidence of each trial")
    logs = {row["case"]: row["log"] for row in every}
    assert len(set(logs.values())) == len(logs) == 18
    assert (
        "pretrain_gpt_1n8d_dp8_mp1_pp1_mbz2_gbz16_s2048_l16_h1536_nh16"
        in logs["2D_8x1x1_16_1536x16"]
    )


def test_gpt_cases_without_names_or_numbers_stay_readable() -> None:
    """A folder of logs may not tell names; a failed case has no number; no peak, no share of it."""
    said = gpt_report()
    one, *_, last = said.results
    bare = replace(one.case, params=())
    failed = medians.result(last.case, [trial(last.case, 1, None)])
    found = replace(
        said,
        results=(replace(one, case=bare), failed),
        names={last.case: "2D_PP_2x8x2_512_2304x24"},
        peak_tflops={},
    )
    first, second = shown_cases(found)
    settings = "AMP(BS=2, accumulation_steps=1, tensor_parallel=1, pipeline_parallel=1)"
    keys = ("case", UNIT, "latency", "peak memory")
    assert [first[key] for key in keys] == [
        *(f"1x1 {settings}", "4.92", "406.16 (ms)", "11066 (MiB)"),
    ]
    assert [second[key] for key in keys] == ["2D_PP_2x8x2_512_2304x24", "n/a", "", ""]
    assert "of peak" not in first
    assert "TFLOP/s per GPU" not in report.markdown(replace(found, step_flops={}))
