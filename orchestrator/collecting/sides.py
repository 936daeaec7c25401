"""Read the two sides of a comparison: sweeps, archives, files, publications."""

from pathlib import Path

from orchestrator import errors, report
from orchestrator.collecting.sweep import measured
from orchestrator.comparing import sides
from orchestrator.comparing.sides import Side
from orchestrator.disk import on_disk
from orchestrator.state import records
from orchestrator.state.opened import opened
from orchestrator.state.store import Store

PUBLISHED = "published:"


def both(store: Store, first: str, second: str) -> tuple[Side, Side]:
    """Find the two sides of a comparison.

    Raises:
        UsageError: NO-SWEEP, SWEEP-AMBIGUOUS; NO-RESULTS, a file is no results.json;
            NO-PUBLISHED; NOT-COMPARABLE, both are published, or their units differ.
        StoreError: a sweep cannot be read.
    """
    names = (first, second)
    read = {
        name: _read_side(store, name)
        for name in dict.fromkeys(names)
        if not name.startswith(PUBLISHED)
    }
    if not read:
        cause, fix = "both sides are published results", "name a sweep or a file for one"
    else:
        of = next(iter(read.values()))
        here, there = (read.get(name) or _find_published(of, name) for name in names)
        if here.unit == there.unit:
            return here, there
        cause = f"{first} is in {here.unit}, {second} in {there.unit}"
        fix = "compare what has one unit"
    raise errors.UsageError(cause, code="NOT-COMPARABLE", fix=fix)


def _find_published(of: Side, name: str) -> Side:
    side = sides.published(of, name.removeprefix(PUBLISHED) or "*", name)
    if not side.cases:
        raise errors.UsageError(
            f"nothing published fits {name} and a case of {of.label}",
            code="NO-PUBLISHED",
            fix="see `dlperf-orch published`",
        )
    return side


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
            fix="name a results.json, a sweep, or published:",
        ) from error
