"""Tables of results and trials in the three forms of DLPerf's documents.

Sources: DLPerf's reports on ResNet-50 of NGC PyTorch (by placement), of NGC TensorFlow (by number
of GPUs), and on OneFlow GPT (named cases in groups), with their heads spelled right.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from orchestrator.model.case import Case
from orchestrator.model.result import Result
from orchestrator.report import labels, rounding
from orchestrator.report.page import Page
from orchestrator.report.tables import TRIAL, case_anchor, speedup, throughput_span, trial_cells
from orchestrator.report.tree import Block, Paragraph, Row, Span, Table

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


def sections(page: Page) -> Iterable[tuple[str, Iterable[Block]]]:
    """Yield the tables of DLPerf's documents by the keys of their headings."""
    if not page.report.results:
        return
    if page.report.layout.kind == "groups":
        yield from _of_groups(page)
        return
    place = (*_place_heads(page), page.report.layout.throughput)
    if page.report.layout.kind == "gpus":
        final = _by_gpus(page)
    else:
        final = _of_series(page, (*place, *page.heads("speedup")), lambda it: [_medians(page, it)])
    yield "final", [Paragraph([page.say("final.how", unit=page.report.unit)]), *final]
    head = (*place, *page.heads(*TRIAL))
    yield "all", _of_series(page, head, lambda result: _trials(page, result))


def _by_gpus(page: Page) -> Iterable[Table]:
    """Yield the tables of throughput and speedup with a row for each number of GPUs."""
    unit = page.say("by_gpus", unit=page.report.unit)

    def throughput(result: Result) -> str:
        planned = all(trial.state == "planned" for trial in result.trials)
        return "-" if planned else rounding.throughput(page.report, result.median)

    def ratio(result: Result) -> str:
        return "-" if result.speedup is None else rounding.fixed(result.speedup, 2)

    yield from (_wide(page, unit, throughput), _wide(page, page.say("speedups"), ratio))


def _of_series(
    page: Page, head: Sequence[str], rows: Callable[[Result], Iterable[Row]]
) -> Iterable[Table]:
    """Yield a table for each group of cases that differ only in placement."""
    for group in labels.series(page.report):
        every = [row for result in group for row in rows(result)]
        yield Table(labels.of_series(page, group), head, every)


def _of_groups(page: Page) -> Iterable[tuple[str, Iterable[Block]]]:
    """Yield the tables of named cases: medians, settings, logs, and every trial."""
    report = page.report
    flops = ("tflops",) if report.step_flops else ()
    peak = ("of_peak",) if report.step_flops and report.peak_tflops else ()
    throughput, own = report.layout.throughput, page.heads("latency", "memory")

    def medians(result: Result) -> Row:
        tflops, most = report.tflops_per_gpu(result), report.peak_tflops.get(result.case)
        share = rounding.share(tflops / most if tflops is not None and most else None)
        return (
            _latency(result.latency_s),
            rounding.memory(result.memory_mib),
            _median(page, result),
            *([rounding.fixed(tflops, 2)] if flops else []),
            *([share] if peak else []),
        )

    def trials(result: Result) -> Iterable[Row]:
        for trial, row in zip(result.trials, _trials(page, result), strict=True):
            yield _latency(trial.latency_s), rounding.memory(trial.memory_mib), *row[3:]

    def logs(result: Result) -> Iterable[Row]:
        for trial in result.trials:
            if trial.evidence:
                yield (Span(trial.evidence.log, log=trial.evidence.log),)

    head = (*own, throughput, *page.heads(*flops, *peak))
    unit = Paragraph([page.say("final.how", unit=report.unit)])
    yield "results", [unit, _grouped(page, "results", head, lambda it: [medians(it)])]
    settings = (*CASE_HEADS, *PARAMS)
    yield "cases", [_grouped(page, "cases", settings, lambda it: [_settings(it.case)])]
    yield "logs", [_grouped(page, "logs", page.heads("log"), logs)]
    yield "all", [_grouped(page, "all", (*own, throughput, *page.heads(*TRIAL)), trials)]


def _trials(page: Page, result: Result) -> Iterable[Row]:
    """Yield place, throughput, repeat, state and codes of each trial."""
    place = case_anchor(page, result)
    for trial in result.trials:
        number = throughput_span(page, place, trial)
        yield *_place(result), number, *trial_cells(page, trial)


def _medians(page: Page, result: Result) -> Row:
    return *_place(result), _median(page, result), speedup(page, result)


def _median(page: Page, result: Result) -> Span:
    return Span(rounding.throughput(page.report, result.median), case_anchor(page, result))


def _latency(seconds: float | None) -> str:
    """Format the time of a step."""
    return rounding.NONE if seconds is None else f"{rounding.short(seconds * 1000, 3)} (ms)"


def _place_heads(page: Page) -> tuple[str, ...]:
    layout = page.report.layout
    if not page.has_gpus:
        return page.heads("nodes", "processes_per_node", "batch_per_process")
    return layout.nodes, layout.gpus, layout.batch


def _place(result: Result) -> tuple[str, ...]:
    case = result.case
    return str(case.nodes), str(case.gpus_per_node), str(case.micro_batch_size)


def _wide(page: Page, title: str, cell: Callable[[Result], str]) -> Table:
    """Build a table with a column for each series."""
    columns = labels.series(page.report)
    heads = [labels.of_settings(page.report, column[0].case) for column in columns]
    by_place = [{result.case.placement: result for result in column} for column in columns]
    sizes = {it.case.placement: it.case.world_size for it in page.report.results}
    times = Counter(sizes.values())
    rows = [
        (
            str(size) if times[size] == 1 else f"{size} ({place})",
            *(cell(found[place]) if place in found else "-" for found in by_place),
        )
        for place, size in sizes.items()
    ]
    return Table(title, (*page.heads("gpus"), *heads), rows)


def _grouped(
    page: Page, key: str, heads: Sequence[str], rows: Callable[[Result], Iterable[Row]]
) -> Table:
    """Build a table of named cases, the name of each group in a row of its own."""
    groups: dict[str, list[Result]] = {}
    for result in page.report.results:
        groups.setdefault(_group(page, result), []).append(result)
    head = (*page.heads("group", "case"), *heads)
    lines: list[Row] = []
    for title, members in groups.items():
        lines.append((title, *[""] * (len(head) - 1)))
        for result in members:
            lines += [("", labels.of_case(page.report, result), *row) for row in rows(result)]
    return Table(page.say(key), head, lines)


def _group(page: Page, result: Result) -> str:
    """Return a case's parameter ``group``, else what its name has before the split.

    2D_PP_2x4x4_512_2304x24 is of PP.
    """
    given = result.case.given.get("group")
    match = _SPLIT.search(page.report.names.get(result.case, ""))
    return str(given) if given else match[1] if match else "-"


def _settings(case: Case) -> tuple[str, ...]:
    """Return the cells of ``CASE_HEADS`` and ``PARAMS``."""
    sizes = (
        *(case.nodes, case.gpus_per_node, case.data_parallel, case.tensor_parallel),
        *(case.pipeline_parallel, case.micro_batch_size),
        *(case.micro_batch_size * case.data_parallel, case.accumulation_steps),
        case.global_batch_size,
    )
    params = (case.given.get(name, rounding.NONE) for name in PARAMS.values())
    return (*map(str, sizes), *map(str, params))
