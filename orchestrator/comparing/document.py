"""A comparison as JSON: every number unrounded, unknown ones null."""

from collections.abc import Sequence
from dataclasses import asdict

from orchestrator.comparing.comparison import ComparedCase, Comparison
from orchestrator.comparing.sides import Mark, Side, SideCase
from orchestrator.model.facts import JSON


def document(comparison: Comparison) -> dict[str, JSON]:
    """The whole document."""
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
        "cases": [_row(row, comparison) for row in comparison.rows],
        "only_first": [_case(case) for case in comparison.only_first],
        "only_second": [_case(case) for case in comparison.only_second],
        "differences": [asdict(difference) for difference in comparison.differences],
        "recorded_once": list(comparison.recorded_once),
    }


def _side(side: Side) -> dict[str, JSON]:
    return {
        "label": side.label,
        "origin": side.origin,
        "published": side.is_published,
        **{key.replace(" ", "_"): value or None for key, value in side.settings.items()},
        "marks": _marks(side.marks),
    }


def _marks(marks: Sequence[Mark]) -> list[JSON]:
    return [mark.model_dump(mode="json") for mark in marks]


def _case(case: SideCase) -> dict[str, JSON]:
    return {"case": dict(case.case), "name": case.name}


def _row(row: ComparedCase, comparison: Comparison) -> dict[str, JSON]:
    verdict = row.verdict
    fewest = min(len(row.samples.first), len(row.samples.second))
    return {
        **_case(row.pair.first),
        "first": _trials(row.pair.first, comparison.first.is_published),
        "second": _trials(row.pair.second, comparison.second.is_published),
        "difference": verdict.difference,
        "interval": asdict(verdict.interval) if verdict.interval else None,
        "p": verdict.p,
        "p_holm": verdict.p_holm,
        "bound": asdict(row.bound),
        "verdict": verdict.kind,
        "reason": verdict.reason or None,
        "needs_trials": fewest + verdict.more[1] if verdict.more else None,
        "more_trials": list(verdict.more) if verdict.more else None,
        "shared_trials": row.samples.shared,
        "gate": verdict.gate,
        "gate_interval": asdict(verdict.gate_interval) if verdict.gate_interval else None,
    }


def _trials(case: SideCase, is_published: bool) -> dict[str, JSON]:
    return {
        "median": case.median,
        "throughputs": list(case.values),
        "not_valid": [trial.trial for trial in case.trials if trial not in case.valid],
        "nodes": sorted(case.nodes),
        "marks": _marks(case.every_mark),
        "source": case.published[0].model_dump(mode="json") if is_published else None,
    }
