"""The requested trials of a sweep, run in the scheduler's lanes."""

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


def run_trials(campaign: Campaign, requested: Requested) -> None:
    """Settle what is open, then run every requested trial that has no valid outcome.

    Raises:
        LeftoverError: a process or container could not be ended.
        DlperfError: the gravest error of a lane; no further trial was started.
    """
    whole, trials = campaign.sweep.record().plan, requested.plan.trials
    most = requested.options.max_fail
    voice, name = campaign.voice, campaign.sweep.id
    outcomes.say_what_does_not_count(campaign, trials)
    done = sum(outcomes.is_done(campaign, trial) for trial in trials)
    _forecast(campaign, requested, done, len(whole.trials))
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
    """After ``Abandoned`` the lanes' threads go on: keep them from writing to the sweep.

    Meanwhile the sweep's lock is released and what may still run is listed.
    """
    try:
        yield
    except Abandoned:
        sweep.freeze()
        raise


def _forecast(campaign: Campaign, requested: Requested, done: int, in_sweep: int) -> None:
    """Say how many trials will run, for how long at most, and how much disk their logs take.

    Args:
        done: requested trials that are valid already.
        in_sweep: trials of the sweep, requested by this command and those before it.
    """
    count, cluster = len(requested.plan.trials), requested.cluster
    left = count - done
    trials = words.count(in_sweep, "trial")
    counted = f"{trials if count == in_sweep else f'{count} of {trials}'}, {done} valid already"
    if not left:
        campaign.voice.line(f"{counted}, nothing left to run")
        return
    method = requested.plan.method
    disk = left * method.iterations * LOG_BYTES_PER_ITERATION * 2 >> 10
    campaign.voice.line(
        f"{counted}, {left} to run on {words.count(len(cluster.members), 'node')};"
        f" at most {duration(left * method.time_limit_s)} by method.time_limit_s,"
        f" about {max(disk, 1)} KiB of logs,"
        f" at most {max(cluster.log_bytes >> 20, 1)} MiB of each task by max_log_size"
    )
