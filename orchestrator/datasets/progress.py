"""How far work on a node has come, from what its script prints."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator import nodeset

_LINE = re.compile(r"^dlperf progress ([0-9]+) ([0-9]+) ([0-9]+)$", re.MULTILINE)
_PROBLEM = re.compile(r"^dlperf problem ([A-Z-]+) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Progress:
    """How much is done.

    Args:
        total: of the same units; 0 where that is not known.
        files: that have come to be, in this run and before.
    """

    done: int
    total: int
    files: int


def last(text: str) -> Progress | None:
    """The last whole line of progress in a piece of a log."""
    found = _LINE.findall(text)
    return Progress(*(int(word) for word in found[-1])) if found else None


def problem(text: str) -> tuple[str, str] | None:
    """The code and words of the first problem that a script named."""
    found = _PROBLEM.search(text)
    return (found[1], found[2].strip()) if found else None


def left_s(first: Progress, now: Progress, elapsed_s: float) -> float | None:
    """Seconds until the rest is done at the pace since ``first``; None while nobody can know."""
    done = now.done - first.done
    if done <= 0 or not now.total:
        return None
    return elapsed_s / done * max(now.total - now.done, 0)


def slowest(by_node: Mapping[str, Progress]) -> tuple[str, Progress] | None:
    """The node that is least far, with what it has done."""
    if not by_node:
        return None
    node = min(by_node, key=lambda name: _share(by_node[name]))
    return node, by_node[node]


def told(by_node: Mapping[str, Progress], rate: float, left: str) -> str:
    """One line on all nodes at work.

    Args:
        rate: files per second, all nodes together.
        left: the time left in words; empty where it is not known.
    """
    least = slowest(by_node)
    if least is None:
        return "beginning"
    node, now = least
    of = f" of {now.total}" if now.total else ""
    where = nodeset.fold(by_node) if len(by_node) > 1 else node
    behind = f" ({node} is least far)" if len(by_node) > 1 else ""
    end = f", about {left} left" if left else ""
    return f"{where}: {now.done}{of} done{behind}, {rate:.0f} files/s{end}"


def _share(progress: Progress) -> float:
    return progress.done / progress.total if progress.total else 0.0
