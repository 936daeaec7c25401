"""What reports say of how often was measured, of the canary, and of the interval of a speedup."""

import json
from dataclasses import replace

import pytest

from orchestrator import report
from orchestrator.measuring import medians, settling
from orchestrator.model.experiment import Method, Repeats
from orchestrator.model.report import Report
from orchestrator.model.result import NOT_NEEDED
from tests.reported import SEED_AMP, csv_rows, results, rows, section, sweep, trial

TRIALS = "All trials"
UNTIL = Method(repeats=Repeats(min=3, max=5, until_interval="1%"), iterations=121, window=(20, 120))


def watched(*throughputs: float | None) -> Report:
    """Seed 003's cases, and a canary that gave these throughputs."""
    cases = results(SEED_AMP)
    places = ("start", "middle", "end")
    trials = [trial(cases[0].case, n, value) for n, value in enumerate(throughputs, 1)]
    found = medians.judge_canary(cases[0].case, places[: len(trials)], trials, cases[0])
    return replace(sweep(cases), canary=found)


def settled() -> Report:
    """A case of five planned trials that settled after three."""
    (case,) = results({"1x8": (6135.08, 6130.69, 6154.66, None, None)})
    trials = [one if one.throughput else replace(one, state=NOT_NEEDED) for one in case.trials]
    found = replace(case, trials=tuple(replace(one, problems=()) for one in trials))
    return replace(
        sweep((settling.mark_unsettled(found, UNTIL),)), method=UNTIL, trials_planned=None
    )


def test_a_drift_stands_at_the_top_and_with_its_measurements() -> None:
    """Before the tables, in words; its trials, with logs and sha256, behind those of the cases."""
    found = watched(802.9, 790.0, 780.0)
    text = report.markdown(found)
    assert text.index(
        "DRIFT (the machines changed during the sweep)**: canary: 2.9% between"
    ) < text.index("## Cases at a glance")
    assert [(row["case"], row["images/s"], row["state"]) for row in rows(text, TRIALS)[-3:]] == [
        *(("canary, start", "802.90", "valid"), ("canary, middle", "790.00", "valid")),
        ("canary, end", "780.00", "valid"),
    ]
    assert "- Canary: 1x1 is measured several times and counts in no median." in text
    assert "more than 2.0%, the larger of" in text
    chinese = report.markdown(found, "zh")
    assert "DRIFT（机器状态在测试过程中有变化）" in chinese  # noqa: RUF001 - Chinese punctuation
    document = json.loads(json.dumps(report.document(found)))["canary"]
    assert [one["place"] for one in document["trials"]] == ["start", "middle", "end"]
    assert [mark["code"] for mark in document["marks"]] == ["DRIFT"]
    assert document["bound"] == 0.02


def test_a_canary_that_failed_is_lacking() -> None:
    """It is one of what is missing or does not count, with its reason."""
    found = watched(802.9, None)
    assert found.incomplete == 1
    last = rows(report.markdown(found), TRIALS)[-1]
    assert (last["case"], last["images/s"]) == ("canary, middle", "n/a")
    without = sweep(results(SEED_AMP))
    assert "anary" not in report.markdown(without)
    assert report.document(without)["canary"] is None


def test_a_settled_case_lacks_nothing() -> None:
    """Three of three, and the two that are not needed are shown as that."""
    found = settled()
    assert found.incomplete == 0
    text = report.markdown(found)
    assert "INCOMPLETE" not in text
    assert "3 to 5 trials of each case: no more once the interval" in text
    (glance,) = rows(text, "Cases at a glance")
    assert glance["trials"] == "3/3"
    assert [row["state"] for row in rows(text, TRIALS)] == ["valid"] * 3 + ["not-needed"] * 2
    (case,) = json.loads(json.dumps(report.document(found)))["cases"]
    assert (case["settled"], case["trials_planned"], case["trials_valid"]) == (True, 3, 3)
    assert "无需运行" in report.markdown(found, "zh")


def test_the_interval_of_a_speedup_is_in_every_file() -> None:
    """Unrounded in JSON and CSV, explained in the method; none of the 1x1 case itself."""
    found = sweep(results(SEED_AMP))
    one, *_, largest = json.loads(json.dumps(report.document(found)))["cases"]
    assert one["speedup_interval"] is None
    ends = largest["speedup_interval"]
    assert ends["low"] < 22551.16 / 802.9 < ends["high"]
    assert ends["coverage"] == 0.95
    row = csv_rows(found)[-1]
    names = ("speedup_low", "speedup_high", "speedup_coverage")
    assert [float(row[name]) for name in names] == [*ends.values()]
    assert [csv_rows(found)[0][name] for name in names] == ["", "", ""]
    assert "The interval of a speedup is Welch's" in report.markdown(found)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"rule": "rates"},
            "the harmonic mean of the rates that the program prints from iteration",
        ),
        ({"rule": "arithmetic"}, "arithmetic mean of the rates that the program prints from"),
        ({"rule": "reported", "window": None}, "what the program itself reports at its end"),
        ({"rule": "latency"}, "global batch size / the mean latency of a step, over the rows that"),
        ({"rule": None, "window": None}, "Throughput of a log: by what the log is"),
        ({"rule": "clock", "window": None}, "Throughput of a log: by what the log is"),
    ],
)
def test_method_says_by_which_rule_was_measured(fields: dict[str, object], words: str) -> None:
    """In one sentence, with the window where the rule has one."""
    text = report.markdown(sweep(results(SEED_AMP), **fields))
    assert words in section(text, "How it was measured")
    assert text.count("Throughput of a") == 1


def test_variables_that_were_added_stand_in_the_method() -> None:
    """As they were given, in the order of their names."""
    found = replace(sweep(results(SEED_AMP)), added_env={"B_LAST": "2", "A_FIRST": "x y"})
    described = section(report.markdown(found), "How it was measured")
    assert r"A\_FIRST=x y, B\_LAST=2" in described
    plain = section(report.markdown(sweep(results(SEED_AMP))), "How it was measured")
    assert "FIRST" not in plain
