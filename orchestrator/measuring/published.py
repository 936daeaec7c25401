"""Published results: what others measured of the same benchmarks, and which of it is of a case."""

import csv
import fnmatch
import io
import re
from collections.abc import Iterable

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
        )
        for row in csv.DictReader(io.StringIO(text))
    )


def of_case(
    known: Iterable[PublishedResult], case: Case, called: Published, image: str
) -> tuple[PublishedResult, ...]:
    """What was published of a case.

    Args:
        called: how published results call it.
        image: with its version at its end, such as ``oneflow-0.2.0``: results of that version come
            before others, since versions differ more than anything else.
    """
    batch = called.batch or str(case.micro_batch_size)
    found = [
        row
        for row in known
        if _fits_any(row.framework, called.frameworks)
        and (row.model, row.batch) == (called.model, batch)
        and row.precision in called.precision
        and (row.nodes, row.gpus_per_node) == (case.nodes, case.gpus_per_node)
    ]
    version = _version(image)
    return tuple(sorted(found, key=lambda row: version not in row.framework.split("-")))


def selected(
    known: Iterable[PublishedResult], framework: str, model: str, precision: str
) -> tuple[PublishedResult, ...]:
    """The results that fit three glob patterns, such as ``oneflow-*``, ``bert*`` and ``amp*``."""
    return tuple(
        row
        for row in known
        if fnmatch.fnmatchcase(row.framework, framework)
        and fnmatch.fnmatchcase(row.model, model)
        and fnmatch.fnmatchcase(row.precision, precision)
    )


def _fits_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _version(image: str) -> str | None:
    last = image.rpartition("-")[2]
    return last if _VERSION.fullmatch(last) else None
