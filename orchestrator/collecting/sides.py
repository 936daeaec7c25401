"""Read the two sides of a comparison: sweeps, archives, files."""

from pathlib import Path

from orchestrator import errors, report
from orchestrator.collecting.sweep import measured
from orchestrator.comparing import sides
from orchestrator.comparing.sides import Side
from orchestrator.disk import on_disk
from orchestrator.state import records
from orchestrator.state.archives import opened
from orchestrator.state.store import Store


def both(store: Store, first: str, second: str) -> tuple[Side, Side]:
    """Find the two sides of a comparison.

    Raises:
        UsageError: NO-SWEEP, SWEEP-AMBIGUOUS; NO-RESULTS, a file is no results.json;
            NOT-COMPARABLE, their units differ.
        StoreError: a sweep cannot be read.
    """
    read = {name: _read_side(store, name) for name in dict.fromkeys((first, second))}
    here, there = read[first], read[second]
    if here.unit != there.unit:
        raise errors.UsageError(
            f"{first} is in {here.unit}, {second} in {there.unit}",
            code="NOT-COMPARABLE",
            fix="compare what has one unit",
        )
    return here, there


def _read_side(store: Store, name: str) -> Side:
    """Measure a sweep or an archive again from its logs, or read a results.json."""
    path = Path(name)
    if not name.endswith(".json") or not path.is_file():
        with opened(store, name) as opening:
            return sides.measured(report.document(measured(opening.sweep)), name)
    with on_disk(path, "LOCAL-FILE", "make it readable for this user"):
        content = path.read_bytes()
    try:
        return sides.measured(records.document(content), name)
    except ValueError as error:
        raise errors.UsageError(
            f"{name} is no results.json: {error}",
            code="NO-RESULTS",
            fix="name a results.json or a sweep",
        ) from error
