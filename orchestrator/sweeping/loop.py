"""Run the requested trials of a sweep in the scheduler's lanes."""

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from orchestrator import words
from orchestrator.collecting import evidence
from orchestrator.measuring import settling
from orchestrator.measuring.settling import Series
from orchestrator.model.case import Case
from orchestrator.model.plan import Plan, Trial
from orchestrator.planning.packing import Packing
from orchestrator.signals import Abandoned
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import attempts, closing, lanes, outcomes
from orchestrator.sweeping.campaign import Campaign
from orchestrator.sweeping.requested import Requested, counted_words, nothing_left
from orchestrator.words import duration

LOG_BYTES_PER_ITERATION = 120


def run_trials(campaign: Campaign, requested: Requested) -> None:
    """Settle what is open, then run every requested trial that is needed and not valid yet.

    Raises:
        LeftoverError: a process or container could not be ended.
        DlperfError: the gravest error of a lane; no further trial was started.
    """
    whole, trials = campaign.sweep.record().plan, requested.plan.trials
    most = requested.options.max_fail
    voice, name = campaign.voice, campaign.sweep.id
    outcomes.say_uncounted(campaign, trials)
    done = sum(outcomes.is_done(campaign, trial) for trial in trials)
    _forecast(campaign, requested, done, whole)
    failed: list[str] = []

    def may_begin() -> bool:
        on = not (campaign.stopping or campaign.failed.is_set())
        return on and (most is None or len(failed) < most)

    with _freeze_if_left(campaign.sweep), voice.view(name, len(trials), done) as view:
        attempts.settle(campaign, whole, view)
        closing.forget_closed(campaign, whole)

        def say(line: str, fewer: int) -> None:
            view.fewer(fewer)
            voice.line(f"{line}; {words.count(fewer, 'trial')} not needed")

        value = partial(outcomes.value, campaign)
        width = _lanes(campaign, requested)

        def packing(lasted_s: Mapping[Case, float]) -> Packing:
            return Packing(requested.plan.method.pack, campaign.scheduler.nodes, lasted_s)

        feed = Feed(whole, trials, value, packing, may_begin, say)

        def measure(trial: Trial) -> None:
            with feed.ending(trial):
                if attempts.run(campaign, trial, view) != "valid":
                    failed.append(trial.name)

        lanes.run(feed, measure, lanes=width, may_begin=may_begin, say=voice.line)
    if most is not None and len(failed) >= most:
        voice.line(
            f"{words.count(len(failed), 'trial')} without a valid outcome; no further one was"
            f" started (--max-fail {most})"
        )


def _lanes(campaign: Campaign, requested: Requested) -> int:
    """Return how many trials may run at once; if several, let repeats rotate over the nodes."""
    if requested.plan.method.pack == "none":
        return 1
    campaign.rotation.begin([node.name for node in requested.cluster.members])
    for trial in requested.plan.trials:
        campaign.rotation.add(trial, outcomes.nodes(campaign, trial))
    return campaign.scheduler.lanes


@contextlib.contextmanager
def _freeze_if_left(sweep: Sweep) -> Iterator[None]:
    """Keep lanes, whose threads go on after ``Abandoned``, from writing to the sweep.

    Its lock is released then, and the tasks that may still run are listed.
    """
    try:
        yield
    except Abandoned:
        sweep.freeze()
        raise


def _forecast(campaign: Campaign, requested: Requested, done: int, whole: Plan) -> None:
    """Say how many trials will run, for how long at most, and how much disk their logs take.

    Args:
        done: requested trials that are valid already.
        whole: every trial of the sweep, requested by this command and those before it.
    """
    count, cluster = len(requested.plan.trials), requested.cluster
    rests = evidence.not_needed(campaign.sweep, whole, campaign.histories)
    resting = sum(trial.name in rests for trial in requested.plan.trials)
    left = count - done - resting
    counted = counted_words(len(whole.trials), count, done, resting)
    if not left:
        campaign.voice.line(f"{counted}, {nothing_left(whole, requested.plan)}")
        return
    method = requested.plan.method
    disk = left * method.iterations * LOG_BYTES_PER_ITERATION * 2 >> 10
    at_most = "" if isinstance(method.repeats, int) else "at most "
    campaign.voice.line(
        f"{counted}, {at_most}{left} to run on {words.count(len(cluster.members), 'node')};"
        f" at most {duration(left * method.time_limit_s)} by method.time_limit_s,"
        f" about {max(disk, 1)} KiB of logs,"
        f" at most {max(cluster.log_bytes >> 20, 1)} MiB of each task by max_log_size"
    )


LOOK_S = 0.2  # between two looks whether the sweep is to end, while a lane waits for another


class Feed(Iterator[Trial]):
    """Give each requested trial once; wait where a running trial decides which one is next.

    Args:
        whole: every trial requested of the sweep so far; the first trials of a case decide over
            later ones, whichever command ran them.
        packing: what may run beside what, and in which order, by how long a trial of a case lasts.
        value: the throughput of a trial's valid outcome; None without one.
        may_begin: once false, a lane that waits is given nothing more.
        say: given a line per case that has settled, and how many trials it needs no more.
    """

    def __init__(
        self,
        whole: Plan,
        trials: Sequence[Trial],
        value: Callable[[Trial], float | None],
        packing: Callable[[Mapping[Case, float]], Packing],
        may_begin: Callable[[], bool],
        say: Callable[[str, int], None],
    ) -> None:
        self._series, self._value = Series(whole), value
        self._may_begin, self._say = may_begin, say
        deciding = trials if isinstance(whole.method.repeats, int) else whole.trials
        self._values = {trial.name: value(trial) for trial in deciding}
        self._pending = [trial for trial in trials if self._values[trial.name] is None]
        self._packing = packing
        self._running: dict[Trial, float] = {}  # when each began
        self._lasted_s: dict[Case, list[float]] = defaultdict(list)
        self._changed = threading.Condition()
        self._drop_settled()

    def __next__(self) -> Trial:
        with self._changed:
            while self._may_begin():
                now = time.monotonic()
                running = {trial: now - began for trial, began in self._running.items()}
                ready = self._series.ready(self._pending, running, self._values)
                lasted_s = {case: fmean(seconds) for case, seconds in self._lasted_s.items()}
                trial = self._packing(lasted_s).next(ready, running)
                if trial is not None:
                    self._pending.remove(trial)
                    self._running[trial] = time.monotonic()
                    return trial
                if not (self._pending and self._running):
                    break
                self._changed.wait(LOOK_S)
            raise StopIteration

    @contextlib.contextmanager
    def ending(self, trial: Trial) -> Iterator[None]:
        """Record the outcome of a trial when the block ends."""
        try:
            yield
        finally:
            with self._changed:
                lasted_s = time.monotonic() - self._running.pop(trial)
                self._changed.notify_all()  # they look once this lane has let go
                self._values[trial.name] = self._value(trial)
                if self._values[trial.name] is not None:
                    self._lasted_s[trial.case].append(lasted_s)
                self._drop_settled()

    def _drop_settled(self) -> None:
        """Drop trials that are not needed any more, with a line per case."""
        rests = self._series.not_needed(self._values)
        by_case: dict[Case, list[Trial]] = {}
        for trial in self._pending:
            if trial.name in rests:
                by_case.setdefault(trial.case, []).append(trial)
        self._pending = [trial for trial in self._pending if trial.name not in rests]
        for case, trials in by_case.items():
            totals = self._series.settle(case, self._values)
            if totals is not None:
                name = trials[0].name.rpartition("_")[0]
                self._say(f"{name}: {settling.describe(totals)}", len(trials))
