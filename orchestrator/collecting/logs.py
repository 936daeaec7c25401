"""Reads logs from files with the reader of their workload, many of them by several processes."""

import os
import pickle
import shlex
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from orchestrator import errors, workloads
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.signals import REQUESTS
from orchestrator.workloads import Workload

T = TypeVar("T")

CHUNK_BYTES = 1 << 20
FEW = 50  # files; a process for fewer costs more than it saves


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
    """Read files by a process per core; return the results in the order of the files.

    The share of a process that failed, for any reason, is read here; so errors are raised here.
    """
    count = max(1, min(len(os.sched_getaffinity(0)), len(paths) // FEW))
    own, *others = (paths[at::count] for at in range(count))
    with ExitStack() as stack:
        waits = [stack.enter_context(_fork(partial(map, read, share))) for share in others]
        found = dict(zip(own, map(read, own), strict=True))
        for share, wait in zip(others, waits, strict=True):
            found |= zip(share, wait() or map(read, share), strict=True)
    return [found[path] for path in paths]


@contextmanager
def _fork(results: Callable[[], Iterable[T]]) -> Iterator[Callable[[], list[T]]]:
    """Start a process that makes results and nothing else; it ends with the context.

    Yields a function that waits for its end and returns the results, none if it failed.
    """
    with tempfile.TemporaryFile() as file:
        pid = os.fork()
        if not pid:
            try:
                for number in REQUESTS:
                    signal.signal(number, signal.SIG_DFL)
                pickle.dump([*results()], file)
                file.flush()
                os._exit(0)
            finally:
                os._exit(1)
        running = [pid]

        def wait() -> list[T]:
            _, status = os.waitpid(pid, 0)
            running.clear()
            file.seek(0)
            return [] if status else pickle.load(file)

        try:
            yield wait
        finally:
            if running:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
