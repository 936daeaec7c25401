"""Published results of the same benchmarks, and those comparable with a case."""

import csv
import fnmatch
import io
import re
from collections.abc import Iterable

from orchestrator.measuring import hardware
from orchestrator.measuring.hardware import Machines
from orchestrator.model.case import Case
from orchestrator.model.report import PublishedResult
from orchestrator.workloads import Published

FILE = "published.csv"
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def rows(text: str) -> tuple[PublishedResult, ...]:
    """The rows of published.csv, in its order."""
    return tuple(
        PublishedResult(
            suite=row["suite"],
            framework=row["framework"],
            model=row["model"],
            precision=row["precision"],
            batch=row["batch_size_per_device"],
            nodes=int(row["nodes"]),
            gpus_per_node=int(row["gpus_per_node"]),
            throughput=float(row["median_throughput"]),
            unit=row["unit"],
            source=row["source"],
            hardware=row["hardware"],
            interconnect=row["interconnect"],
        )
        for row in csv.DictReader(io.StringIO(text))
    )


def of_case(
    publications: Iterable[PublishedResult],
    case: Case,
    key: Published,
    image: str,
    machines: Machines,
) -> tuple[PublishedResult, ...]:
    """The published results of a case, those of the image's own version first.

    Args:
        key: how published results call the case.
        image: with its version at its end, such as ``oneflow-0.2.0``: results of that version come
            before others, since versions differ more than anything else.
        machines: what the case was measured on; results of other kinds are not the case's own.
    """
    batch = key.batch or str(case.micro_batch_size)
    rows_of_case = [
        row
        for row in publications
        if _fits_any(row.framework, key.frameworks)
        and (row.model, row.batch) == (key.model, batch)
        and row.precision in key.precision
        and (row.nodes, row.gpus_per_node) == (case.nodes, case.gpus_per_node)
        and hardware.comparable(row.hardware, row.interconnect, machines)
    ]
    version = _version(image)
    return tuple(sorted(rows_of_case, key=lambda row: version not in row.framework.split("-")))


def selected(
    publications: Iterable[PublishedResult],
    framework: str,
    model: str,
    precision: str,
    on: str,
) -> tuple[PublishedResult, ...]:
    """The results that fit glob patterns, such as ``oneflow-*``, ``bert*``, ``amp*`` and ``V100*``.

    Args:
        on: of the hardware.
    """
    return tuple(
        row
        for row in publications
        if fnmatch.fnmatchcase(row.framework, framework)
        and fnmatch.fnmatchcase(row.model, model)
        and fnmatch.fnmatchcase(row.precision, precision)
        and fnmatch.fnmatchcase(row.hardware, on)
    )


def _fits_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _version(image: str) -> str | None:
    last = image.rpartition("-")[2]
    return last if _VERSION.fullmatch(last) else None
