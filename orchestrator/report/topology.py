"""``nvidia-smi topo -m`` written again from what was read of it."""

import re
from collections.abc import Iterable, Mapping

from orchestrator.report import words

WIDTH = 8  # of nvidia-smi's columns; a longer name widens all
AFFINITY = "CPU Affinity"
SELF = "X"


def matrix(links: Mapping[str, Mapping[str, str]], cpu_affinity: Mapping[str, str | None]) -> str:
    """The table as the driver prints it, without legend; empty where nothing was read.

    Args:
        links: by row, then by every other device.
        cpu_affinity: by GPU; empty where the table had no such column.
    """
    columns = dict.fromkeys((*links, *(name for row in links.values() for name in row)))
    if not columns:
        return ""
    width = max(WIDTH, *(len(name) + 2 for name in columns))
    head = ["", *columns, *([AFFINITY] if cpu_affinity else [])]
    rows = [
        (row, *(_cell(row, name, said) for name in columns), cpu_affinity.get(row) or "")
        for row, said in links.items()
    ]
    return "\n".join(
        "".join(f"{cell:<{width}}" for cell in line).rstrip() for line in (head, *rows)
    )


def legend(text: str, language: words.Language) -> str:
    """What the link words of a topology mean, those that occur in it."""
    seen = {_kind(word) for word in text.split()}
    known = ("X", "SYS", "NODE", "PHB", "PXB", "PIX", "NV#")
    lines = [
        f"  {kind:<4} = {words.said(language, f'link.{kind}')}" for kind in known if kind in seen
    ]
    return "\n".join(lines)


def folded(topologies: Mapping[str, str]) -> Iterable[tuple[tuple[str, ...], str]]:
    """Nodes that are wired alike, with their topology."""
    found: dict[str, list[str]] = {}
    for node, text in topologies.items():
        found.setdefault(text, []).append(node)
    return [(tuple(nodes), text) for text, nodes in found.items() if text]


def _cell(row: str, column: str, said: Mapping[str, str]) -> str:
    return f" {SELF}" if row == column else said.get(column, "?")


def _kind(word: str) -> str:
    return "NV#" if re.fullmatch("NV[0-9]+", word) else word
