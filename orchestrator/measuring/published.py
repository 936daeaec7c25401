"""Finds published results of the same benchmarks that are comparable with a case."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

from orchestrator import nodeset
from orchestrator.measuring import hardware
from orchestrator.model.case import Case
from orchestrator.model.report import PublishedResult
from orchestrator.model.text import shape
from orchestrator.workloads import Published

FILE = "published.csv"
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def parse_rows(text: str) -> tuple[PublishedResult, ...]:
    """Parse published.csv."""
    rows = list(csv.DictReader(io.StringIO(text)))
    return shape(tuple[PublishedResult, ...]).validate_python(rows)


def select_for_case(
    publications: Iterable[PublishedResult],
    case: Case,
    key: Published,
    image: str,
    gpus: Sequence[str] = (),
    transport: str = "-",
) -> tuple[PublishedResult, ...]:
    """Return the published results of a case, those of the image's version first.

    Args:
        key: the case in the words of published results.
        image: such as ``oneflow-0.2.0``, with its version at the end.
        gpus, transport: hardware of the case; results of other kinds are left out.
    """
    batch = key.batch or str(case.micro_batch_size)
    rows_of_case = [
        row
        for row in publications
        if any(nodeset.fits(row.framework, pattern) for pattern in key.frameworks)
        and (row.model, row.batch) == (key.model, batch)
        and row.precision in key.precision
        and (row.nodes, row.gpus_per_node) == (case.nodes, case.gpus_per_node)
        and hardware.is_comparable(row.hardware, row.interconnect, gpus, transport)
    ]
    last = image.rpartition("-")[2]
    version = last if _VERSION.fullmatch(last) else None
    return tuple(sorted(rows_of_case, key=lambda row: version not in row.framework.split("-")))


def select(
    publications: Iterable[PublishedResult], patterns: Mapping[str, str]
) -> tuple[PublishedResult, ...]:
    """Return results whose fields match glob patterns, such as ``framework``: ``oneflow-*``."""
    return tuple(
        row
        for row in publications
        if all(nodeset.fits(getattr(row, name), glob) for name, glob in patterns.items())
    )
