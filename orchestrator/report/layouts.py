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
from orchestrator.report.markdown_page import Page
from orchestrator.report.tables import (
    TRIAL,
    Cell,
    Row,
    Table,
    case_anchor,
    throughput_cell,
    trial_cells,
)

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


def results(page: Page) -> list[Table]:
    """Build the tables of medians: by name in groups, else one for each series."""
    if page.report.layout.kind == "groups":
        return [_of_groups(page)] if page.report.results else []
    return [_of_series(page, group) for group in labels.series(page.report)]


def trials(page: Page) -> list[Table]:
    """Build the tables of every trial, in the same groups."""
    throughput = page.report.layout.throughput
    if page.report.layout.kind == "groups":
        heads = (*page.heads("group", "case", "latency", "memory"), throughput, *page.heads(*TRIAL))
        return [_grouped(page, "all", heads, lambda result: list(_trials(page, result)))]
    head = (*_place_heads(page), throughput, *page.heads(*TRIAL))
    return [
        Table(
            labels.of_series(page, group),
            head,
            [(*_place(result), *row[2:]) for result in group for row in _trials(page, result)],
        )
        for group in labels.series(page.report)
    ]


def by_gpus(page: Page) -> list[Table]:
    """Build the tables of throughput and speedup with a row for each number of GPUs."""
    if page.report.layout.kind != "gpus" or not page.report.results:
        return []
    unit = page.say("by_gpus", unit=page.report.unit)

    def throughput(result: Result) -> str:
        planned = all(trial.state == "planned" for trial in result.trials)
        return "-" if planned else rounding.throughput(page.report, result.median)

    def speedup(result: Result) -> str:
        return "-" if result.speedup is None else rounding.fixed(result.speedup, 2)

    return [_wide(page, unit, throughput), _wide(page, page.say("speedups"), speedup)]


def cases(page: Page) -> Table:
    """Build the table of the settings of named cases."""
    head = (*page.heads("group", "case"), *CASE_HEADS, *PARAMS)
    return _grouped(page, "cases", head, lambda result: [_settings(result.case)])


def logs(page: Page) -> Table:
    """Build the table of the logs of named cases; one that is missing is not listed."""
    return _grouped(
        page,
        "logs",
        page.heads("group", "case", "log"),
        lambda result: [
            (Cell(trial.evidence.log, log=trial.evidence.log),)
            for trial in result.trials
            if trial.evidence
        ],
    )


def _of_series(page: Page, group: Sequence[Result]) -> Table:
    further = page.heads("speedup", "efficiency", "trials")
    return Table(
        labels.of_series(page, group),
        (*_place_heads(page), page.report.layout.throughput, *further),
        [
            (
                *_place(result),
                _median(page, result),
                _speedup(page, result),
                rounding.share(result.efficiency),
                rounding.of_trials(page.report, result, page.language),
            )
            for result in group
        ],
    )


def _of_groups(page: Page) -> Table:
    report = page.report
    flops = ("tflops",) if report.step_flops else ()
    peak = ("of_peak",) if report.step_flops and report.peak_tflops else ()
    heads = page.heads("group", "case", "latency", "memory")
    head = (*heads, report.layout.throughput, *page.heads(*flops, *peak, "trials"))

    def row(result: Result) -> Row:
        tflops, most = report.tflops_per_gpu(result), report.peak_tflops.get(result.case)
        share = rounding.share(tflops / most if tflops is not None and most else None)
        return (
            _latency(result.latency_s),
            _memory(result.memory_mib),
            _median(page, result),
            *([rounding.fixed(tflops, 2)] if flops else []),
            *([share] if peak else []),
            rounding.of_trials(report, result, page.language),
        )

    return _grouped(page, "results", head, lambda result: [row(result)])


def _trials(page: Page, result: Result) -> Iterable[Row]:
    """Yield latency, memory, throughput, repeat, state and codes of each trial."""
    place = case_anchor(page, result)
    for trial in result.trials:
        number = throughput_cell(page, place, trial)
        latency, memory = _latency(trial.latency_s), _memory(trial.memory_mib)
        yield (latency, memory, number, *trial_cells(page, trial))


def _median(page: Page, result: Result) -> Cell:
    return Cell(rounding.throughput(page.report, result.median), case_anchor(page, result))


def _speedup(page: Page, result: Result) -> str:
    if result.speedup is not None:
        return rounding.fixed(result.speedup, 2)
    return page.say("no_baseline") if result.statistics else rounding.NONE


def _latency(seconds: float | None) -> str:
    """Format the time of a step."""
    return rounding.NONE if seconds is None else f"{rounding.short(seconds * 1000, 3)} (ms)"


def _memory(mib: int | None) -> str:
    """Format the largest use of a GPU."""
    return rounding.NONE if mib is None else f"{mib} (MiB)"


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
    page: Page, key: str, head: Sequence[str], rows: Callable[[Result], Iterable[Row]]
) -> Table:
    """Build a table of named cases, the name of each group in a row of its own."""
    groups: dict[str, list[Result]] = {}
    for result in page.report.results:
        groups.setdefault(_group(page, result), []).append(result)
    lines: list[Row] = []
    for title, members in groups.items():
        lines.append((title, *[""] * (len(head) - 1)))
        for result in members:
            lines += [("", _name(page, result), *row) for row in rows(result)]
    return Table(page.say(key), head, lines)


def _name(page: Page, result: Result) -> str:
    """Return what the benchmark calls a case, else its placement."""
    return page.report.names.get(result.case, "") or result.case.token


def _group(page: Page, result: Result) -> str:
    """Return a case's parameter ``group``, else what its name has before the split.

    2D_PP_2x4x4_512_2304x24 is of PP.
    """
    given = result.case.given.get("group")
    match = _SPLIT.search(_name(page, result))
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
