"""Which trial begins next: nothing idles for long, nothing waits for ever, nothing meets."""

import random
from collections.abc import Iterable, Mapping

import pytest

from orchestrator.model.case import Case
from orchestrator.model.experiment import Pack
from orchestrator.model.plan import Trial
from orchestrator.planning.packing import Packing


def trials(widths: Iterable[int], repeats: int) -> list[Trial]:
    """Repeat by repeat, as a plan has them."""
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
    """The makespan, and when each trial ran; what a case lasts is known once one has ended."""
    waiting, running, ran = [*lasting], dict[Trial, float](), dict[Trial, tuple[float, float]]()
    means: dict[Case, float] = {}
    clock = 0.0
    while waiting or running:
        packing = Packing(pack, nodes, means)
        begun = {trial: clock - ran[trial][0] for trial in running}
        trial = packing.next(waiting, begun)
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


def bound(nodes: int, lasting: Mapping[Trial, float]) -> float:
    """No schedule is shorter: the nodes' time, what fits no two at once, the longest trial."""
    area = sum(trial.case.nodes * lasts for trial, lasts in lasting.items()) / nodes
    alone = sum(lasts for trial, lasts in lasting.items() if 2 * trial.case.nodes > nodes)
    return max(area, alone, *lasting.values())


@pytest.mark.parametrize("seed", range(200))
def test_the_28_trials_of_dlperf_take_hardly_longer_than_the_bound(seed: int) -> None:
    """OneFlow's 1x1, 1x8, 2x8, 4x8, seven times each, on four nodes: within 5 %."""
    dice = random.Random(seed)
    whole = trials((1, 1, 2, 4), 7)
    usual_s = {trial.case: dice.uniform(60, 120) for trial in whole[:4]}
    lasting = {trial: usual_s[trial.case] * dice.uniform(0.97, 1.03) for trial in whole}
    makespan, ran = simulated("disjoint", 4, lasting)
    assert len(ran) == 28
    assert makespan <= 1.05 * bound(4, lasting)


@pytest.mark.parametrize("seed", range(100))
def test_any_matrix_is_run_whole_and_not_longer_than_twice_the_bound(seed: int) -> None:
    """Whatever widths and lengths; and no trial begins after a narrower one that it waited for."""
    dice = random.Random(seed)
    nodes = dice.randint(1, 9)
    whole = trials((dice.randint(1, nodes) for _ in range(dice.randint(1, 8))), dice.randint(1, 6))
    lasting = {trial: dice.lognormvariate(0, 1) for trial in whole}
    makespan, ran = simulated("disjoint", nodes, lasting)
    assert {*ran} == {*whole}
    assert makespan <= 2 * bound(nodes, lasting) + 1e-9


def test_packed_or_not_every_trial_runs_once() -> None:
    """With ``none`` in the order of the plan, one after another."""
    whole = trials((1, 2, 1), 3)
    makespan, ran = simulated("none", 4, dict.fromkeys(whole, 1.0))
    assert list(ran) == whole
    assert makespan == 9.0


def test_one_node_packs_only_what_does_not_meet_on_the_fabric() -> None:
    """Two-node trials run alone, each; then the others four at a time."""
    whole = trials((1, 2, 1), 4)
    makespan, ran = simulated("one-node", 4, dict.fromkeys(whole, 1.0))
    assert makespan == 6.0
    wide = [span for trial, span in ran.items() if trial.case.nodes == 2]
    for began, ended in wide:
        assert sum(sooner < ended and began < later for sooner, later in ran.values()) == 1


def test_a_narrow_trial_that_still_runs_keeps_a_wide_one_waiting_alone() -> None:
    """As after a resume: nothing else begins beside either, in ``one-node``."""
    one, two, *_ = trials((1, 2), 1)
    packing = Packing("one-node", 4)
    assert packing.next([two], {one: 1.0}) is None
    assert packing.next([one], {two: 1.0}) is None
    assert packing.next([two], {}) == two


def test_nodes_that_the_next_wide_trial_does_not_need_are_filled() -> None:
    """Beside three of four nodes a trial of one node begins, though another of three is next."""
    three, one, three_again, one_again = trials((3, 1), 2)
    packing = Packing("disjoint", 4)
    assert packing.next([three_again, one], {three: 1.0}) == one
    assert packing.next([three_again, one_again], {three: 1.0, one: 1.0}) is None


def test_a_wide_trial_is_not_put_off_by_narrow_ones() -> None:
    """Four nodes are needed and one is free: the others that run are waited for."""
    four, one = trials((4, 1), 1)
    (two,) = trials((2,), 1)
    assert Packing("disjoint", 4).next([one, four], {two: 1.0}) is None


@pytest.mark.parametrize("pack", ["none", "one-node", "disjoint"])
def test_what_needs_a_lost_node_comes_last(pack: Pack) -> None:
    """Three of four nodes are left: all that fits on them begins before what may end the sweep."""
    four, two, one = trials((4, 2, 1), 1)
    packing = Packing(pack, 3)
    assert packing.next([four, two], {}) == two
    assert packing.next([four, one], {two: 1.0}) == (one if pack == "disjoint" else None)
    assert packing.next([four], {one: 1.0}) is None
    assert packing.next([four], {}) == four


def test_of_those_that_end_the_sooner_ones_are_waited_for() -> None:
    """By what their cases lasted so far: what ends later is no part of the wide trial's nodes."""
    two, short, long, one = trials((2, 1, 1, 1), 1)
    packing = Packing("disjoint", 3, {short.case: 10.0, long.case: 100.0})
    assert packing.next([two, one], {short: 9.0, long: 9.0}) is None
    assert Packing("disjoint", 4).next([two], {short: 9.0, long: 9.0}) == two


def test_a_case_that_has_not_run_comes_before_those_that_are_known() -> None:
    """Of one width; then the longest."""
    new, quick, slow = trials((1, 1, 1), 1)
    packing = Packing("disjoint", 2, {quick.case: 1.0, slow.case: 2.0})
    assert packing.next([quick, slow, new], {}) == new
    assert packing.next([quick, slow], {}) == slow
    assert packing.next([], {}) is None
