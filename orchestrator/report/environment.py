"""The environment section: facts of nodes, equal ones once, and GPU topologies."""

import re
from collections.abc import Iterable, Mapping, Sequence

from orchestrator import nodeset, words
from orchestrator.report import topology
from orchestrator.report.markdown_page import Page, escaped, table

_ODD = re.compile(r"[^A-Za-z0-9 _.,:#?/+-]")
OWN = "hostname"  # differs between nodes that are alike


def environment(page: Page) -> str:
    """One list if all nodes are alike, else a table by group of nodes; then their topologies."""
    groups = alike(page.report.environment)
    parts = [_listed(page, *groups[0])] if len(groups) == 1 else [_compared(page, groups)]
    return "\n\n".join((*parts, *_topologies(page)))


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


def _listed(page: Page, nodes: Sequence[str], facts: Mapping[str, str]) -> str:
    lines = [page.say("nodes", count=len(nodes), names=escaped(nodeset.fold(nodes))), ""]
    colon = page.say("colon")
    lines += [f"- {_named(page, key)}{colon}{escaped(value)}" for key, value in facts.items()]
    return "\n".join(lines)


def _compared(page: Page, groups: Sequence[tuple[tuple[str, ...], Mapping[str, str]]]) -> str:
    keys = dict.fromkeys(key for _, facts in groups for key in facts)
    heads = [escaped(nodeset.fold(nodes)) for nodes, _ in groups]
    rows = [
        (_named(page, key), *(escaped(facts.get(key, "")) for _, facts in groups)) for key in keys
    ]
    return table(("", *heads), rows)


def _named(page: Page, key: str) -> str:
    return page.say_or(f"fact.{key}", escaped(key))


def _topologies(page: Page) -> Iterable[str]:
    for nodes, text in topology.folded(page.report.topologies):
        yield page.say("topology", names=escaped(nodeset.fold(nodes)))
        # Names come from nodes: none of them may end the block.
        lines = [_ODD.sub("?", line) for line in text.splitlines()]
        shown = "\n".join((*lines, "", topology.legend(text, page.language)))
        yield f"```\n{shown}\n```"
