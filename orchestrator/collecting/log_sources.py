"""Find a report's logs, and the lines of them from which its numbers are computed."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.model.report import LogSource, Report

LONGEST_LINE = 400
"""Letters of it that a page shows."""


@dataclass(frozen=True, slots=True)
class Logs:
    """The folder that the paths of logs in a report start from, or the one log.

    Args:
        linked: whether they stay there, so that a page may lead to them.
    """

    folder: Path
    linked: bool = True


def of(measured: Report, logs: Logs, folder: Path) -> dict[str, LogSource]:
    """Return the sources of a report's logs, by their paths there.

    Args:
        folder: of the page.
    """
    lines = {it.evidence.log: it.evidence.lines for it in measured.trials if it.evidence}
    lines |= {lone.path: lone.log.evidence(lone.log.rule) for lone in measured.lone}
    sources = {}
    for name, numbers in lines.items():
        path = logs.folder if logs.folder.is_file() else logs.folder / name
        sources[name] = LogSource("")
        if path.is_file():
            shown = os.path.relpath(path.resolve(), folder.resolve()) if logs.linked else ""
            sources[name] = LogSource(shown, tuple(_read_lines(path, numbers or ())))
    return sources


def _read_lines(path: Path, numbers: Iterable[int]) -> Iterable[tuple[int, str]]:
    """Yield the lines of these numbers; those that the log does not have are left out."""
    last = max(numbers, default=0)
    try:
        with open(path, "rb") as file:
            for number, line in zip(range(1, last + 1), file, strict=False):
                if number in numbers:
                    text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
                    is_long = len(text) > LONGEST_LINE
                    yield number, f"{text[:LONGEST_LINE]}…" if is_long else text
    except OSError:
        return
