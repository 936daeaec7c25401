"""The table of ``nvidia-smi topo -m``, written from facts."""

import re
from collections.abc import Iterable, Mapping

from orchestrator.report import phrases

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
        (row, *(_cell(row, name, to_others) for name in columns), cpu_affinity.get(row) or "")
        for row, to_others in links.items()
    ]
    return "\n".join(
        "".join(f"{cell:<{width}}" for cell in line).rstrip() for line in (head, *rows)
    )


def legend(text: str, language: phrases.Language) -> str:
    """Meanings of the link words that occur in a topology."""
    seen = {_kind(word) for word in text.split()}
    kinds = ("X", "SYS", "NODE", "PHB", "PXB", "PIX", "NV#")
    lines = [
        f"  {kind:<4} = {phrases.text(language, f'link.{kind}')}" for kind in kinds if kind in seen
    ]
    return "\n".join(lines)


def folded(topologies: Mapping[str, str]) -> Iterable[tuple[tuple[str, ...], str]]:
    """Groups of nodes with the same topology."""
    by_text: dict[str, list[str]] = {}
    for node, text in topologies.items():
        by_text.setdefault(text, []).append(node)
    return [(tuple(nodes), text) for text, nodes in by_text.items() if text]


def _cell(row: str, column: str, to_others: Mapping[str, str]) -> str:
    return f" {SELF}" if row == column else to_others.get(column, "?")


def _kind(word: str) -> str:
    """The word of a legend for a link's word: NV# for NV2."""
    return "NV#" if re.fullmatch("NV[0-9]+", word) else word
