"""Every wanted trial of a sweep, run in the scheduler's lanes until each has a valid outcome."""

import contextlib
from collections.abc import Iterator

from orchestrator import words
from orchestrator.console import duration
from orchestrator.model.plan import Trial
from orchestrator.signals import Abandoned
from orchestrator.state.store import Sweep
from orchestrator.sweeping import attempts, gather, lanes, outcomes
from orchestrator.sweeping.campaign import Campaign
from orchestrator.sweeping.requested import Requested

LOG_BYTES_PER_ITERATION = 120


def run_trials(campaign: Campaign, found: Requested) -> None:
    whole, trials, most = campaign.sweep.record().plan, found.plan.trials, found.options.max_fail
    voice, name = campaign.voice, campaign.sweep.id
    outcomes.say_what_does_not_count(campaign, trials)
    done = sum(outcomes.is_done(campaign, trial) for trial in trials)
    _forecast(campaign, found, done, len(whole.trials))
    failed: list[str] = []

    def measure(trial: Trial) -> None:
        if not outcomes.is_done(campaign, trial) and attempts.run(campaign, trial, view) != "valid":
            failed.append(trial.name)

    def may_begin() -> bool:
        return not campaign.stopping and (most is None or len(failed) < most)

    with _frozen_if_left(campaign.sweep), voice.view(name, len(trials), done) as view:
        attempts.settle(campaign, whole, view)
        gather.forget_closed(campaign, whole)
        width = campaign.scheduler.lanes
        lanes.run(trials, measure, lanes=width, may_begin=may_begin, say=voice.line)
    if most is not None and len(failed) >= most:
        voice.line(
            f"{words.count(len(failed), 'trial')} without a valid outcome; no further one was"
            f" started (--max-fail {most})"
        )


@contextlib.contextmanager
def _frozen_if_left(sweep: Sweep) -> Iterator[None]:
    """Where lanes are left at what they do, they must not begin or keep anything from then on.

    The lock of the sweep is given back and what may still run is listed while they go on.
    """
    try:
        yield
    except Abandoned:
        sweep.freeze()
        raise


def _forecast(campaign: Campaign, found: Requested, done: int, requested: int) -> None:
    """Say how many trials, how long and how much disk, as far as that can be known.

    Args:
        requested: trials of the sweep, by this command and those before it.
    """
    count, cluster = len(found.plan.trials), found.cluster
    left = count - done
    trials = words.count(requested, "trial")
    known = f"{trials if count == requested else f'{count} of {trials}'}, {done} valid already"
    if not left:
        campaign.voice.line(f"{known}, nothing left to run")
        return
    method = found.plan.method
    disk = left * method.iterations * LOG_BYTES_PER_ITERATION * 2 >> 10
    campaign.voice.line(
        f"{known}, {left} to run on {words.count(len(cluster.members), 'node')};"
        f" at most {duration(left * method.time_limit_s)} by method.time_limit_s,"
        f" about {max(disk, 1)} KiB of logs,"
        f" at most {max(cluster.log_bytes >> 20, 1)} MiB of each task by max_log_size"
    )
