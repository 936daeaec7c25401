"""Run the requested trials of sweeps in lanes: threads, while the main thread handles signals."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import TypeVar

from orchestrator import errors, words
from orchestrator.collecting import evidence, report_files
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.console.view import View
from orchestrator.deadlines import HEARD_S
from orchestrator.fleet import Pool, folded, wait_for_all
from orchestrator.measuring import settling
from orchestrator.measuring.settling import Series
from orchestrator.model.case import Case
from orchestrator.model.plan import Plan, Trial
from orchestrator.model.report import Report
from orchestrator.planning.packing import choose_trial
from orchestrator.signals import SIGNALS, Abandoned
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import attempts, closing, resume
from orchestrator.sweeping.campaign import Campaign, HeldNodes
from orchestrator.sweeping.requested import Requested

T = TypeVar("T")
R = TypeVar("R")


def run(held: HeldNodes, request: Requested) -> tuple[Sweep, Report]:
    """Run every requested trial that has no valid outcome yet, then measure and write the report.

    Raises:
        LeftoverError: tasks may still run on nodes; after other errors none does.
    """
    request.refuse_unprepared()
    with held.open([request]) as (campaign,):
        run_trials(campaign)
        return campaign.sweep, write_report(campaign.sweep, strict=request.options.strict)


def write_report(sweep: Sweep, *, strict: bool = False) -> Report:
    """Record that a command ended in good order; measure the sweep and write its report."""
    resume.note_end(sweep)
    found = measured(sweep, strict=strict)
    report_files.write(sweep, found)
    return found


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
        kept = campaign.outcome(trial)
        done += kept.valid
        for problem in kept.problems:
            voice.line(f"{trial.name}: measured again: {problem.code}: {problem.message}")
    whole = campaign.sweep.record().plan
    rests = evidence.not_needed(campaign.sweep, whole, campaign.histories)
    resting = sum(trial.name in rests for trial in chosen.trials)
    voice.line(request.describe_work(whole, done, resting))
    failed: list[str] = []

    def may_begin() -> bool:
        return not SIGNALS.stopping() and (most is None or len(failed) < most)

    with _view([campaign], campaign.sweep.id, len(chosen.trials), done) as view:

        def say(line: str, fewer: int) -> None:
            view.fewer(fewer)
            voice.line(f"{line}; {words.count(fewer, 'trial')} not needed")

        def count_nodes() -> int:
            return campaign.scheduler.nodes

        feed = Feed(whole, chosen.trials, campaign.value, count_nodes, say)

        def measure(trial: Trial) -> tuple[str, float | None]:
            return attempts.run(campaign, trial, view), campaign.value(trial)

        def note(trial: Trial, result: tuple[str, float | None]) -> None:
            state, throughput = result
            if state != "valid":
                failed.append(trial.name)
            feed.end(trial, throughput)

        lanes = 1 if whole.method.pack == "none" else campaign.scheduler.lanes
        run_lanes(feed.next, measure, lanes=lanes, voice=voice, may_begin=may_begin, ended=note)
    if most is not None and len(failed) >= most:
        voice.line(
            f"{words.count(len(failed), 'trial')} without a valid outcome; no further one was"
            f" started (--max-fail {most})"
        )


def take_turns(
    campaigns: Sequence[Campaign], turns: Sequence[tuple[int, Trial]], names: Sequence[str]
) -> None:
    """Settle what is open, then run trials of several sweeps one after another.

    Args:
        turns: the place of a campaign, and a trial of it; trials that need no run are skipped.

    Raises:
        Interrupted, LeftoverError, DlperfError: as ``run_trials``.
    """

    def is_needed(side: int, trial: Trial) -> bool:
        campaign = campaigns[side]
        plan = campaign.sweep.record().plan
        rests = evidence.not_needed(campaign.sweep, plan, campaign.histories)
        return campaign.value(trial) is None and trial.name not in rests

    def measure(numbered: tuple[int, tuple[int, Trial]]) -> None:
        number, (side, trial) = numbered
        if is_needed(side, trial):
            voice.line(f"turn {number} of {len(turns)}: {names[side]}, {trial.name}")
            attempts.run(campaigns[side], trial, view)

    done, voice = sum(not is_needed(*turn) for turn in turns), campaigns[0].voice
    with _view(campaigns, " and ".join(names), len(turns), done) as view:
        give = partial(next, enumerate(turns, 1), None)
        run_lanes(give, measure, lanes=1, voice=voice, may_begin=lambda: not SIGNALS.stopping())


@contextlib.contextmanager
def _view(campaigns: Sequence[Campaign], title: str, trials: int, done: int) -> Iterator[View]:
    """Settle earlier attempts and other sweeps, then show the trials that the block runs."""
    try:
        with SIGNALS:
            closing.clear_others(campaigns)
            with campaigns[0].voice.view(title, trials, done) as view:
                for campaign in campaigns:
                    _settle(campaign, view)
                    closing.forget_closed(campaign)
                    if campaign.request.plan.method.pack != "none":
                        campaign.rotate()
                yield view
    except Abandoned:
        # Threads of lanes continue; they must not write once the locks are released.
        for campaign in campaigns:
            campaign.sweep.freeze()
        raise
    if SIGNALS.received:
        less = campaigns[0].request.options.not_to_resume
        raise errors.Interrupted(SIGNALS.received, less=less)


def _settle(campaign: Campaign, view: View) -> None:
    """Settle attempts that an earlier run left open, also of trials that are not requested now.

    A signal does not stop this: it makes each adopted gang end.
    """
    sweep, voice = campaign.sweep, campaign.voice
    left = iter([it for it in sweep.record().plan.trials if campaign.history(it).open])
    settle = partial(attempts.settle, campaign, view)
    run_lanes(partial(next, left, None), settle, lanes=campaign.scheduler.lanes, voice=voice)
    if not any(history.open for history in campaign.histories.values()):
        sweep.keep_record(replace(sweep.record(), inventory=campaign.recipe.cluster))


def run_lanes(
    give: Callable[[], T | None],
    do: Callable[[T], R],
    *,
    lanes: int,
    voice: Voice,
    may_begin: Callable[[], bool] = lambda: True,
    ended: Callable[[T, R], object] = lambda _item, _result: None,
) -> None:
    """Call ``do`` for every item, in that many threads; return once all have ended.

    After an error no item is begun, and the other lanes finish theirs. An exception from a signal
    handler is raised at once, without waiting for the lanes: they are daemon threads.

    Args:
        give: returns the next item; None if none can begin until another has ended.
        may_begin: called before each item; once false, none begins.
        ended: called with an item and its result, one call at a time, before the next item.

    Raises:
        DlperfError: the gravest of the lanes' errors, after the others were printed.
    """
    running = dict[futures.Future[R], T]()
    failures, is_open = list[BaseException](), True
    with contextlib.closing(Pool(lanes)) as pool:
        try:
            while True:
                while is_open and len(running) < lanes:
                    is_open = may_begin()
                    item = give() if is_open else None
                    if item is None:
                        break
                    running[pool.submit(partial(do, item))] = item
                if not running:
                    break
                for future in futures.wait(running, HEARD_S, futures.FIRST_COMPLETED).done:
                    item, error = running.pop(future), future.exception()
                    if error is None:
                        ended(item, future.result())
                        continue
                    failures.append(error)
                    is_open = False
                    if not all(other.done() for other in running):
                        voice.line(_describe(error))
                        voice.line("what runs is finished, nothing new is started")
        except Exception:  # `give` or `ended` failed: what runs is finished all the same
            wait_for_all(running)
            raise
    if failures:
        raise _find_gravest(failures, voice)


def _find_gravest(failures: Sequence[BaseException], voice: Voice) -> BaseException:
    """Return a bug of this program, else the gravest error, to be raised; print the others."""
    ours = folded(failure for failure in failures if isinstance(failure, errors.DlperfError))
    bugs = [failure for failure in failures if not isinstance(failure, errors.DlperfError)]
    if not bugs:
        return voice.gravest(ours)
    for failure in (*ours, *bugs[1:]):
        voice.line(_describe(failure))
    return bugs[0]


def _describe(failure: BaseException) -> str:
    return str(failure) if isinstance(failure, errors.DlperfError) else repr(failure)


class Feed:
    """Choose the requested trial that begins next, by the outcomes so far; each begins once.

    Args:
        whole: every trial requested of the sweep so far; the first trials of a case decide over
            later ones, whichever command ran them.
        value: the throughput of a trial's valid outcome; None without one.
        nodes: returns the number of nodes that may run a trial.
        say: called for each settled case with a line and the number of trials it saves.
    """

    def __init__(
        self,
        whole: Plan,
        trials: Sequence[Trial],
        value: Callable[[Trial], float | None],
        nodes: Callable[[], int],
        say: Callable[[str, int], None],
    ) -> None:
        self._series, self._pack, self._nodes = Series(whole), whole.method.pack, nodes
        self._say = say
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
        trial = choose_trial(
            ready, running, pack=self._pack, nodes=self._nodes(), lasted_s=lasted_s
        )
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
