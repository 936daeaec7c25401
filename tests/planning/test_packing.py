"""Which trial begins next: no node is idle for long, and no trial waits forever."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from orchestrator.model.case import Case
from orchestrator.model.experiment import Pack
from orchestrator.model.plan import Trial
from orchestrator.planning.packing import choose_trial


def trials(widths: Iterable[int], repeats: int) -> list[Trial]:
    """Return trials of cases of these widths, repeat by repeat, as a plan has them."""
    cases = [
        Case(nodes=width, gpus_per_node=1, micro_batch_size=batch, precision="fp32", device="cuda")
        for batch, width in enumerate(widths, 1)
    ]
    return [
        Trial(f"{case.token}-{case.micro_batch_size}_{repeat}", repeat, case, "", 0)
        for repeat in range(1, repeats + 1)
        for case in cases
    ]


def simulated(
    pack: Pack, nodes: int, lasting: Mapping[Trial, float]
) -> tuple[float, dict[Trial, tuple[float, float]]]:
    """Return the makespan, and when each trial ran; times of cases are learned meanwhile."""
    waiting, running, ran = [*lasting], dict[Trial, float](), dict[Trial, tuple[float, float]]()
    means: dict[Case, float] = {}
    clock = 0.0
    while waiting or running:
        begun = {trial: clock - ran[trial][0] for trial in running}
        trial = choose_trial(waiting, begun, pack=pack, nodes=nodes, lasted_s=means)
        if trial is not None:
            waiting.remove(trial)
            running[trial] = clock + lasting[trial]
            ran[trial] = clock, running[trial]
            assert sum(other.case.nodes for other in running) <= nodes
            continue
        assert running, "nothing runs and nothing begins"
        first = min(running, key=lambda trial: running[trial])
        clock = running.pop(first)
        done = [end - began for other, (began, end) in ran.items() if other.case == first.case]
        means[first.case] = sum(done) / len(done)
    return clock, ran


def choose(
    pack: Pack,
    nodes: int,
    waiting: list[Trial],
    running: Mapping[Trial, float],
    lasted_s: Mapping[Case, float] = MappingProxyType({}),
) -> Trial | None:
    return choose_trial(waiting, running, pack=pack, nodes=nodes, lasted_s=lasted_s)


def bound(nodes: int, lasting: Mapping[Trial, float]) -> float:
    """Return a time that no schedule beats: of all nodes, of wide trials, of the longest trial."""
    area = sum(trial.case.nodes * lasts for trial, lasts in lasting.items()) / nodes
    alone = sum(lasts for trial, lasts in lasting.items() if 2 * trial.case.nodes > nodes)
    return max(area, alone, *lasting.values())


LENGTHS = st.floats(0.05, 20)


@settings(max_examples=200)
@given(st.data())
def test_the_28_trials_of_dlperf_take_at_most_5_percent_more_than_the_bound(
    data: st.DataObject,
) -> None:
    """OneFlow's 1x1, 1x8, 2x8, 4x8, seven times each, on four nodes."""
    whole = trials((1, 1, 2, 4), 7)
    usual_s = {trial.case: data.draw(st.floats(60, 120)) for trial in whole[:4]}
    spread = data.draw(st.lists(st.floats(0.97, 1.03), min_size=28, max_size=28))
    lasting = {
        trial: usual_s[trial.case] * factor for trial, factor in zip(whole, spread, strict=True)
    }
    makespan, ran = simulated("disjoint", 4, lasting)
    assert len(ran) == 28
    assert makespan <= 1.05 * bound(4, lasting)


@settings(max_examples=200)
@given(st.data())
def test_any_matrix_is_run_whole_in_at_most_twice_the_bound(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 9))
    widths = data.draw(st.lists(st.integers(1, nodes), min_size=1, max_size=8))
    whole = trials(widths, data.draw(st.integers(1, 6)))
    lasting = {trial: data.draw(LENGTHS) for trial in whole}
    makespan, ran = simulated("disjoint", nodes, lasting)
    assert {*ran} == {*whole}
    assert makespan <= 2 * bound(nodes, lasting) + 1e-9


def test_without_packing_trials_run_one_after_another_in_the_order_of_the_plan() -> None:
    whole = trials((1, 2, 1), 3)
    makespan, ran = simulated("none", 4, dict.fromkeys(whole, 1.0))
    assert list(ran) == whole
    assert makespan == 9.0


def test_one_node_packs_only_trials_that_share_no_fabric() -> None:
    """Each two-node trial runs alone; then the others run four at a time."""
    whole = trials((1, 2, 1), 4)
    makespan, ran = simulated("one-node", 4, dict.fromkeys(whole, 1.0))
    assert makespan == 6.0
    wide = [span for trial, span in ran.items() if trial.case.nodes == 2]
    for began, ended in wide:
        assert sum(sooner < ended and began < later for sooner, later in ran.values()) == 1


def test_after_a_resume_no_trial_begins_beside_one_that_it_must_not_meet() -> None:
    one, two, *_ = trials((1, 2), 1)
    assert choose("one-node", 4, [two], {one: 1.0}) is None
    assert choose("one-node", 4, [one], {two: 1.0}) is None
    assert choose("one-node", 4, [two], {}) == two


def test_nodes_that_the_next_wide_trial_does_not_need_are_filled() -> None:
    """Beside three of four nodes a trial of one node begins, though another of three is next."""
    three, one, three_again, one_again = trials((3, 1), 2)
    assert choose("disjoint", 4, [three_again, one], {three: 1.0}) == one
    assert choose("disjoint", 4, [three_again, one_again], {three: 1.0, one: 1.0}) is None


def test_narrow_trials_do_not_delay_a_wide_one() -> None:
    """Four nodes are needed and two are free: the running trial must end first."""
    four, two, one = trials((4, 2, 1), 1)
    assert choose("disjoint", 4, [one, four], {two: 1.0}) is None


@pytest.mark.parametrize("pack", ["none", "one-node", "disjoint"])
def test_a_trial_that_needs_a_lost_node_comes_last(pack: Pack) -> None:
    """Three of four nodes are left: that trial may end the sweep."""
    four, two, one = trials((4, 2, 1), 1)
    assert choose(pack, 3, [four, two], {}) == two
    assert choose(pack, 3, [four, one], {two: 1.0}) == (one if pack == "disjoint" else None)
    assert choose(pack, 3, [four], {one: 1.0}) is None
    assert choose(pack, 3, [four], {}) == four


def test_nodes_are_reserved_where_trials_end_soonest() -> None:
    """By the times of their cases: nodes that become free later are not reserved."""
    two, short, long, one = trials((2, 1, 1, 1), 1)
    times_s = {short.case: 10.0, long.case: 100.0}
    assert choose("disjoint", 3, [two, one], {short: 9.0, long: 9.0}, times_s) is None
    assert choose("disjoint", 4, [two], {short: 9.0, long: 9.0}) == two


def test_of_one_width_a_case_without_a_time_comes_first_and_then_the_longest() -> None:
    new, quick, slow = trials((1, 1, 1), 1)
    times_s = {quick.case: 1.0, slow.case: 2.0}
    assert choose("disjoint", 2, [quick, slow, new], {}, times_s) == new
    assert choose("disjoint", 2, [quick, slow], {}, times_s) == slow
    assert choose("disjoint", 2, [], {}) is None
