"""Comparisons of whole sweeps: pairing, what else differs, bounds, and the forms of the report."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator.comparing import comparison, forms, sides
from orchestrator.comparing.comparison import Comparison
from orchestrator.measuring import intervals
from orchestrator.model.experiment import Method
from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from tests.comparing.reports import DRIVER, SLOWER, TRIALS, Told, side

BOTH: Mapping[str, Sequence[float | None]] = {"1x1": TRIALS, "2x8": TRIALS}
MARKED = (
    Problem("THROTTLED", "in 2 trials"),
    Problem("ALIEN-PROCESS", "in 1 trial"),
    Problem("WIDE-SPREAD", "12.0% between the lowest and highest"),
)
DRIFT = Problem("DRIFT", "4.1% between 100.00 at the start, 104.10 at the end")


def compared(first: sides.Side, second: sides.Side, slower: float | None = None) -> Comparison:
    """Compare with a bound of 1 %."""
    return comparison.compare_sides(first, second, slower, bound=0.01)


def three() -> Comparison:
    """Compare cases: slower, the same, unknown, without a trial, and without a partner."""
    first = side({"1x1": TRIALS, "1x8": TRIALS, "2x8": (90, 110, 95), "4x8": (None,), "1x4": (9,)})
    second = side(
        {"1x1": SLOWER, "1x8": TRIALS, "2x8": (91, 108, 97), "4x8": TRIALS, "2x4": (9,)},
        label="B",
        provenance={**DRIVER, "driver": "450.80"},
        nodes=("vs001", "vs003"),
    )
    return compared(first, second, 0.03)


def marked(which: str) -> Comparison:
    """Compare two sweeps of equal numbers, of which A, B, or both have marks."""
    first, second = (
        side(
            BOTH,
            label=label,
            marks={"2x8": MARKED} if label in which else {},
            report={"marks": (DRIFT,)} if label in which else {},
        )
        for label in ("A", "B")
    )
    return compared(first, second, 0.03)


def settings() -> Comparison:
    """Compare sides that differ in settings, parameters, nodes, their facts and provenance."""
    first = side(
        BOTH,
        params=(("loss_scale", "dynamic"),),
        provenance={**DRIVER, "kernel": "Linux 4.4.0-116"},
    )
    second = side(
        BOTH,
        label="B",
        params=(("loss_scale", "static"),),
        provenance={**DRIVER, "tasks": "t2", "driver": "", "kernel": "Linux 5.4"},
        nodes=("vs003", "vs004"),
        report={
            "image_digest": "sha256:77",
            "environment": {"vs003": {"kernel": "Linux 5.4", "hostname": "x", "torch": "2.1"}},
        },
    )
    return compared(first, second)


def moved() -> Comparison:
    """Compare sides of which one case ran on another node than the rest."""
    here, there, other = side(BOTH), side(BOTH, label="B"), side({"2x8": TRIALS}, nodes=("vs009",))
    return compared(here, there.model_copy(update={"cases": (there.cases[0], other.cases[0])}))


def faster() -> Comparison:
    """Compare by the usual bound; one side has a name that is markup."""
    first = side({"1x1": SLOWER}, label="<b>|")
    return comparison.compare_sides(first, side({"1x1": TRIALS}, label="B"))


def itself() -> Comparison:
    """Compare a sweep with itself: nothing was measured, so the gate does not pass."""
    same = side({"1x1": TRIALS, "2x8": SLOWER})
    return compared(same, same, 0.03)


FOUND: dict[str, Callable[[], Comparison]] = {
    "three": three,
    "marks of A": lambda: marked("A"),
    "marks of B": lambda: marked("B"),
    "marks of both": lambda: marked("AB"),
    "settings": settings,
    "moved": moved,
    "faster": faster,
    "itself": itself,
}


@pytest.mark.parametrize("name", FOUND)
def test_the_page_of_a_comparison_reads_as_recorded(name: str, snapshot: SnapshotAssertion) -> None:
    """With table, gate, remarks and method, for the summary of a CI job; numbers as below."""
    found = FOUND[name]()
    assert forms.render_markdown(found) == snapshot
    text = forms.render_markdown(found)
    cells = ("case", *(cell for row in forms.build_rows(found) for cell in row))
    assert all(cell.replace("|", "\\|") in text for cell in cells)


def test_the_document_of_a_comparison_reads_as_recorded(snapshot: SnapshotAssertion) -> None:
    """And can be written as JSON: no NaN."""
    document = json.loads(json.dumps(forms.build_document(three()), allow_nan=False))
    for case in document["cases"]:
        for key in ("difference", "p", "p_holm"):
            case[key] = case[key] and round(case[key], 9)
        for interval in (case["interval"], case["gate_interval"]):
            interval and interval.update({key: round(it, 9) for key, it in interval.items()})
    assert json.dumps(document, indent=1).splitlines() == snapshot


@pytest.mark.parametrize("name", FOUND)
def test_numbers_of_a_comparison_follow_from_the_trials_of_both_sides(name: str) -> None:
    """The interval of a gate is wider, for all cases that have trials."""
    found = FOUND[name]()
    document: Any = forms.build_document(found)
    tests = sum(bool(row.first.values and row.second.values) for row in found.rows)
    for row, case in zip(found.rows, document["cases"], strict=True):
        ours, theirs = row.first.values, row.second.values
        assert (case["first"]["throughputs"], case["second"]["throughputs"]) == ([*ours], [*theirs])
        if not ours or not theirs:
            assert (case["difference"], case["interval"], case["p"]) == (None, None, None)
            continue
        assert case["difference"] == row.second.median / row.first.median - 1  # type: ignore[operator] # both have one
        for key, outside in (("interval", 0.05), ("gate_interval", 0.05 / tests)):
            of_quotient = intervals.of_quotient(theirs, ours, outside)
            if case[key] and of_quotient:
                assert case[key]["low"] == pytest.approx(of_quotient.low - 1)
                assert case[key]["high"] == pytest.approx(of_quotient.high - 1)
        assert row.p is not None
        assert row.p <= case["p_holm"] <= min(1, row.p * tests) + 1e-12


def test_every_case_has_a_verdict_and_the_gates() -> None:
    """In the order of A; what only one side has stands apart."""
    found = three()
    assert [row.verdict for row in found.rows] == ["different", "same", "unknown", "unknown"]
    assert [row.gate for row in found.rows] == ["slower", "passed", "unknown", "unknown"]
    assert [case.case["placement"] for case in found.only_first] == ["1x4"]
    assert [case.case["placement"] for case in found.only_second] == ["2x4"]
    again = itself()
    assert [(row.difference, row.verdict, row.shared_trials) for row in again.rows] == [
        *((0.0, "same", 7), (0.0, "same", 7)),
    ]
    assert (again.exit_code, again.differences, again.recorded_once) == (5, (), ())


@pytest.mark.parametrize(
    ("second", "code", "words"),
    [
        (BOTH, 0, "passed: no case is slower by more than 3.00%"),
        ({"1x1": SLOWER, "2x8": (90, 110)}, 3, "FAILED: 1 case slower by more than 3.00%"),
        ({"1x1": TRIALS, "2x8": (90, 110)}, 5, "NO PASS: of 1 case it cannot be told"),
        ({"1x1": TRIALS}, 5, "NO PASS: of 1 case it cannot be told"),
        ({"1x1": SLOWER}, 3, "FAILED: 1 case slower"),
    ],
)
def test_exit_code_of_the_gate(second: dict[str, tuple[float, ...]], code: int, words: str) -> None:
    """What is slower counts most; what was not measured is no pass."""
    found = compared(side(BOTH), side(second, label="B"), 0.03)
    assert (found.exit_code, found.gate[: len(words)]) == (code, words)
    without = compared(side(BOTH), side(second, label="B"))
    assert (without.exit_code, without.gate) == (0, "")


def test_a_parameter_with_several_values_keeps_cases_apart() -> None:
    """Only what each side has one value of may differ."""
    dynamic = side({"1x1": TRIALS}, params=(("xla", "on"),))
    cases = (*dynamic.cases, *side({"1x1": SLOWER}).cases)
    pairs = sides.pair_cases(dynamic, dynamic.model_copy(update={"cases": cases}))
    assert len(pairs.both) == 1
    assert (pairs.both[0][1].values, len(pairs.only_second)) == (TRIALS, 1)
    assert pairs.varied == {}


def test_a_mark_of_a_trial_alone_is_shown_too() -> None:
    """Where a results.json has it of a trial and not of the case; a hostile one is escaped."""
    mark: JSON = {"code": "THROTTLED", "message": "\x1b[2J"}

    def measured(label: str, marks: list[JSON]) -> sides.Side:
        trial: JSON = {"trial": "t", "state": "valid", "throughput": 1.0, "marks": marks}
        cases: JSON = [{"case": {}, "trials": [trial]}]
        return sides.measured({**Told({"1x1": TRIALS}).document, "cases": cases}, label)

    found = compared(measured("A", []), measured("B", [mark]))
    assert forms.build_rows(found)[0][-1] == "B: THROTTLED"
    assert [text for text in forms.list_remarks(found) if "THROTTLED: " in text] == [
        "? ? b?: B: THROTTLED: \\x1b[2J"
    ]


OWN: dict[str, object] = {
    "gpus": ("V100",),
    "topologies": {"vs001": "GPU0"},
    "method": Method(repeats=7, iterations=151, window=(20, 60)),
}


@pytest.mark.parametrize(
    ("values", "more", "words"),
    [
        ({"1x1": TRIALS}, {}, "only in A: 2x8 amp b256"),
        ({"1x1": TRIALS, "2x8": (*TRIALS, None)}, {}, "1 of 8 trials of B not valid"),
        (BOTH, {"gpus": ("T4",)}, "differs: GPU models"),
        (BOTH, {"topologies": {"vs001": "X"}}, "differs: topology digest"),
        (BOTH, {"shared_machine": True}, "differs: nodes are one machine: no -> yes"),
        (
            BOTH,
            {"method": Method(repeats=7, iterations=99, window=(20, 60))},
            "differs: method.iterations",
        ),
        (BOTH, {"gpus": ()}, "recorded on one side only: GPU models"),
    ],
)
def test_whatever_differs_is_listed(
    values: dict[str, tuple[float | None, ...]], more: dict[str, object], words: str
) -> None:
    second = side(values, label="B", report={**OWN, **more})
    remarks = forms.list_remarks(compared(side(BOTH, report=OWN), second))
    assert any(words in text for text in remarks)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version: Input should be 1"),
        ({"unit": None}, "unit: "),
        ({"cases": [{"case": {}, "trials": [{"trial": "x"}]}]}, "cases.0.trials.0.state: "),
        (
            {"cases": [{"case": {}, "trials": [{"trial": "x", "state": "y", "throughput": 0}]}]},
            "cases.0.trials.0.throughput: ",
        ),
        (None, "valid dictionary"),
    ],
)
def test_what_is_no_results_json_says_why(change: dict[str, object] | None, words: str) -> None:
    """Field by field; nothing is guessed."""
    document: Any = [] if change is None else {**Told({"1x1": TRIALS}).document, **change}
    with pytest.raises(ValueError, match=words):
        sides.measured(document, "A")
