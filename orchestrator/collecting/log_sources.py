"""Where a report's page finds its logs, and the lines of them that its numbers stand on."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.collecting.logs import chunks
from orchestrator.model.report import LogSource, Report

LONGEST_LINE = 400
"""Bytes or letters of it that a page shows."""


@dataclass(frozen=True, slots=True)
class Logs:
    """The folder that the paths of logs in a report start from, or the one log.

    Args:
        linked: whether they stay there, so that a page may lead to them.
    """

    folder: Path
    linked: bool = True


def of(measured: Report, logs: Logs, folder: Path) -> dict[str, LogSource]:
    """The sources of a report's logs, by their paths there.

    Args:
        folder: of the page.
    """
    return {path: _source(path, lines, logs, folder) for path, lines in _list_evidence(measured)}


def _list_evidence(measured: Report) -> Iterable[tuple[str, tuple[int, int] | None]]:
    for trial in measured.trials:
        if trial.evidence:
            yield trial.evidence.log, trial.evidence.lines
    for lone in measured.lone:
        yield lone.path, lone.log.evidence(lone.log.rule)


def _source(name: str, lines: tuple[int, int] | None, logs: Logs, folder: Path) -> LogSource:
    path = logs.folder if logs.folder.is_file() else logs.folder / name
    if not path.is_file():
        return LogSource("")
    shown = os.path.relpath(path.resolve(), folder.resolve()) if logs.linked else ""
    return LogSource(shown, tuple(_lines(path, lines)) if lines else ())


def _lines(path: Path, numbers: tuple[int, int]) -> Iterable[tuple[int, str]]:
    """The lines of these numbers; those that the log does not have are left out."""
    first = 1  # line that the next piece begins in
    rest = b""
    wanted = sorted(set(numbers))
    try:
        with open(path, "rb") as file:
            for chunk in chunks(file):
                text = rest + chunk
                whole, _, rest = text.rpartition(b"\n")
                rest = rest[:LONGEST_LINE]  # of a line that never ends, no more is shown
                count = text.count(b"\n")
                while count and wanted and wanted[0] < first + count:
                    yield wanted[0], _line(whole, wanted.pop(0) - first)
                first += count
                if not wanted:
                    return
    except OSError:
        return
    if wanted and wanted[0] == first and rest:
        yield first, _decode_line(rest)


def _line(text: bytes, number: int) -> str:
    begin = 0
    for _ in range(number):
        begin = text.index(b"\n", begin) + 1
    end = text.find(b"\n", begin)
    return _decode_line(text[begin : None if end < 0 else end])


def _decode_line(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").rstrip("\r")
    return text if len(text) < LONGEST_LINE else text[:LONGEST_LINE] + "…"
