"""Read the two sides of a comparison: sweeps, archives, files, publications."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors, report
from orchestrator.collecting.report_files import RESULTS
from orchestrator.collecting.sweep import measured
from orchestrator.comparing import sides
from orchestrator.comparing.sides import Side
from orchestrator.disk import on_disk
from orchestrator.state import records
from orchestrator.state.opened import opened
from orchestrator.state.store import Store

PUBLISHED = "published:"
MOST_EARLIER = 50  # sweeps whose results are read for a bound


def both(store: Store, first: str, second: str) -> tuple[Side, Side]:
    """Find the two sides of a comparison.

    Raises:
        UsageError: NO-SWEEP, SWEEP-AMBIGUOUS; NO-RESULTS, a file is no results.json;
            NO-PUBLISHED; NOT-COMPARABLE, both are published, or their units differ.
        StoreError: a sweep cannot be read.
    """
    own = [name for name in dict.fromkeys((first, second)) if not name.startswith(PUBLISHED)]
    read = {name: _read_side(store, name) for name in own}
    if not read:
        cause, fix = "both sides are published results", "name a sweep or a file for one"
        raise errors.UsageError(cause, code="NOT-COMPARABLE", fix=fix)
    here, there = (
        read.get(name) or _find_published(read[own[0]], name) for name in (first, second)
    )
    if here.unit != there.unit:
        cause = f"{first} is in {here.unit}, {second} in {there.unit}"
        raise errors.UsageError(cause, code="NOT-COMPARABLE", fix="compare what has one unit")
    return here, there


def earlier(store: Store, *compared: Side) -> Iterator[Side]:
    """Yield the reports of earlier sweeps in the state folder, newest first; skip damaged ones.

    Earlier than the newer of the sweeps that are compared, and neither of them.
    """
    origins = {side.origin for side in compared}
    sweeps = store.sweeps() if store.root.is_dir() else []
    known = [place for place, sweep in enumerate(sweeps) if sweep.id in origins]
    older = [sweep for sweep in sweeps[min(known, default=-1) + 1 :] if sweep.id not in origins]
    for sweep in older[:MOST_EARLIER]:
        with contextlib.suppress(OSError, ValueError):  # never collected, or damaged: no history
            content = records.document((sweep.folder / RESULTS).read_bytes())
            yield sides.measured(content, sweep.id)


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
