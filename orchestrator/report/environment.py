"""The environment section: facts of nodes, equal ones once, and GPU topologies."""

import re
from collections.abc import Iterable, Mapping, Sequence

from orchestrator import nodeset, words
from orchestrator.report import topology
from orchestrator.report.markdown_page import Page, escaped

_ODD = re.compile(r"[^A-Za-z0-9 _.,:#?/+-]")
OWN = "hostname"  # differs between nodes that are alike


def alike(
    rows: Mapping[str, Mapping[str, str]],
) -> Sequence[tuple[tuple[str, ...], Mapping[str, str]]]:
    """Names of nodes that are alike, with their facts; what is their own is folded."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for node, facts in rows.items():
        same = tuple((key, _human(key, value)) for key, value in facts.items() if key != OWN)
        groups.setdefault(same, []).append(node)
    return [
        (tuple(nodes), {**_folded(rows, nodes), **dict(same)}) for same, nodes in groups.items()
    ]


def _human(key: str, value: str) -> str:
    """A fact for a person; results.json has its MiB as they are."""
    mib = value.removesuffix(" MiB")
    return words.size(int(mib) << 20) if key == "memory" and mib.isdecimal() else value


def _folded(rows: Mapping[str, Mapping[str, str]], nodes: Iterable[str]) -> dict[str, str]:
    names = [rows[node][OWN] for node in nodes if OWN in rows[node]]
    return {OWN: nodeset.fold(names)} if names else {}


def listed(page: Page) -> str:
    """Return the facts of nodes that are all alike, as a list of Markdown."""
    ((nodes, facts),) = alike(page.report.environment)
    lines = [page.say("nodes", count=len(nodes), names=escaped(nodeset.fold(nodes))), ""]
    lines += [
        f"- {page.say_or(f'fact.{key}', escaped(key))}{page.say('colon')}{escaped(value)}"
        for key, value in facts.items()
    ]
    return "\n".join(lines)


def topologies(page: Page) -> Iterable[str]:
    """Yield the driver's tables of how devices are connected, as blocks of Markdown."""
    for nodes, text in topology.folded(page.report.topologies):
        yield page.say("topology", names=escaped(nodeset.fold(nodes)))
        # Names come from nodes: none of them may end the block.
        lines = [_ODD.sub("?", line) for line in text.splitlines()]
        shown = "\n".join((*lines, "", topology.legend(text, page.language)))
        yield f"```\n{shown}\n```"
