"""Comparisons of whole sweeps: pairing, what else differs, bounds, and the forms of the report."""

import json

import pytest

from orchestrator.comparing import comparison, forms, sides
from orchestrator.comparing.comparison import Comparison
from orchestrator.comparing.forms import build_document, render_markdown
from orchestrator.model.experiment import Method
from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from tests.comparing.reports import DRIVER, SLOWER, TRIALS, Told, side


def compared(first: sides.Side, second: sides.Side, slower: float | None = None) -> Comparison:
    """With a bound of 1 %."""
    return comparison.compare_sides(first, second, slower, bound=0.01)


def three() -> Comparison:
    """One case is slower, one the same, one unknown; one more has no trial, one no partner."""
    first = side({"1x1": TRIALS, "1x8": TRIALS, "2x8": (90, 110, 95), "4x8": (None,), "1x4": (9,)})
    second = side(
        {"1x1": SLOWER, "1x8": TRIALS, "2x8": (91, 108, 97), "4x8": TRIALS, "2x4": (9,)},
        label="B",
        provenance={**DRIVER, "driver": "450.80"},
        nodes=("vs001", "vs003"),
    )
    return compared(first, second, 0.03)


def test_every_case_has_a_verdict() -> None:
    """In the order of A; what only one side has stands apart."""
    found = three()
    assert [row.verdict for row in found.rows] == ["different", "same", "unknown", "unknown"]
    assert [row.gate for row in found.rows] == ["slower", "passed", "unknown", "unknown"]
    assert [case.case["placement"] for case in found.only_first] == ["1x4"]
    assert [case.case["placement"] for case in found.only_second] == ["2x4"]


def test_a_sweep_beside_itself_has_no_difference() -> None:
    """And the gate does not pass, since nothing was measured."""
    same = side({"1x1": TRIALS, "2x8": SLOWER})
    found = compared(same, same, 0.03)
    assert [row.difference for row in found.rows] == [0.0, 0.0]
    assert [row.verdict for row in found.rows] == ["same", "same"]
    assert [row.shared_trials for row in found.rows] == [7, 7]
    assert found.exit_code == 5
    assert (found.differences, found.recorded_once) == ((), ())


@pytest.mark.parametrize(
    ("second", "code", "words"),
    [
        ({"1x1": TRIALS, "2x8": TRIALS}, 0, "passed: no case is slower by more than 3.00%"),
        ({"1x1": SLOWER, "2x8": (90, 110)}, 3, "FAILED: 1 case slower by more than 3.00%"),
        ({"1x1": TRIALS, "2x8": (90, 110)}, 5, "NO PASS: of 1 case it cannot be told"),
        ({"1x1": TRIALS}, 5, "NO PASS: of 1 case it cannot be told"),
        ({"1x1": SLOWER}, 3, "FAILED: 1 case slower"),
    ],
)
def test_exit_code_of_the_gate(second: dict[str, tuple[float, ...]], code: int, words: str) -> None:
    """What is slower counts most; what was not measured is no pass."""
    first = side({"1x1": TRIALS, "2x8": TRIALS})
    found = compared(first, side(second, label="B"), 0.03)
    assert (found.exit_code, found.gate[: len(words)]) == (code, words)
    without = compared(first, side(second, label="B"))
    assert (without.exit_code, without.gate) == (0, "")


def test_what_differs_is_named_once() -> None:
    """Settings, parameters that a whole side has otherwise, facts of nodes, nodes, provenance."""
    first = side(
        {"1x1": TRIALS, "2x8": TRIALS},
        params=(("loss_scale", "dynamic"),),
        provenance={**DRIVER, "kernel": "Linux 4.4.0-116"},
    )
    second = side(
        {"1x1": TRIALS, "2x8": TRIALS},
        label="B",
        params=(("loss_scale", "static"),),
        provenance={**DRIVER, "tasks": "t2", "driver": "", "kernel": "Linux 5.4"},
        nodes=("vs003", "vs004"),
        report={
            "image_digest": "sha256:77",
            "environment": {"vs003": {"kernel": "Linux 5.4", "hostname": "x", "torch": "2.1"}},
        },
    )
    found = compared(first, second)
    assert [row.verdict for row in found.rows] == ["same", "same"]
    told = {item.what: (item.first, item.second, item.cases) for item in found.differences}
    assert told == {
        "image digest": ("sha256:5e", "sha256:77", ()),
        "params.loss_scale": ("dynamic", "static", ()),
        "kernel": ("Linux 4.4.0-116", "Linux 5.4", ()),
        "command line and environment (sha256)": ("t1", "t2", ()),
        "nodes": ("vs[001-002]", "vs[003-004]", ()),
    }


def test_what_differs_in_some_cases_names_them() -> None:
    """A case that ran on other nodes than the rest."""
    first, other = {"1x1": TRIALS, "2x8": TRIALS}, side({"2x8": TRIALS}, nodes=("vs009",))
    here, there = side(first), side(first, label="B")
    moved = there.model_copy(update={"cases": (there.cases[0], other.cases[0])})
    found = compared(here, moved)
    (nodes,) = found.differences
    assert (nodes.what, nodes.cases) == ("nodes", (1,))
    assert "differs: nodes: vs[001-002] -> vs009 (2x8 amp b256)" in forms.list_remarks(found)


def test_a_parameter_with_several_values_keeps_cases_apart() -> None:
    """Only what each side has one value of may differ."""
    dynamic = side({"1x1": TRIALS}, params=(("xla", "on"),))
    cases = (*dynamic.cases, *side({"1x1": SLOWER}).cases)
    both = dynamic.model_copy(update={"cases": cases})
    pairs = sides.pair_cases(dynamic, both)
    assert len(pairs.both) == 1
    assert (pairs.both[0][1].values, len(pairs.only_second)) == (TRIALS, 1)
    assert pairs.varied == {}


def test_json_has_everything() -> None:
    """And can be written again: no NaN."""
    told = json.loads(json.dumps(build_document(three()), allow_nan=False))
    assert (told["exit_code"], told["higher_is_better"], told["unit"]) == (3, True, "images/s")
    assert [case["verdict"] for case in told["cases"]] == [
        *("different", "same", "unknown", "unknown"),
    ]
    slow, _, wide, failed = told["cases"]
    assert slow["difference"] == pytest.approx(-0.05)
    assert slow["interval"]["low"] < -0.05 < slow["interval"]["high"]
    assert slow["bound"] == {"share": 0.01, "how": "given"}
    assert (wide["needs_trials"], wide["more_trials"]) == (None, None)
    assert wide["gate_interval"]["low"] < wide["interval"]["low"] < wide["interval"]["high"]
    assert (failed["difference"], failed["first"]["median"]) == (None, None)
    assert failed["first"]["not_valid"] == ["4n8g-r50_b256_amp_1"]
    assert (told["first"]["image_digest"], told["first"]["origin"]) == ("sha256:5e", "sweep-A")
    assert {item["what"] for item in told["differences"]} == {"driver", "nodes"}
    assert [len(told[key]) for key in ("only_first", "only_second")] == [1, 1]


def test_words_for_people() -> None:
    """A row for each case, and remarks below."""
    found = three()
    rows = forms.build_rows(found)
    assert [row[0] for row in rows] == [
        f"{place} amp b256" for place in ("1x1", "1x8", "2x8", "4x8")
    ]
    assert [row[-2] for row in rows] == [
        *("different: slower", "same within the bound", "unknown", "unknown"),
    ]
    assert [row[-1] for row in rows] == ["", "", "A: WIDE-SPREAD; B: WIDE-SPREAD", ""]
    assert rows[0][1:5] == ("100.00", "95.00", "7 and 7", "-5.00%")
    assert rows[2][5].endswith("(covers 92%)")
    assert rows[3][1:6] == ("n/a", "100.00", "0 and 7", "n/a", "")
    remarks = list(forms.list_remarks(found))
    assert "only in A: 1x4 amp b256" in remarks
    assert (
        "4x8 amp b256: unknown: needed at least 3 valid trials on each side, better five" in remarks
    )
    assert "4x8 amp b256: 1 of 1 trial of A not valid" in remarks
    assert "differs: driver: 440.33 -> 450.80" in remarks
    assert remarks[-1] == "bound 1.00% (given)"
    usual = comparison.compare_sides(side({"1x1": TRIALS}), side({"1x1": TRIALS}, label="B"))
    assert list(forms.list_remarks(usual))[-1] == "bound 1.00% (usual)"
    assert forms.describe_sides(found) == ["A: A (sweep-A)", "B: B (sweep-B)"]
    faster = compared(side({"1x1": SLOWER}), side({"1x1": TRIALS}, label="B"))
    assert forms.build_rows(faster)[0][-2] == "different: faster"


def test_markdown_for_a_ci_summary() -> None:
    """Table, gate and method; names of others cannot break it."""
    text = render_markdown(three())
    assert "**FAILED: 1 case slower by more than 3.00%**" in text
    assert "| 1x1 amp b256 | 100.00 | 95.00 | 7 and 7 | -5.00% |" in text
    assert "higher is better" in text
    hostile = compared(side({"1x1": TRIALS}, label="<b>|"), side({"1x1": TRIALS}, label="B"))
    assert "- A: &lt;b>\\| (sweep-&lt;b>\\|)\n" in render_markdown(hostile)
    assert "**" not in render_markdown(hostile)


MARKED = (
    Problem("THROTTLED", "in 2 trials"),
    Problem("ALIEN-PROCESS", "in 1 trial"),
    Problem("WIDE-SPREAD", "12.0% between the lowest and highest"),
)


def marked(which: str) -> Comparison:
    """Two sweeps of equal numbers, of which A, B, or both have marks: of cases and of the whole."""
    drift = Problem("DRIFT", "4.1% between 100.00 at the start, 104.10 at the end")
    first, second = (
        side(
            {"1x1": TRIALS, "2x8": TRIALS},
            label=label,
            marks={"2x8": MARKED} if label in which else {},
            report={"marks": (drift,)} if label in which else {},
        )
        for label in ("A", "B")
    )
    return compared(first, second, 0.03)


@pytest.mark.parametrize("which", ["A", "B"])
def test_marks_of_one_side_stand_beside_the_verdict_and_differ(which: str) -> None:
    """In the table, in remarks, and as a recorded difference: numbers alone would hide them."""
    found = marked(which)
    codes = "ALIEN-PROCESS, THROTTLED, WIDE-SPREAD"
    assert [row[-2:] for row in forms.build_rows(found)] == [
        *(("same within the bound", ""), ("same within the bound", f"{which}: {codes}")),
    ]
    remarks = list(forms.list_remarks(found))
    details = "; ".join(f"{mark.code}: {mark.message}" for mark in MARKED)
    assert f"2x8 amp b256: {which}: {details}" in remarks
    assert any(text.startswith(f"all of {which}: DRIFT: 4.1%") for text in remarks)
    pair = (codes, "(none)") if which == "A" else ("(none)", codes)
    assert f"differs: marks: {pair[0]} -> {pair[1]} (2x8 amp b256)" in remarks
    whole = ("DRIFT", "(none)") if which == "A" else ("(none)", "DRIFT")
    assert f"differs: marks of the whole: {whole[0]} -> {whole[1]}" in remarks


def test_marks_stand_in_every_form() -> None:
    """JSON with their messages, and a column of Markdown."""
    found = marked("B")
    told = json.loads(json.dumps(build_document(found)))
    assert [mark["code"] for mark in told["second"]["marks"]] == ["DRIFT"]
    (_, wide) = told["cases"]
    assert wide["first"]["marks"] == []
    assert wide["second"]["marks"][0] == {"code": "THROTTLED", "message": "in 2 trials"}
    assert {item["what"] for item in told["differences"]} == {"marks", "marks of the whole"}
    text = render_markdown(found)
    assert "| verdict | marks |" in text
    assert "| same within the bound | B: ALIEN-PROCESS, THROTTLED, WIDE-SPREAD |" in text
    assert "all of B: DRIFT: 4.1%" in text


def test_marks_of_both_sides_are_shown_and_do_not_differ() -> None:
    """What both have is said of both; a table without any has no column in Markdown."""
    found = marked("AB")
    assert forms.build_rows(found)[1][-1].count("ALIEN-PROCESS, THROTTLED, WIDE-SPREAD") == 2
    assert found.differences == ()
    assert "| marks |" not in render_markdown(marked(""))


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


@pytest.mark.parametrize(
    ("values", "more", "words"),
    [
        ({"1x1": TRIALS}, {}, "only in A: 2x8 amp b256"),
        ({"1x1": TRIALS, "2x8": (*TRIALS, None)}, {}, "1 of 8 trials of B not valid"),
        ({"1x1": TRIALS, "2x8": TRIALS}, {"provenance": {"image": "sha256:1"}}, "driver"),
        ({"1x1": TRIALS, "2x8": TRIALS}, {"report": {"gpus": ("T4",)}}, "differs: GPU models"),
        (
            {"1x1": TRIALS, "2x8": TRIALS},
            {"report": {"topologies": {"vs001": "X"}}},
            "differs: topology digest",
        ),
        (
            {"1x1": TRIALS, "2x8": TRIALS},
            {"report": {"shared_machine": True}},
            "differs: nodes are one machine: no -> yes",
        ),
        (
            {"1x1": TRIALS, "2x8": TRIALS},
            {"report": {"method": Method(repeats=7, iterations=99, window=(20, 60))}},
            "differs: method.iterations",
        ),
    ],
)
def test_what_differs_is_listed(
    values: dict[str, tuple[float | None, ...]], more: dict[str, object], words: str
) -> None:
    """Cases, numbers of trials, facts of one side alone, and everything else that is recorded."""
    report = {
        "gpus": ("V100",),
        "topologies": {"vs001": "GPU0"},
        "method": Method(repeats=7, iterations=151, window=(20, 60)),
        **(more.pop("report", {}) or {}),  # type: ignore[dict-item] # it is a mapping
    }
    own = {"gpus": ("V100",), "topologies": {"vs001": "GPU0"}, "method": report["method"]}
    own["method"] = Method(repeats=7, iterations=151, window=(20, 60))
    first = side({"1x1": TRIALS, "2x8": TRIALS}, report=own)
    remarks = list(
        forms.list_remarks(compared(first, side(values, label="B", report=report, **more)))
    )
    assert any(words in text for text in remarks)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version: Input should be 1"),
        ({"unit": None}, "unit: "),
        ({"cases": [{"case": {}, "trials": [{"trial": "x"}]}]}, "cases.0.trials.0.state: "),
        (
            {
                "cases": [
                    {"case": {}, "trials": [{"trial": "x", "state": "valid", "throughput": 0}]}
                ]
            },
            "cases.0.trials.0.throughput: ",
        ),
    ],
)
def test_what_is_no_results_json_says_why(change: dict[str, object], words: str) -> None:
    """Field by field; nothing is guessed."""
    with pytest.raises(ValueError, match=words):
        sides.measured({**Told({"1x1": TRIALS}).document, **change}, "A")  # type: ignore[dict-item] # it is JSON
    with pytest.raises(ValueError, match="valid dictionary"):
        sides.measured([], "A")
