"""Tables of report.html: results, published results, the nodes' facts, findings."""

import re
from collections.abc import Iterable, Sequence

from orchestrator import nodeset
from orchestrator.model.report import LoneLog
from orchestrator.model.result import Result
from orchestrator.report import environment as nodes
from orchestrator.report import groups, labels, rounding
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Element, Style, anchor, element

_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(?:%|[x/][0-9]+| \(m?s\)| \(MiB\))?|n/a|[-?]?")
_SHORT = 32
"""Letters of a cell that stays on one line."""
Cell = Element | str
Row = Sequence[Cell]


def table(
    page: Page, caption: str, head: Sequence[str], rows: Iterable[Row], name: str = ""
) -> Element:
    """A table whose rows are cards on a phone; the first cell of a row is its head."""
    return _table(page, (caption, name), head, rows, head)


def data(page: Page, caption: str, head: Sequence[str], rows: Iterable[Row]) -> Element:
    """A table of so many rows that it scrolls by itself, on a phone too."""
    return _table(page, (caption, ""), head, rows, (None,) * len(head))


def _table(
    page: Page,
    names: tuple[str, str],
    head: Sequence[str],
    rows: Iterable[Row],
    labels: Sequence[str | None],
) -> Element:
    """A table by its caption and its own name; ``labels`` say on a phone what a cell is."""
    caption, name = names
    body = [tuple(row) for row in rows]
    is_number = [_is_number(body, column) for column in range(len(head))]
    looks = [
        "n" if number else "w" if _is_short(body, column) else None
        for column, number in enumerate(is_number)
    ]
    caption_id = name or anchor(caption)
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element(
                "thead",
                element(
                    "tr",
                    (
                        element("th", title, scope="col", class_=look) if title else element("td")
                        for title, look in zip(head, looks, strict=True)
                    ),
                ),
            ),
            element("tbody", (_row(row, looks, labels) for row in body)),
        ),
        class_="wide-content",
        role="region",
        tabindex=0,
        aria_label=page.say("page.table", title=caption),
        id=caption_id if name else None,
    )


def _row(row: Row, looks: Sequence[str | None], labels: Sequence[str | None]) -> Element:
    cells = (
        element(
            tag, cell, class_=look, data_head=label, **({"scope": "row"} if tag == "th" else {})
        )
        for tag, cell, look, label in zip(
            ("th", *("td",) * (len(row) - 1)), row, looks, labels, strict=True
        )
    )
    return element("tr", cells)


def _is_number(rows: Sequence[Row], column: int) -> bool:
    cells = [row[column] for row in rows]
    texts = [_words(cell) for cell in cells]
    return bool(texts) and all(_NUMBER.fullmatch(text) for text in texts)


def _is_short(rows: Sequence[Row], column: int) -> bool:
    return all(len(_words(row[column])) <= _SHORT for row in rows)


def _words(cell: Element | Style | str) -> str:
    """The text of a cell, whatever elements it stands in."""
    if isinstance(cell, Element):
        return "".join(map(_words, cell.children))
    return str(cell)


def results(page: Page) -> Iterable[Element]:
    """A table of medians per series; then that of logs which belong to no case."""
    report = page.report
    by_name = report.layout.kind == "groups"
    for group in [list(report.results)] if by_name else labels.series(report):
        if not group:
            continue
        title = report.workload if by_name else labels.of_series(page, group)
        caption = page.say("page.result.caption", series=title, unit=report.unit)
        head, rows = filled(_heads(page), [_cells(page, result) for result in group])
        yield table(page, caption, head, rows)
    if report.results:
        yield _sureness(page)
    if report.lone:
        yield _lone(page, report.lone)


def _sureness(page: Page) -> Element:
    """Spread, interval, published result and transport of every case."""
    keys = (
        "case",
        "spread",
        "interval",
        "speedup_interval",
        "published",
        "difference",
        "transport",
    )
    cells = [_sure(page, result) for result in page.report.results]
    return table(page, page.say(labels.of_sureness(page.report)), *filled(page.heads(*keys), cells))


def _sure(page: Page, result: Result) -> Row:
    found, published = result.statistics, page.report.published_for(result)[:1]
    return (
        case_link(page, result),
        rounding.share(found.spread if found else None),
        rounding.interval_words(found, page.language) if found else rounding.NONE,
        rounding.ends(result.speedup_interval, page.language) if result.speedup_interval else "",
        " ".join(f"{row.throughput} ({row.by})" for row in published),
        " ".join(rounding.signed(row.difference(result)) for row in published),
        "" if result.transport == "-" else result.transport,
    )


def _heads(page: Page) -> tuple[str, ...]:
    layout = page.report.layout
    if layout.kind == "groups":
        place: tuple[str, ...] = page.heads("case")
    else:
        place = page.heads("nodes", "gpus_per_node", "batch")
    ours = ("speedup", "efficiency", "trials", "latency", "memory", "tflops", "marks")
    return (*place, page.report.unit, *page.heads(*ours))


def _cells(page: Page, result: Result) -> Row:
    report, case = page.report, result.case
    tflops = report.tflops_per_gpu(result)
    if report.layout.kind == "groups":
        place: Row = (groups.name(page, result),)
    else:
        place = (str(case.nodes), str(case.gpus_per_node), str(case.micro_batch_size))
    median = rounding.fixed(result.median, report.layout.decimals)
    return (
        *place,
        element("a", median, href=f"#{case_anchor(page, result)}"),
        rounding.fixed(result.speedup, 2) if result.speedup is not None else "",
        rounding.share(result.efficiency) if result.efficiency is not None else "",
        rounding.of_trials(page.report, result, page.language),
        groups.latency(result.latency_s) if result.latency_s is not None else "",
        groups.memory(result.memory_mib) if result.memory_mib is not None else "",
        rounding.fixed(tflops, 2) if tflops is not None else "",
        page.codes(result.marks),
    )


def case_link(page: Page, result: Result) -> Element:
    """The name of a case, which leads to its trials."""
    label = labels.of_case(page.report, result)
    return element("a", label, href=f"#{case_anchor(page, result)}")


def case_anchor(page: Page, result: Result) -> str:
    """Where the trials of a case stand in the page."""
    place = page.report.results.index(result)
    return f"{anchor(labels.of_case(page.report, result))}-{place + 1}"


def filled(head: Sequence[str], rows: Sequence[Row]) -> tuple[list[str], list[Row]]:
    """Without the columns that are empty in every row."""
    kept = [place for place in range(len(head)) if any(_words(row[place]) for row in rows)]
    return [head[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _lone(page: Page, logs: Sequence[LoneLog]) -> Element:
    rows = [
        (
            element("a", lone.path, href=f"#{lone_anchor(number)}"),
            str(lone.log.config.get("world_size", "?")),
            str(lone.log.config.get("micro_batch_size", "?")),
            str(lone.log.config.get("precision", "?")),
            element("a", rounding.fixed(lone.throughput, 2), href=f"#{lone_anchor(number)}"),
            rounding.fixed(lone.log.rate.mean if lone.log.rate else None, 2),
            page.codes(lone.problems),
        )
        for number, lone in enumerate(logs)
    ]
    head = (*page.heads("log"), "world_size", "batch_size_per_device", *page.heads("precision"))
    further = (page.report.unit, *page.heads("mean_rate", "problems"))
    return table(page, page.say("page.lone.caption"), (*head, *further), rows)


def lone_anchor(number: int) -> str:
    """Where the evidence of a log that belongs to no case stands in the page."""
    return f"log-{number + 1}"


def published(page: Page) -> Iterable[Element]:
    """Every published result of the cases."""
    report = page.report
    rows: list[Row] = [
        (
            case_link(page, result),
            row.batch,
            row.precision,
            rounding.fixed(result.median, 2),
            f"{row.throughput} ({row.by})",
            rounding.signed(row.difference(result)),
            row.source,
        )
        for result in report.results
        for row in report.published_for(result)
    ]
    keys = ("precision", "measured", "published", "difference", "source")
    head = (*page.heads("case"), report.layout.batch, *page.heads(*keys))
    yield table(page, page.say("page.published.caption"), head, rows)


def environment(page: Page) -> Iterable[Element]:
    """Facts of nodes, those that are alike in one column."""
    alike = nodes.alike(page.report.environment)
    keys = dict.fromkeys(key for _, facts in alike for key in facts)
    heads = [nodeset.fold(names) for names, _ in alike]
    rows = [
        (page.say_or(f"fact.{key}", key), *(facts.get(key, "") for _, facts in alike))
        for key in keys
    ]
    head = (*page.heads("fact"), *heads)
    yield table(page, page.say("page.environment.caption"), head, rows)


def findings(page: Page) -> Iterable[Element]:
    """What checks found of the nodes; a sentence where they found nothing."""
    found = page.report.findings
    if not found:
        yield element("p", page.say("page.no_findings"))
        return
    head = page.heads("code", "severity", "node", "seen", "expected", "fix")
    rows = [(one.code, one.severity, one.node, one.seen, one.expected, one.fix) for one in found]
    yield table(page, page.say("page.findings"), head, rows)
