"""Reads logs from files with the reader of their workload, many of them by several processes."""

import os
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from orchestrator import errors, workloads
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.signals import REQUESTS
from orchestrator.workloads import Workload

T = TypeVar("T")

CHUNK_BYTES = 1 << 20
FEW = 50  # files; a process for fewer costs more than it saves
_READER: list[Callable[[Path], Any]] = []  # of this process, if it only reads for another one


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings for reading logs that belong to no sweep; None for each log's own."""

    workload: str
    window: tuple[int, int] | None
    rule: Rule | None

    def command(self, folder: str) -> str:
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
        return replace(
            workload,
            read=lambda chunks, window: replace(workload.read(chunks, window), rule=rule),
        )


def read(path: Path, workload: Workload, window: tuple[int, int] | None) -> TrainingLog:
    """Read the log in a file; it raises LogError (READ) if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            return workload.read(chunks(file), window)
    except OSError as error:
        raise errors.LogError(f"{path}: {error.strerror}", code="READ") from error


def chunks(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK_BYTES), b"")


def read_all(paths: Sequence[Path], read: Callable[[Path], T]) -> list[T]:
    """Read files by a process per core; return the results in the order of the files."""
    count = min(len(os.sched_getaffinity(0)), len(paths) // FEW)
    if count < 2:
        return [*map(read, paths)]
    import multiprocessing  # which a few files need not wait for
    from concurrent.futures import process

    forked = multiprocessing.get_context("fork")
    with process.ProcessPoolExecutor(count, forked, _begin, (read,)) as pool:
        try:
            return [*pool.map(_read_one, paths, chunksize=FEW)]
        except process.BrokenProcessPool:  # such as by the kernel, where memory runs out
            return [*map(read, paths)]
        except BaseException:
            for child in multiprocessing.active_children():
                child.kill()
            raise


def _begin(read: Callable[[Path], Any]) -> None:
    for number in REQUESTS:
        signal.signal(number, signal.SIG_DFL)
    _READER.append(read)


def _read_one(path: Path) -> Any:
    return _READER[0](path)
