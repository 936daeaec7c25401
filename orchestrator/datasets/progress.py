"""Progress and problems in the output of preparation scripts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator import nodeset

_LINE = re.compile(r"^dlperf progress ([0-9]+) ([0-9]+) ([0-9]+)$", re.MULTILINE)
_PROBLEM = re.compile(r"^dlperf problem ([A-Z-]+) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DataProgress:
    """One progress line.

    Args:
        total: of the same units; 0 where that is not known.
        files: written so far, in this run and before.
    """

    done: int
    total: int
    files: int


def last(text: str) -> DataProgress | None:
    """Parse the last whole line of progress in a piece of a log."""
    matches = _LINE.findall(text)
    return DataProgress(*(int(word) for word in matches[-1])) if matches else None


def problem(text: str) -> tuple[str, str] | None:
    """Return code and message of the first problem that a script reported."""
    match = _PROBLEM.search(text)
    return (match[1], match[2].strip()) if match else None


def left_s(first: DataProgress, now: DataProgress, elapsed_s: float) -> float | None:
    """Estimate the seconds left at the rate since ``first``; None without a rate or total."""
    done = now.done - first.done
    if done <= 0 or not now.total:
        return None
    return elapsed_s / done * max(now.total - now.done, 0)


def summary(by_node: Mapping[str, DataProgress], rate: float, left: str) -> str:
    """Describe all working nodes in one line.

    Args:
        rate: files per second, all nodes together.
        left: the time left in words; empty where it is not known.
    """
    if not by_node:
        return "beginning"
    node, now = min(by_node.items(), key=lambda item: _share(item[1]))
    of = f" of {now.total}" if now.total else ""
    where = nodeset.fold(by_node) if len(by_node) > 1 else node
    behind = f" ({node} is least far)" if len(by_node) > 1 else ""
    end = f", about {left} left" if left else ""
    return f"{where}: {now.done}{of} done{behind}, {rate:.0f} files/s{end}"


def _share(progress: DataProgress) -> float:
    return progress.done / progress.total if progress.total else 0.0
