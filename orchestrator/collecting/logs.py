"""Logs read from files, by the reader of their workload."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from orchestrator import errors
from orchestrator.inputs import yaml_files
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.workloads import Workload

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """How logs are read that belong to no sweep.

    Args:
        workload: by its name.
        window: None for what each log's reader chooses.
        rule: None for what is usual for each log.
    """

    workload: str
    window: tuple[int, int] | None
    rule: Rule | None

    def found(self) -> Workload:
        """The workload, its logs measured by the rule asked for.

        Raises:
            UsageError: there is none of that name, or its logs cannot be measured so.
        """
        how, rule = yaml_files.workload(self.workload), self.rule
        if rule is None:
            return how
        if rule not in how.rules:
            raise errors.UsageError(
                f"logs of {how.name} cannot be measured by {rule}",
                code="NO-RULE",
                fix=f"needed {' or '.join(sorted(how.rules))}",
            )

        def read_so(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
            return replace(how.read(chunks, window), rule=rule)

        return replace(how, read=read_so)


def read(path: Path, workload: Workload, window: tuple[int, int] | None) -> TrainingLog:
    """What a log says.

    Raises:
        LogError: the file cannot be read at all.
    """
    try:
        with open(path, "rb") as file:
            return workload.read(chunks(file), window)
    except OSError as error:
        raise errors.LogError(f"{path}: {error.strerror}", code="READ") from error


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """A file in pieces, so that its size does not matter."""
    return iter(lambda: file.read(CHUNK_BYTES), b"")
