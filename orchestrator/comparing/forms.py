"""A comparison as rows and sentences for the terminal, as JSON, and as Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from orchestrator import words
from orchestrator.comparing.comparison import Comparison, list_codes
from orchestrator.comparing.sides import Side, SideCase
from orchestrator.comparing.verdicts import ComparedCase
from orchestrator.measuring.intervals import COVERAGE
from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from orchestrator.report import as_markdown

HEAD = ("case", "A", "B", "trials", "B to A", "interval", "p", "verdict", "marks")
SPARE = ("trials", "p")
HIGHER = "higher is better"
METHOD = (
    "The interval is that of B / A - 1 by Welch's method; it covers 95 % unless it says otherwise."
    " A case is different if all of it is beyond the bound, the same if all of it is within. p is"
    " that of the exact two-sided rank test (van der Waerden), corrected by Holm's method."
)


def describe_sides(comparison: Comparison) -> list[str]:
    """Return the names and origins of A and B."""
    return [
        f"{name}: {words.printable(side.label)}"
        + ("" if side.source in ("", side.label) else f" ({words.printable(side.source)})")
        for name, side in (("A", comparison.first), ("B", comparison.second))
    ]


def build_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    rows = []
    for row in comparison.rows:
        interval, sides = row.interval, (("A", row.first), ("B", row.second))
        span = f"{interval.low:+z.2%} to {interval.high:+z.2%}" if interval else ""
        if interval and interval.coverage < COVERAGE:
            span += f" (covers {interval.coverage:.0%})"
        marks = [f"{name}: {list_codes(it.every_mark)}" for name, it in sides if it.every_mark]
        cells = (
            comparison.first.name_case(row.first),
            *("n/a" if it.median is None else f"{it.median:.2f}" for _, it in sides),
            f"{len(row.first.values)} and {len(row.second.values)}",
            "n/a" if row.difference is None else f"{row.difference:+z.2%}",
            span,
            "" if row.p_holm is None else f"{row.p_holm:.2g}",
            _describe_verdict(row),
            words.printable("; ".join(marks)),
        )
        rows.append(cells)
    return rows


def _describe_verdict(row: ComparedCase) -> str:
    if row.verdict == "different" and row.difference is not None:
        return "different: slower" if row.difference < 0 else "different: faster"
    return "same within the bound" if row.verdict == "same" else row.verdict


def list_remarks(comparison: Comparison) -> Iterator[str]:
    """Yield the sentences that belong under the table."""
    first, second = comparison.first, comparison.second
    names = [first.name_case(row.first) for row in comparison.rows]
    for name, side, alone in (
        ("A", first, comparison.only_first),
        ("B", second, comparison.only_second),
    ):
        if alone:
            yield f"only in {name}: {', '.join(map(side.name_case, alone))}"
        if side.every_mark:
            yield f"all of {name}: {_describe_marks(side.every_mark)}"
    reasons: dict[str, list[str]] = {}
    for case_name, row in zip(names, comparison.rows, strict=True):
        if row.reason:
            reasons.setdefault(f"{_describe_verdict(row)}: {row.reason}", []).append(case_name)
    yield from (f"{', '.join(having)}: {reason}" for reason, having in reasons.items())
    for case_name, row in zip(names, comparison.rows, strict=True):
        for name, case in (("A", row.first), ("B", row.second)):
            if without := len(case.trials) - len(case.valid):
                every = words.count(len(case.trials), "trial")
                yield f"{case_name}: {without} of {every} of {name} not valid"
            if case.every_mark:
                yield f"{case_name}: {name}: {_describe_marks(case.every_mark)}"
    yield from _list_differences(comparison, names)
    yield f"bound {comparison.bound:.2%} ({comparison.bound_is})"


def _list_differences(comparison: Comparison, names: Sequence[str]) -> Iterator[str]:
    for difference in comparison.differences:
        where = ", ".join(names[number] for number in difference.cases)
        there = f" ({where})" if where else ""
        yield f"differs: {difference.what}: {difference.first} -> {difference.second}{there}"
    if comparison.recorded_once:
        yield f"recorded on one side only: {', '.join(comparison.recorded_once)}"


def _describe_marks(marks: Sequence[Problem]) -> str:
    return words.printable("; ".join(f"{mark.code}: {mark.message}" for mark in marks))


def build_document(comparison: Comparison) -> dict[str, JSON]:
    """Return the JSON document: numbers are unrounded, unknown ones null."""
    bound: JSON = {"share": comparison.bound, "how": comparison.bound_is}
    cases: list[JSON] = [
        {
            **_case(row.first),
            **asdict(row),
            "first": _trials(row.first),
            "second": _trials(row.second),
            "needs_trials": (
                min(len(row.first.values), len(row.second.values)) + row.more_trials[1]
                if row.more_trials
                else None
            ),
            "bound": bound,
        }
        for row in comparison.rows
    ]
    return {
        "version": 1,
        "exit_code": comparison.exit_code,
        "first": _side(comparison.first),
        "second": _side(comparison.second),
        "unit": comparison.first.unit,
        "higher_is_better": True,
        "level": 0.05,
        "fail_if_slower": comparison.slower,
        "gate": comparison.gate or None,
        "cases": cases,
        "only_first": [_case(case) for case in comparison.only_first],
        "only_second": [_case(case) for case in comparison.only_second],
        "differences": [asdict(difference) for difference in comparison.differences],
        "recorded_once": list(comparison.recorded_once),
    }


def _side(side: Side) -> dict[str, JSON]:
    return {
        "label": side.label,
        "origin": side.source,
        **{key.replace(" ", "_"): value or None for key, value in side.settings.items()},
        "marks": [asdict(mark) for mark in side.every_mark],
    }


def _case(case: SideCase) -> dict[str, JSON]:
    return {"case": dict(case.case), "name": case.name}


def _trials(case: SideCase) -> dict[str, JSON]:
    return {
        "median": case.median,
        "throughputs": list(case.values),
        "not_valid": [trial.trial for trial in case.trials if trial not in case.valid],
        "nodes": sorted(case.nodes),
        "marks": [asdict(mark) for mark in case.every_mark],
    }


def render_markdown(comparison: Comparison) -> str:
    """Return the Markdown page, for the summary of a CI job."""
    escaped = as_markdown.escaped
    rows = build_rows(comparison)
    width = len(HEAD) if any(row[-1] for row in rows) else len(HEAD) - 1
    parts = [
        "## Comparison",
        "\n".join(f"- {escaped(text)}" for text in describe_sides(comparison)),
        f"**{escaped(comparison.gate)}**" if comparison.gate else "",
        as_markdown.table(HEAD[:width], [row[:width] for row in rows]),
        f"{escaped(comparison.first.unit)}; {HIGHER}. {METHOD}",
        "\n".join(f"- {escaped(text)}" for text in list_remarks(comparison)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
