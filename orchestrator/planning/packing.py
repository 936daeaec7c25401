"""Choice of the next trial beside the running ones: no node idles, no wide trial waits forever."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from orchestrator.model.case import Case
from orchestrator.model.experiment import Pack
from orchestrator.model.plan import Trial


@dataclass(frozen=True, slots=True)
class Packing:
    """The rule that decides which trials may run side by side.

    Args:
        nodes: without those that were lost.
        lasted_s: the mean of the trials of a case so far.
    """

    pack: Pack
    nodes: int
    lasted_s: Mapping[Case, float] = field(default_factory=dict)

    def next(self, waiting: Sequence[Trial], running: Mapping[Trial, float]) -> Trial | None:
        """Return the trial to begin now; None if it must wait for a running trial to end.

        ``none`` keeps the order of the plan. Else the widest come first, of one width those that
        last longest; a case that has not run yet counts as the longest. What needs more nodes than
        are left comes last, for it may end the sweep. Running trials come with their seconds.
        """
        if not waiting or (running and self.pack == "none"):
            return None
        waiting = [trial for trial in waiting if trial.case.nodes <= self.nodes] or waiting
        if self.pack == "none":
            return waiting[0]
        first = max(waiting, key=self._weight)
        wide = any(trial.case.nodes > 1 for trial in (first, *running))
        if self.pack == "one-node" and running and wide:
            return None
        free = self.nodes - sum(trial.case.nodes for trial in running)
        if first.case.nodes <= free or not running:
            return first
        most = min(free, self._spare(first, free, running))
        fitting = [trial for trial in waiting if trial.case.nodes <= most]
        return max(fitting, key=self._weight, default=None)

    def _weight(self, trial: Trial) -> tuple[int, float]:
        return trial.case.nodes, self.lasted_s.get(trial.case, float("inf"))

    def _spare(self, first: Trial, free: int, running: Mapping[Trial, float]) -> int:
        """Return how many nodes ``first`` will not need once enough are free for it to begin.

        Source: EASY backfilling (Lifka 1995), whose reservation is for the first trial alone.
        """
        lasts_s = {trial: self.lasted_s.get(trial.case, float("inf")) for trial in running}
        ending = sorted(running, key=lambda trial: lasts_s[trial] - running[trial])
        totals = accumulate((trial.case.nodes for trial in ending), initial=free)
        return next((total for total in totals if total >= first.case.nodes), 0) - first.case.nodes
