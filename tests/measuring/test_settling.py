"""When a case has settled, which trial begins next, and what early ends save and cost."""

import random
from collections.abc import Iterator, Mapping

import pytest

from orchestrator.measuring import medians, settling
from orchestrator.measuring.settling import Series
from orchestrator.model.experiment import Method, Repeats
from orchestrator.model.plan import Plan, Trial
from orchestrator.model.result import NOT_NEEDED, Measurement
from orchestrator.planning import plan
from tests.benchmarks import repeats
from tests.measuring.trials import case, trial
from tests.planning.recipes import recipe

GRID = {"placement": ["1x1", "1x2"], "precision": ["amp"], "micro_batch_size": [256]}
UNTIL = {"min": 3, "max": 6, "until_interval": "1%"}
# Seed 003's 1x4 and 4x8 with AMP: three values within 0.6 %, and five that scatter over 4 %.
QUIET = (3129.63, 3119.23, 3137.44, 3137.67, 3144.55, 3130.00)
NOISY = (22364.13, 22551.16, 22978.13, 23049.75, 22053.98, 22400.00)


def built(often: object = UNTIL, **method: object) -> Plan:
    """Return a plan of two cases of one node."""
    said = {"repeats": often, "iterations": 21, "window": [5, 20], **method}
    return plan.build(recipe(grid=GRID, method=said))


def truth(whole: Plan) -> dict[str, float]:
    """Return what each trial will give: the first case is quiet, the second is not."""
    series = dict(zip(whole.by_case.values(), (QUIET, NOISY), strict=True))
    return {
        one.name: value
        for trials, values in series.items()
        for one, value in zip(trials, values, strict=True)
    }


def first_case(whole: Plan) -> tuple[Trial, ...]:
    return next(iter(whole.by_case.values()))


def known(whole: Plan, trials: int) -> dict[str, float | None]:
    """Return the throughputs once so many trials of the quiet case are valid."""
    return {one.name: truth(whole)[one.name] for one in first_case(whole)[:trials]}


def test_a_case_settles_once_its_interval_is_narrow_enough() -> None:
    """Three trials within 0.59 % of the median, of at most 1 %: the other three are not needed."""
    whole = built()
    series, quiet = Series(whole), first_case(whole)
    assert series.settle(quiet[0].case, known(whole, 2)) is None
    totals = series.settle(quiet[0].case, known(whole, 3))
    assert totals is not None
    assert (totals.n, totals.interval and totals.interval.coverage) == (3, 0.75)
    assert settling.width(totals) == pytest.approx((3137.44 - 3119.23) / 3129.63)
    assert series.not_needed(known(whole, 3)) == {one.name for one in quiet[3:]}
    assert settling.describe(totals) == (
        "settled after 3 trials: its interval is 0.58% of the median wide;"
        " on average over all cases 75.0% of such intervals hold the median"
    )


def test_an_interval_as_wide_as_asked_for_is_narrow_enough() -> None:
    """99.5 to 100.5 is 1 % of 100; a hundredth more is too wide."""
    whole = built()
    names = [one.name for one in first_case(whole)]
    for low, rests in ((99.5, True), (99.49, False)):
        values = dict(zip(names, (low, 100.0, 100.5), strict=False))
        assert bool(Series(whole).not_needed(values)) is rests


def test_a_gap_is_filled_before_anything_is_settled() -> None:
    """Without a valid second trial, the first alone is known, however near the others are."""
    whole = built()
    quiet = first_case(whole)
    values = known(whole, 4) | {quiet[1].name: None}
    assert Series(whole).settle(quiet[0].case, values) is None
    assert Series(whole).ready(quiet[4:], (), values) == ()
    assert Series(whole).ready(quiet[1:3], (), values) == quiet[1:3]


def test_a_plain_number_of_repeats_never_settles() -> None:
    """Every repeat is run, in the plan's order, also while others run."""
    whole = built(3)
    series = Series(whole)
    assert (
        series.settle(whole.trials[0].case, dict.fromkeys((it.name for it in whole.trials), 100.0))
        is None
    )
    assert series.not_needed({}) == frozenset()
    for place in range(len(whole.trials)):
        pending, running = whole.trials[place:], whole.trials[:place]
        assert series.ready(pending, running, {}) == tuple(pending)
    assert series.ready((), whole.trials, {}) == ()


def test_a_trial_beyond_the_least_waits_for_those_before_it() -> None:
    """It begins when they are valid, waits while one runs, and is left where one has failed."""
    whole = built()
    quiet, series = first_case(whole), Series(whole)
    assert series.ready(quiet[3:], quiet[2:3], known(whole, 2)) == ()
    assert series.ready(quiet[3:], (), known(whole, 2)) == ()
    wide = known(whole, 2) | {quiet[2].name: 3300.0}
    assert series.ready(quiet[3:], (), wide) == (quiet[3],)


def test_a_canary_has_the_machines_to_itself() -> None:
    """It waits for what runs, and what comes after it waits for the canary."""
    whole = built(2, canary=True)
    start, *others = whole.trials
    series = Series(whole)
    assert start.canary == "start"
    assert series.ready(whole.trials, (), {}) == (start,)
    assert series.ready(others, (start,), {}) == ()
    place = next(n for n, one in enumerate(others) if one.canary)
    rest, running = others[place:], tuple(others[:place])
    assert series.ready(rest, running, {}) == ()
    assert series.ready(rest, (), {}) == (others[place],)


def sessions(whole: Plan, chance: random.Random) -> Iterator[Mapping[str, float | None]]:
    """Yield the outcomes after each session of a sweep that is interrupted again and again.

    Trials run in several lanes and end in any order; those that run at the end of a session are
    interrupted, and some fail.
    """
    gives, values = truth(whole), dict.fromkeys(truth(whole))
    series, outcomes = Series(whole), dict[str, float | None](values)
    for _ in range(200):
        pending = [one for one in whole.trials if outcomes[one.name] is None]
        running: list[Trial] = []
        lanes, ends = chance.randint(1, 4), chance.randint(1, 8)
        while ends:
            found = next(iter(series.ready(pending, running, outcomes)), None)
            if found is not None and len(running) < lanes:
                pending.remove(found)
                running.append(found)
                continue
            if not running:
                break
            ended = running.pop(chance.randrange(len(running)))
            outcomes[ended.name] = None if chance.random() < 0.2 else gives[ended.name]
            ends -= 1
        yield outcomes


@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_interruptions_runs_the_same_trials(seed: int) -> None:
    """Whatever runs side by side, fails or is stopped: the trials that count are the same ones."""
    whole = built()
    *_, outcomes = sessions(whole, random.Random(seed))
    quiet, noisy = whole.by_case.values()
    ran = {name for name, value in outcomes.items() if value is not None}
    assert ran == {one.name for one in (*quiet[:3], *noisy)}
    assert Series(whole).not_needed(outcomes) == {one.name for one in quiet[3:]}


METHOD = Method(
    repeats=Repeats(min=3, max=6, until_interval="1%"), iterations=121, window=(20, 120)
)
LATER = trial("later", None, "planned")
RESTING = trial("later", None, NOT_NEEDED)
FAILED = trial("failed", None, "failed")


def valid(*values: float) -> list[Measurement]:
    return [trial(str(number), value) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("trials", "settled", "message"),
    [
        (valid(*QUIET[:3]), True, None),
        ([*valid(*NOISY[:3]), LATER], False, None),
        (
            [*valid(*NOISY), RESTING],
            False,
            "after 6 valid trials its interval is 4.43% of the median wide; needed at most 1%",
        ),
        (valid(800.0), False, "after 1 valid trial; needed at most 1%"),
        ([FAILED], False, "after 0 valid trials; needed at most 1%"),
        (
            [*valid(800.0, 800.0), FAILED],
            False,
            "after 2 valid trials its interval is 0.00% of the median wide; needed at most 1%",
        ),
    ],
    ids=["narrow", "still open", "wide", "one trial", "failed", "fewer than the least"],
)
def test_a_result_is_settled_open_or_marked_unsettled(
    trials: list[Measurement], settled: bool, message: str | None
) -> None:
    """The mark is given where nothing is left to run."""
    found = settling.mark_unsettled(medians.result(case(), trials), METHOD)
    assert found.settled is settled
    marks = [(mark.code, mark.message) for mark in found.marks if mark.code != "WIDE-SPREAD"]
    assert marks == ([("UNSETTLED", message)] if message else [])


def test_a_plain_number_of_repeats_marks_nothing() -> None:
    plain = Method(repeats=5, iterations=121, window=(20, 120))
    found = medians.result(case(), valid(*NOISY))
    assert settling.mark_unsettled(found, plain) is found


def test_early_ends_save_trials_and_keep_their_coverage() -> None:
    """The simulation behind docs/measuring.md, with fewer runs.

    6 to 9 trials need fewer than 9, and cover about as surely as 6 do.
    """
    scatter = repeats.shape()
    assert len(scatter.residuals) == 4 * 7 + 5 * 5
    often = Repeats(min=6, max=9, until_interval="1%")
    found = repeats.simulated(repeats.until(often), scatter, 100)
    nine = repeats.simulated(repeats.fixed(9), scatter, 100)
    assert nine.trials == 9
    assert 6 < found.trials < 8.5
    assert found.covers > 0.93
    assert found.narrow == pytest.approx(nine.narrow, abs=0.05)
    often = Repeats(min=3, max=9, until_interval="1%")
    found = repeats.simulated(repeats.until(often), scatter, 100)
    assert found.trials < 6
    assert 0.7 < found.covers < 0.85  # three trials cover with 75 %
