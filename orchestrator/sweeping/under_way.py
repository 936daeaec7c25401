"""A sweep that has something left to run: its nodes held and checked, its trials run."""

from collections.abc import Callable
from typing import TypeVar

from orchestrator import errors
from orchestrator.collecting.sweep import measured
from orchestrator.inputs import sites
from orchestrator.model.report import Report
from orchestrator.schedulers import choice
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import ended, loop, node_checks, other_sweeps
from orchestrator.sweeping.caller import Caller
from orchestrator.sweeping.campaign import Campaign
from orchestrator.sweeping.requested import Requested
from orchestrator.sweeping.resume import Choice, Opened

T = TypeVar("T")


def run(store: Store, request: Requested, caller: Caller, done: Callable[[Sweep, Report], T]) -> T:
    """Run what is left, then measure; what ``done`` returns, while the nodes are still held.

    Raises:
        Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """
    voice, signals, cluster = caller.voice, caller.signals, request.cluster
    least = min(trial.case.nodes for trial in request.plan.trials)
    with (
        sites.way_out(cluster, least) as omitted,
        store.lock(cluster.name),
        choice.reach(cluster, store.root, signals.stopping) as scheduler,
        scheduler.held(),
    ):
        site = node_checks.site(store, request, scheduler, voice)
        which = Choice(request.options.new, request.plan, request.options.command)
        with Opened(store, request.recipe, site, which, voice) as opened:
            omitted.add(request.options.not_to_resume)
            with signals:
                histories = opened.histories()
                campaign = Campaign(
                    *(store, opened, request.recipe, site, scheduler, caller),
                    histories=histories,
                    strict=request.options.strict,
                )
                other_sweeps.clear_others(campaign)
                loop.run_trials(campaign, request)
            if signals.received:
                raise errors.Interrupted(signals.received, less=request.options.not_to_resume)
            ended.note(opened)
            return done(opened, measured(opened, strict=request.options.strict))
