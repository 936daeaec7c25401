"""Tables of DLPerf's documents that stand in report.html beside its own."""

from collections.abc import Iterable

from orchestrator import nodeset
from orchestrator.report import groups, topology
from orchestrator.report.gpus import wide
from orchestrator.report.html import tables
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Element, element, shown


def by_gpus(page: Page) -> Iterable[Element]:
    """Throughputs and speedups with a row per number of GPUs, where the benchmark has them so."""
    if page.report.layout.kind == "gpus" and page.report.results:
        for title, head, rows in wide(page):
            yield tables.table(page, _caption(title), head, rows)


def cases(page: Page) -> Iterable[Element]:
    """The settings of named cases."""
    found = page.report.results
    if page.report.layout.kind == "groups" and found:
        head = (*page.heads("case", "group"), *groups.CASE_HEADS, *groups.PARAMS)
        rows: list[tables.Row] = [
            (
                tables.case_link(page, result),
                groups.group(page, result),
                *groups.settings(result.case),
            )
            for result in found
        ]
        yield tables.table(page, page.say("cases"), head, rows)


def topologies(page: Page) -> Iterable[Element]:
    """The driver's own tables of how devices are connected, with what their words mean."""
    for nodes, text in topology.folded(page.report.topologies):
        title = _caption(page.say("topology", names=nodeset.fold(nodes)))
        meaning = topology.legend(text, page.language)
        lines = (
            element("code", shown(line)) for line in (*text.splitlines(), *meaning.splitlines())
        )
        yield element("details", element("summary", title), element("pre", lines, class_="matrix"))


def _caption(title: str) -> str:
    """A line that stands before a block of Markdown, as the caption of one."""
    return title.replace("`", "").rstrip(":\N{FULLWIDTH COLON}")
