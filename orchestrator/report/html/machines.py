"""What report.html says of the machines: their state, and how fast they are beside one another."""

from collections.abc import Iterable

from orchestrator.report import codes, machines
from orchestrator.report.html import tables
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import Element, element


def states(page: Page) -> Iterable[Element]:
    """The state of the machines beside what was measured."""
    found = machines.values(page)
    if found:
        yield element("p", machines.how(page))
        keys = machines.columns(page, found, machines.HEADS)
        rows: list[tables.Row] = [
            (tables.case_link(page, result), *(cells[key] for key in keys))
            for result, cells in found
        ]
        yield tables.table(page, page.say("machines"), page.heads("case", *keys), rows)


def node_speeds(page: Page) -> Iterable[Element]:
    """How fast the nodes are beside one another; slow ones are named so."""
    found = page.report.node_speeds
    if found.nodes:
        yield element("p", page.say("node_speeds"))
        slow = codes.explained(page.language, "SLOW-NODE")
        speeds = [
            (
                one.node,
                str(one.trials),
                f"{one.speed:.3f}",
                slow if one.node in found.slow else "",
            )
            for one in found.nodes
        ]
        head = page.heads("node", "trials", "speed", "marks")
        yield tables.table(page, page.say("nodes_compared"), *tables.filled(head, speeds))
