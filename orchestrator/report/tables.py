"""Tables of a report as values, the same for every format."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from orchestrator import nodeset, words
from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.model.result import Measurement, Result
from orchestrator.report import labels
from orchestrator.report.page import Page
from orchestrator.report.tree import Paragraph, Span, Table, Words, text

MEDIANS = {
    "sm_clock": ("sm_mhz", 0),
    "memory_clock": ("memory_mhz", 0),
    "power": ("power_w", 0),
    "temperature": ("temperature_c", 0),
    "utilisation": ("utilisation_pct", 0),
    "load": ("load", 1),
    "others": ("others_cpus", 1),
}
"""By column, the field of a state that its median is of, and how many decimals are printed."""
TABLES = {
    ("Clocks, power and limits", "时钟、功率与限制"): (*[*MEDIANS][:5], "limits", "energy"),
    ("Processors", "处理器"): ("moments", "load", "others", "steal"),
}


def case_anchor(page: Page, result: Result) -> str:
    """Return the place in report.html of the trials of a case."""
    return f"case-{page.report.results.index(result) + 1}"


def case_span(page: Page, result: Result) -> Span:
    """Return the name of a case, which leads to its trials."""
    return Span(labels.of_case(page.report, result), case_anchor(page, result))


def results(page: Page) -> Table:
    """Build the table with a row for each case that says all that its number is worth."""
    keys = ("interval", "spread", "speedup", "efficiency", "trials", "memory", "transport")
    head = (*page.heads("case"), page.report.unit, *page.heads(*keys, "marks", "published"))
    return Table("", head, [_result(page, result) for result in page.report.results])


def _result(page: Page, result: Result) -> Words:
    report, found = page.report, result.statistics
    published = [
        f"{row.throughput} ({row.by}), {labels.signed(row.difference(result))}"
        for row in report.published_for(result)[:1]
    ]
    memory_mib = result.peak_memory_mib
    return (
        case_span(page, result),
        Span(labels.throughput(report, result.median), case_anchor(page, result)),
        labels.interval_words(found.interval if found else None, page.language),
        labels.share(found.spread if found else None),
        _speedup(page, result),
        labels.share(result.efficiency),
        labels.of_trials(report, result),
        "" if memory_mib is None else f"{memory_mib:.0f} (MiB)",
        result.transport,
        page.reasons(result.marks),
        *(published or [""]),
    )


def _speedup(page: Page, result: Result) -> str:
    """Return a speedup with its interval, or what it lacks."""
    if result.speedup is None:
        lacking = page.text("n/a (no valid 1x1)", "n/a（无有效的 1x1）")
        return lacking if result.statistics else labels.NONE
    interval = result.speedup_interval
    ends = [labels.interval_words(interval, page.language)] if interval else []
    return page.listed([labels.fixed(result.speedup, 2), *ends])


def steps(page: Page) -> Table:
    """Build the table of latencies and operations, and of the placements of named cases."""
    rows: list[Words] = []
    for result in page.report.results:
        tflops, peak = page.report.tflops_per_gpu(result), page.report.peak_tflops.get(result.case)
        latency_s = result.latency_s
        rows.append(
            (
                case_span(page, result),
                result.case.placement if result.case in page.report.names else "",
                "" if latency_s is None else f"{labels.short(latency_s * 1000, 3)} (ms)",
                "" if tflops is None else labels.fixed(tflops, 2),
                labels.share(tflops / peak) if tflops is not None and peak else "",
            )
        )
    title = page.text("Latency and TFLOP/s", "延迟与 TFLOP/s")
    return Table(title, page.heads("case", "placement", "latency", "tflops", "of_peak"), rows)


def every_trial(page: Page) -> Iterable[tuple[Span | str, str, Measurement]]:
    """Yield the trials of all cases, then of the canary, each behind their name and place."""
    for result in page.report.results:
        for trial in result.trials:
            yield case_span(page, result), case_anchor(page, result), trial
    if watched := page.report.canary:
        for place, trial in zip(watched.places, watched.trials, strict=True):
            name = page.text(f"canary, {place}", f"监测用例，{page.word(place)}")
            yield name, "canary", trial


def trials(page: Page) -> Table:
    rows = [
        (
            case,
            str(it.repeat),
            Span(
                labels.throughput(page.report, it.throughput),
                f"{place}-{it.repeat}" if it.log else "",
            ),
            page.word(it.state),
            nodeset.fold(it.nodes),
            it.transport,
            page.reasons((*it.problems, *it.marks)),
        )
        for case, place, it in every_trial(page)
    ]
    head = (*page.heads("case", "trial"), page.report.unit)
    return Table("", (*head, *page.heads("state", "nodes", "transport", "reasons")), rows)


def evidence(page: Page) -> Table:
    rows: list[Words] = [
        (
            case,
            str(it.repeat),
            "" if it.log.measured_s is None else labels.fixed(it.log.measured_s, 1),
            Span(it.path, log=it.path),
            it.log.sha256[:12],
        )
        for case, _, it in every_trial(page)
        if it.log
    ]
    return Table("", page.heads("case", "trial", "measured_s", "log", "sha256"), rows)


def published(page: Page) -> Table:
    report = page.report
    rows = [
        (
            case_span(page, result),
            row.batch,
            row.precision,
            labels.throughput(report, result.median),
            f"{row.throughput} ({row.by})",
            labels.signed(row.difference(result)),
            row.source,
        )
        for result in report.results
        for row in report.published_for(result)
    ]
    keys = ("case", "batch", "precision", "measured", "published", "difference", "source")
    return Table("", page.heads(*keys), rows)


def lone(page: Page) -> Table:
    """Build the table of logs that belong to no case, by their numbers in a list below it."""
    rows: list[Words] = []
    for number, each in enumerate(page.report.lone, 1):
        log = each.log
        settings = ("world_size", "micro_batch_size", "precision")
        window = f" {log.window[0]}-{log.window[1]}" if log.window else ""
        rows.append(
            (
                Span(str(number), f"log-{number}"),
                *(str(log.config.get(key, "?")) for key in settings),
                Span(labels.fixed(each.throughput, 2), f"log-{number}"),
                labels.fixed(log.rate.mean if log.rate else None, 2),
                page.word(log.rule) + window,
                log.fabric.label,
                page.reasons(each.problems),
            )
        )
    head = (*page.heads("log", "ranks", "batch", "precision"), page.report.unit)
    return Table("", (*head, *page.heads("mean_rate", "rule", "transport", "reasons")), rows)


def terminal_tables(report: Report) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    """Return the tables of cases and of lone logs: titles, heads and rows, with codes alone."""
    page = Page(report, "en")
    cases, logs, groups = results(page), lone(page), labels.series(report)
    common = f" ({labels.of_series(page, groups[0])})" if len(groups) == 1 else ""
    of_cases = [
        (*row[:-2], _codes(it.marks), row[-1])
        for row, it in zip(cases.rows, report.results, strict=True)
    ]
    of_logs = [
        (*row[1:-1], _codes(it.problems), words.printable(it.path))
        for row, it in zip(logs.rows, report.lone, strict=True)
    ]
    tables = (
        Table(f"{report.source}{common}", cases.head, of_cases),
        Table(f"Logs in {report.source}", (*logs.head[1:-1], "problems", "log"), of_logs),
    )
    shown = [it.without_empty_columns() for it in tables]
    return [(it.title, it.head, [[*map(text, row)] for row in it.rows]) for it in shown]


def _codes(problems: Iterable[Problem]) -> str:
    return " ".join(problem.code for problem in problems)


def node_speeds(page: Page) -> Table:
    """Build the table of the speeds of nodes over that of the median node."""
    slow = page.explain("SLOW-NODE")
    rows = [
        (it.node, str(it.trials), f"{it.speed:.3f}", slow if it.is_slow else "")
        for it in page.report.node_speeds
    ]
    return Table("", page.heads("node", "trials", "speed", "marks"), rows)


def machines(page: Page) -> Iterable[Paragraph | Table]:
    """Yield the tables of GPUs and of processors, with a row for each case with a valid trial."""
    counting = [result for result in page.report.results if result.valid]
    trials = [trial for result in counting for trial in result.valid]
    if not any(trial.machines for trial in trials):
        return
    unplaced = sum(any(it.span == "run" for it in trial.machines) for trial in trials)
    more = page.text(
        f" Telemetry not placed in the window, so of the whole run: trials {unplaced}.",
        f"有 {unplaced} 次试验的机器状态无法对应到测量窗口，取自整个运行过程。",
    )
    said = page.text(
        "Medians over the valid trials and their nodes, within the measured window.",
        "取有效试验及其节点在测量窗口内各采样值的中位数。",
    )
    yield Paragraph([said + (more if unplaced else "")])
    nothing = page.text("not observed", "未观测")
    rows = [(case_span(page, it), _machine_cells(page, it, nothing)) for it in counting]
    for titles, keys in TABLES.items():
        cells: list[Words] = [(case, *(found[key] for key in keys)) for case, found in rows]
        table = Table(page.text(*titles), page.heads("case", *keys), cells).without_empty_columns()
        if len(table.head) > 1:
            yield replace(table, rows=[[cell or nothing for cell in row] for row in table.rows])


def _machine_cells(page: Page, result: Result, nothing: str) -> dict[str, str]:
    """Return the cell of each column, empty where nothing was observed; two columns say so."""
    states = [state for trial in result.valid for state in trial.machines]

    def get_median(name: str) -> float | None:
        values = [value for it in states if (value := getattr(it, name)) is not None]
        return median(values) if values else None

    cells = {key: labels.fixed(get_median(name), digits) for key, (name, digits) in MEDIANS.items()}
    needed = {"load": nothing, "others": nothing}
    cells["steal"] = labels.share(get_median("steal"))
    cells["energy"] = labels.short(result.energy_per_sample, 3)
    answers = [it.limits for it in states if it.limits is not None]
    limits = ", ".join(sorted({name for names in answers for name in names}))
    return {
        **{key: needed.get(key, "") if it == labels.NONE else it for key, it in cells.items()},
        "moments": str(sum(state.moments for state in states)),
        "limits": limits or (page.text("none seen", "未出现") if answers else ""),
    }
