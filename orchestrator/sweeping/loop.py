"""Run the requested trials of sweeps in the scheduler's lanes."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from orchestrator import errors, words
from orchestrator.collecting import evidence
from orchestrator.console.view import View
from orchestrator.measuring import settling
from orchestrator.measuring.settling import Series
from orchestrator.model.case import Case
from orchestrator.model.plan import Plan, Trial
from orchestrator.planning.packing import Packing
from orchestrator.signals import SIGNALS, Abandoned
from orchestrator.sweeping import attempts, closing, lanes, outcomes
from orchestrator.sweeping.campaign import Campaign


def run_trials(campaign: Campaign) -> None:
    """Settle what is open, then run every requested trial that is needed and not valid yet.

    Raises:
        Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: a process or container could not be ended.
        DlperfError: the gravest error of a lane; no further trial was started.
    """
    request, voice = campaign.request, campaign.voice
    chosen, most = request.plan, request.options.max_fail
    done = 0
    for trial in chosen.trials:
        kept = outcomes.load(campaign, trial)
        done += kept.valid
        for problem in kept.problems:
            voice.line(f"{trial.name}: measured again: {problem.code}: {problem.message}")
    whole = campaign.sweep.record().plan
    rests = evidence.not_needed(campaign.sweep, whole, campaign.histories)
    resting = sum(trial.name in rests for trial in chosen.trials)
    voice.line(request.describe_work(whole, done, resting))
    failed: list[str] = []

    def may_begin() -> bool:
        return not campaign.stopping and (most is None or len(failed) < most)

    with _view([campaign], campaign.sweep.id, len(chosen.trials), done) as view:
        width = count_lanes(campaign)

        def say(line: str, fewer: int) -> None:
            view.fewer(fewer)
            voice.line(f"{line}; {words.count(fewer, 'trial')} not needed")

        def packing(lasted_s: Mapping[Case, float]) -> Packing:
            return Packing(chosen.method.pack, campaign.scheduler.nodes, lasted_s)

        feed = Feed(whole, chosen.trials, partial(outcomes.value, campaign), packing, say)

        def measure(trial: Trial) -> tuple[str, float | None]:
            return attempts.run(campaign, trial, view), outcomes.value(campaign, trial)

        def note(trial: Trial, result: tuple[str, float | None]) -> None:
            state, throughput = result
            if state != "valid":
                failed.append(trial.name)
            feed.end(trial, throughput)

        lanes.run(feed.next, measure, lanes=width, say=voice.line, may_begin=may_begin, ended=note)
    if most is not None and len(failed) >= most:
        voice.line(
            f"{words.count(len(failed), 'trial')} without a valid outcome; no further one was"
            f" started (--max-fail {most})"
        )


def count_lanes(campaign: Campaign) -> int:
    """Return how many trials may run at once; if several, let repeats rotate over the nodes."""
    if campaign.request.plan.method.pack == "none":
        return 1
    campaign.rotation.begin([node.name for node in campaign.request.cluster.members])
    for trial in campaign.request.plan.trials:
        kept = outcomes.load(campaign, trial)
        if kept.outcome and kept.valid:
            campaign.rotation.add(trial, (end.node for end in kept.outcome.tasks))
    return campaign.scheduler.lanes


def take_turns(
    campaigns: Sequence[Campaign], turns: Sequence[tuple[int, Trial]], names: Sequence[str]
) -> None:
    """Settle what is open, then run trials of several sweeps one after another.

    Args:
        turns: the place of a campaign, and a trial of it; trials that need no run are skipped.
        names: of the campaigns, for messages.

    Raises:
        Interrupted, LeftoverError, DlperfError: as ``run_trials``.
    """

    def is_needed(side: int, trial: Trial) -> bool:
        campaign = campaigns[side]
        plan = campaign.sweep.record().plan
        rests = evidence.not_needed(campaign.sweep, plan, campaign.histories)
        return outcomes.value(campaign, trial) is None and trial.name not in rests

    def measure(numbered: tuple[int, tuple[int, Trial]]) -> None:
        number, (side, trial) = numbered
        if is_needed(side, trial):
            say(f"turn {number} of {len(turns)}: {names[side]}, {trial.name}")
            attempts.run(campaigns[side], trial, view)

    done, say = sum(not is_needed(*turn) for turn in turns), campaigns[0].voice.line
    with _view(campaigns, " and ".join(names), len(turns), done) as view:
        give = partial(next, enumerate(turns, 1), None)
        lanes.run(give, measure, lanes=1, say=say, may_begin=lambda: not campaigns[0].stopping)


@contextlib.contextmanager
def _view(campaigns: Sequence[Campaign], title: str, trials: int, done: int) -> Iterator[View]:
    """Show trials while the block runs them, once earlier attempts and other sweeps are settled."""
    try:
        with SIGNALS:
            closing.clear_others(campaigns)
            with campaigns[0].voice.view(title, trials, done) as view:
                for campaign in campaigns:
                    attempts.settle(campaign, view)
                    closing.forget_closed(campaign)
                yield view
    except Abandoned:
        # Lanes, whose threads go on, must not write once the locks are released.
        for campaign in campaigns:
            campaign.sweep.freeze()
        raise
    if SIGNALS.received:
        less = campaigns[0].request.options.not_to_resume
        raise errors.Interrupted(SIGNALS.received, less=less)


class Feed:
    """Choose the requested trial that begins next, each once, by those that ended.

    Args:
        whole: every trial requested of the sweep so far; the first trials of a case decide over
            later ones, whichever command ran them.
        value: the throughput of a trial's valid outcome; None without one.
        packing: what may run beside what, and in which order, by how long a trial of a case lasts.
        say: given a line per case that has settled, and how many trials it needs no more.
    """

    def __init__(
        self,
        whole: Plan,
        trials: Sequence[Trial],
        value: Callable[[Trial], float | None],
        packing: Callable[[Mapping[Case, float]], Packing],
        say: Callable[[str, int], None],
    ) -> None:
        self._series, self._packing, self._say = Series(whole), packing, say
        deciding = trials if isinstance(whole.method.repeats, int) else whole.trials
        self._values = {trial.name: value(trial) for trial in deciding}
        self._pending = [trial for trial in trials if self._values[trial.name] is None]
        self._running: dict[Trial, float] = {}  # when each began
        self._lasted_s: dict[Case, list[float]] = defaultdict(list)
        self._drop_settled()

    def next(self) -> Trial | None:
        """Begin a trial; return None if none can begin until another has ended."""
        now = time.monotonic()
        running = {trial: now - began for trial, began in self._running.items()}
        ready = self._series.ready(self._pending, running, self._values)
        lasted_s = {case: fmean(seconds) for case, seconds in self._lasted_s.items()}
        trial = self._packing(lasted_s).next(ready, running)
        if trial is not None:
            self._pending.remove(trial)
            self._running[trial] = now
        return trial

    def end(self, trial: Trial, throughput: float | None) -> None:
        """Record the outcome of a trial."""
        lasted_s = time.monotonic() - self._running.pop(trial)
        self._values[trial.name] = throughput
        if throughput is not None:
            self._lasted_s[trial.case].append(lasted_s)
        self._drop_settled()

    def _drop_settled(self) -> None:
        """Drop trials that are not needed any more, with a line per case."""
        rests = self._series.not_needed(self._values)
        dropped = [trial for trial in self._pending if trial.name in rests]
        self._pending = [trial for trial in self._pending if trial.name not in rests]
        for case in dict.fromkeys(trial.case for trial in dropped):
            names = [trial.name for trial in dropped if trial.case == case]
            if totals := self._series.settle(case, self._values):
                name = names[0].rpartition("_")[0]
                self._say(f"{name}: {settling.describe(totals)}", len(names))
