"""Progress and problems in the output of preparation scripts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator import nodeset
from orchestrator.words import duration

LEAST_S = 0.5  # of a rate: less is no time to measure in

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


def summary(
    first: Mapping[str, tuple[DataProgress, float]], now: Mapping[str, DataProgress], at: float
) -> str:
    """Describe all working nodes in one line.

    Args:
        first: the first progress of each node, and the time (s) at which it was seen.
        at: this time.
    """
    if not now:
        return "beginning"
    rate, lefts, shares = 0.0, [], {}
    for name, progress in now.items():
        begun, began = first[name]
        elapsed_s, done = at - began, progress.done - begun.done
        rate += (progress.files - begun.files) / max(elapsed_s, LEAST_S)
        if done > 0 and progress.total:
            lefts.append(elapsed_s / done * max(progress.total - progress.done, 0))
        shares[name] = progress.done / progress.total if progress.total else 0.0
    node = min(shares, key=shares.__getitem__)
    of = f" of {now[node].total}" if now[node].total else ""
    behind = f" ({node} is least far)" if len(now) > 1 else ""
    end = f", about {duration(max(lefts))} left" if lefts else ""
    where = nodeset.fold(now)
    return f"{where}: {now[node].done}{of} done{behind}, {rate:.0f} files/s{end}"
