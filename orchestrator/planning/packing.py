"""Choice of the next trial beside the running ones: no node idles, no wide trial waits forever."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from orchestrator.model.case import Case
from orchestrator.model.experiment import Pack
from orchestrator.model.plan import Trial


def choose_trial(
    waiting: Sequence[Trial],
    running: Mapping[Trial, float],
    *,
    pack: Pack,
    nodes: int,
    lasted_s: Mapping[Case, float],
) -> Trial | None:
    """Return the trial to begin now; None if it must wait for a running trial to end.

    ``none`` keeps the order of the plan. Else the widest come first, of one width those that last
    longest; a case that has not run yet counts as the longest. What needs more nodes than are left
    comes last, for it may end the sweep.

    Args:
        running: the seconds that each trial has run.
        nodes: without those that were lost.
        lasted_s: the mean of the trials of a case so far.
    """

    def weigh(trial: Trial) -> tuple[int, float]:
        return trial.case.nodes, lasted_s.get(trial.case, float("inf"))

    if not waiting or (running and pack == "none"):
        return None
    waiting = [trial for trial in waiting if trial.case.nodes <= nodes] or waiting
    if pack == "none":
        return waiting[0]
    first = max(waiting, key=weigh)
    wide = any(trial.case.nodes > 1 for trial in (first, *running))
    if pack == "one-node" and running and wide:
        return None
    free = nodes - sum(trial.case.nodes for trial in running)
    if first.case.nodes <= free or not running:
        return first
    # The first trial needs nodes of running ones; it leaves ``spare`` of those that end soonest.
    # Source: EASY backfilling (Lifka 1995), whose reservation is for the first trial alone.
    ending = sorted(running, key=lambda trial: weigh(trial)[1] - running[trial])
    totals = accumulate((trial.case.nodes for trial in ending), initial=free)
    spare = next((total for total in totals if total >= first.case.nodes), 0) - first.case.nodes
    fitting = [trial for trial in waiting if trial.case.nodes <= min(free, spare)]
    return max(fitting, key=weigh, default=None)
