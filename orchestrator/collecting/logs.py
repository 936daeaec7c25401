"""Reads logs from files with the reader of their workload."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from orchestrator import errors, workloads
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.workloads import Workload

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings for reading logs that belong to no sweep.

    Args:
        workload: by its name.
        window: None for what each log's reader chooses.
        rule: None for each log's own.
    """

    workload: str
    window: tuple[int, int] | None
    rule: Rule | None

    def command(self, folder: str) -> str:
        """Return the command line that reads the logs of a folder with these settings."""
        given = ["dlperf-orch", "collect", "--logs", folder, "--workload", self.workload]
        if self.window:
            given += ["--window", ":".join(map(str, self.window))]
        if self.rule:
            given += ["--rule", self.rule]
        return shlex.join(given)

    def resolved(self) -> Workload:
        """Return the workload, whose reader now gives ``rule`` to every log.

        Raises:
            UsageError: NO-WORKLOAD; or NO-RULE, its logs cannot be measured by that rule.
        """
        workload, rule = workloads.require(self.workload), self.rule
        if rule is None:
            return workload
        if rule not in workload.rules:
            raise errors.UsageError(
                f"logs of {workload.name} cannot be measured by {rule}",
                code="NO-RULE",
                fix=f"needed {' or '.join(sorted(workload.rules))}",
            )

        def read_so(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
            return replace(workload.read(chunks, window), rule=rule)

        return replace(workload, read=read_so)


def read(path: Path, workload: Workload, window: tuple[int, int] | None) -> TrainingLog:
    """Read the log in a file.

    Raises:
        LogError: READ; the file cannot be opened or read.
    """
    try:
        with open(path, "rb") as file:
            return workload.read(chunks(file), window)
    except OSError as error:
        raise errors.LogError(f"{path}: {error.strerror}", code="READ") from error


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """Read a file in pieces, so that its size does not matter."""
    return iter(lambda: file.read(CHUNK_BYTES), b"")
