"""Tables of named cases in groups: settings, logs and results.

Source: the form of DLPerf's report on OneFlow GPT, with its heads spelt right.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from orchestrator.model.case import Case
from orchestrator.model.result import Result
from orchestrator.report import cells, rounding
from orchestrator.report.markdown_page import Page, escaped, table

CASE_HEADS = (
    *("num-nodes", "num-gpus-per-node", "data-parallel-size", "tensor-model-parallel-size"),
    *("pipeline-model-parallel-size", "micro-batch-size"),
    *("micro-batch-size-times-data-parallel-size", "num-accumulation-steps", "global-batch-size"),
)
PARAMS = {
    "hidden-size": "hidden_size",
    "num-attention-heads": "num_attention_heads",
    "num-layers": "num_layers",
}
_SPLIT = re.compile(r"([^_]+)_[0-9]+x[0-9]+x[0-9]+_")


def cases(page: Page) -> str:
    """The settings of cases."""
    head = (*page.heads("group", "case"), *CASE_HEADS, *PARAMS)
    return _grouped(page, head, lambda result: [list(map(escaped, settings(result.case)))])


def logs(page: Page) -> str:
    """The logs of cases; one that is missing is not listed."""
    return _grouped(page, page.heads("group", "case", "log"), _logs)


def results(page: Page) -> str:
    """Latency, memory and throughput of cases, and the columns that we add."""
    report = page.report
    flops = ("tflops",) if report.step_flops else ()
    peak = ("of_peak",) if report.step_flops and report.peak_tflops else ()
    head = (
        *page.heads("group", "case", "latency", "memory"),
        report.layout.throughput,
        *page.heads(*flops, *peak, "trials"),
    )
    return _grouped(page, head, lambda result: [_measured(page, result)])


def every_trial(page: Page) -> str:
    """Latency, memory and throughput of every trial, each with its state."""
    heads = (*page.heads("group", "case", "latency", "memory"), page.report.layout.throughput)
    return _grouped(
        page,
        (*heads, *page.heads(*cells.TRIAL)),
        lambda result: [
            (
                latency(trial.latency_s),
                memory(trial.memory_mib),
                rounding.short(trial.throughput, page.report.layout.decimals),
                *cells.trial(page, trial),
            )
            for trial in result.trials
        ],
    )


def name(page: Page, result: Result) -> str:
    """What the benchmark calls a case, else its placement."""
    return page.report.names.get(result.case, "") or result.case.token


def group(page: Page, result: Result) -> str:
    """The group of a case: its parameter, else what its name says before the split.

    2D_PP_2x4x4_512_2304x24 is of PP.
    """
    given = result.case.given.get("group")
    match = _SPLIT.search(name(page, result))
    return str(given) if given else match[1] if match else "-"


def _grouped(
    page: Page, head: Sequence[str], rows: Callable[[Result], Sequence[Sequence[str]]]
) -> str:
    lines: list[Sequence[str]] = []
    for title, members in _groups(page):
        lines.append((escaped(title), *[""] * (len(head) - 1)))
        for result in members:
            lines += [("", escaped(name(page, result)), *row) for row in rows(result)]
    return table(head, lines)


def _groups(page: Page) -> Iterable[tuple[str, Sequence[Result]]]:
    by_group: dict[str, list[Result]] = {}
    for result in page.report.results:
        by_group.setdefault(group(page, result), []).append(result)
    return by_group.items()


def settings(case: Case) -> tuple[str, ...]:
    """The cells of ``CASE_HEADS`` and ``PARAMS``."""
    sizes = (
        *(case.nodes, case.gpus_per_node, case.data_parallel, case.tensor_parallel),
        *(case.pipeline_parallel, case.micro_batch_size),
        *(case.micro_batch_size * case.data_parallel, case.accumulation_steps),
        case.global_batch_size,
    )
    params = (case.given.get(name, rounding.NONE) for name in PARAMS.values())
    return (*map(str, sizes), *map(str, params))


def _logs(result: Result) -> Sequence[Sequence[str]]:
    return [(escaped(trial.evidence.log),) for trial in result.trials if trial.evidence]


def _measured(page: Page, result: Result) -> Sequence[str]:
    report = page.report
    tflops, peak = report.tflops_per_gpu(result), report.peak_tflops.get(result.case)
    ours: tuple[str, ...] = ()
    if report.step_flops:
        ours = (rounding.fixed(tflops, 2),)
    if report.step_flops and report.peak_tflops:
        ours += (rounding.share(tflops / peak if tflops is not None and peak else None),)
    return (
        latency(result.latency_s),
        memory(result.memory_mib),
        rounding.short(result.median, report.layout.decimals),
        *ours,
        rounding.of_trials(report, result, page.language),
    )


def latency(seconds: float | None) -> str:
    """Of a step, in milliseconds."""
    return rounding.NONE if seconds is None else f"{rounding.short(seconds * 1000, 3)} (ms)"


def memory(mib: int | None) -> str:
    """The largest use of a GPU, with its unit."""
    return rounding.NONE if mib is None else f"{mib} (MiB)"
