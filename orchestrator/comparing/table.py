"""The rows and sentences of a comparison, for the terminal and for Markdown."""

from collections.abc import Iterator, Sequence

from orchestrator import words
from orchestrator.comparing.comparison import ComparedCase, Comparison, name_case
from orchestrator.comparing.sides import Mark, Side, SideCase
from orchestrator.comparing.surroundings import list_codes
from orchestrator.comparing.verdicts import Verdict
from orchestrator.measuring.intervals import COVERAGE

HEAD = ("case", "A", "B", "trials", "B to A", "interval", "p", "bound", "verdict", "marks")
SPARE = ("bound", "trials", "p")
HIGHER = "higher is better"
_KINDS = {"different": "different", "same": "same within the bound", "unknown": "unknown"}


def describe_sides(comparison: Comparison) -> tuple[str, str]:
    """Return the names and origins of A and B."""
    return _side("A", comparison.first), _side("B", comparison.second)


def build_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return a row per case that both sides have."""
    cases = [row.pair.first for row in comparison.rows]
    return [(name_case(row.pair.first, cases), *_cells(row)) for row in comparison.rows]


def list_remarks(comparison: Comparison) -> Iterator[str]:
    """Yield the sentences that belong under the table."""
    cases = [row.pair.first for row in comparison.rows]
    for name, alone in (("A", comparison.only_first), ("B", comparison.only_second)):
        if alone:
            yield f"only in {name}: {', '.join(name_case(case, alone) for case in alone)}"
    yield from _of_cases(comparison)
    for side, whole in (("A", comparison.first), ("B", comparison.second)):
        if whole.marks:
            yield f"all of {side}: {_marks(whole.marks)}"
    for difference in comparison.differences:
        where = ", ".join(name_case(cases[number], cases) for number in difference.cases)
        there = f" ({where})" if where else ""
        yield f"differs: {difference.what}: {difference.first} -> {difference.second}{there}"
    if comparison.recorded_once:
        yield f"recorded on one side only: {', '.join(comparison.recorded_once)}"
    yield from _sources(comparison)
    yield from _bounds(comparison)


def _of_cases(comparison: Comparison) -> Iterator[str]:
    """Yield reasons, trials that do not count, and marks, case by case."""
    cases = [row.pair.first for row in comparison.rows]
    by_reason: dict[str, list[str]] = {}
    for row in comparison.rows:
        if row.verdict.reason:
            text = f"{describe_verdict(row.verdict)}: {row.verdict.reason}"
            by_reason.setdefault(text, []).append(name_case(row.pair.first, cases))
    for reason, names in by_reason.items():
        yield f"{', '.join(names)}: {reason}"
    for row in comparison.rows:
        lacking = _not_valid("A", row.pair.first), _not_valid("B", row.pair.second)
        for text in filter(None, lacking):
            yield f"{name_case(row.pair.first, cases)}: {text}"
        for side, seen in list_marks(row):
            yield f"{name_case(row.pair.first, cases)}: {side}: {seen}"


def list_marks(row: ComparedCase) -> Iterator[tuple[str, str]]:
    """Yield each side that has marks in this case, with their messages."""
    for side, case in (("A", row.pair.first), ("B", row.pair.second)):
        if case.every_mark:
            yield side, _marks(case.every_mark)


def _marks(found: Sequence[Mark]) -> str:
    texts = (f"{mark.code}: {mark.message}" if mark.message else mark.code for mark in found)
    return words.printable("; ".join(texts))


def format_percent(value: float | None, decimals: int = 2) -> str:
    """Return a difference in percent, with its sign."""
    return "n/a" if value is None else f"{value:+z.{decimals}%}"


def format_interval(verdict: Verdict) -> str:
    """Return the interval of the difference, and its coverage if that is below 95 %."""
    found = verdict.interval
    if found is None:
        return ""
    text = f"{format_percent(found.low)} to {format_percent(found.high)}"
    return text if found.coverage >= COVERAGE else f"{text} (covers {found.coverage:.0%})"


def describe_verdict(verdict: Verdict) -> str:
    """Return the verdict in words: slower, faster, the same, unknown."""
    if verdict.kind == "different" and verdict.difference is not None:
        return "different: slower" if verdict.difference < 0 else "different: faster"
    return _KINDS[verdict.kind]


def _side(name: str, side: Side) -> str:
    origin = "" if side.origin in ("", side.label) else f" ({side.origin})"
    return f"{name}: {words.printable(side.label)}{words.printable(origin)}"


def _bounds(comparison: Comparison) -> Iterator[str]:
    """Yield the origins of bounds, cases with equal ones together."""
    cases = [row.pair.first for row in comparison.rows]
    by_bound: dict[str, list[str]] = {}
    for row in comparison.rows:
        by_bound.setdefault(row.bound.origin, []).append(name_case(row.pair.first, cases))
    for origin, names in by_bound.items():
        yield f"bound {origin}" + (f": {', '.join(names)}" if len(by_bound) > 1 else "")


def _sources(comparison: Comparison) -> Iterator[str]:
    """Yield the sources of published results; without them, a sentence if nothing differs."""
    published = [side for side in (comparison.first, comparison.second) if side.is_published]
    for side in published:
        for case in side.cases:
            row = case.published[0]
            on = f" on {row.hardware}" if row.hardware else ""
            name = name_case(case, side.cases)
            yield f"{name}: {row.throughput} by {row.framework}{on}: {row.source}"
    if not published and not _differs(comparison):
        yield "nothing that is recorded differs but the trials themselves"


def _differs(comparison: Comparison) -> bool:
    """Return True if the sides differ in more than the numbers of their valid trials."""
    return bool(
        comparison.differences
        or comparison.recorded_once
        or comparison.only_first
        or comparison.only_second
        or any(_counts(row.pair.first) != _counts(row.pair.second) for row in comparison.rows)
    )


def _counts(case: SideCase) -> tuple[int, int]:
    return len(case.trials), len(case.valid)


def _cells(row: ComparedCase) -> tuple[str, ...]:
    verdict = row.verdict
    return (
        _median(row.pair.first),
        _median(row.pair.second),
        f"{len(row.samples.first)} and {len(row.samples.second)}",
        format_percent(verdict.difference),
        format_interval(verdict),
        "" if verdict.p_holm is None else f"{verdict.p_holm:.2g}",
        f"{row.bound.share:.2%}",
        describe_verdict(verdict),
        _codes(row),
    )


def _codes(row: ComparedCase) -> str:
    here, there = list_codes(row.pair.first.every_mark), list_codes(row.pair.second.every_mark)
    return words.printable(
        "; ".join(f"{side}: {it}" for side, it in (("A", here), ("B", there)) if it)
    )


def _median(case: SideCase) -> str:
    return "n/a" if case.median is None else f"{case.median:.2f}"


def _not_valid(name: str, case: SideCase) -> str:
    without = len(case.trials) - len(case.valid)
    return (
        f"{without} of {words.count(len(case.trials), 'trial')} of {name} not valid"
        if without
        else ""
    )
