"""Hold and check the nodes of a sweep, and run its trials."""

import contextlib
from collections.abc import Callable
from typing import TypeVar

from orchestrator import errors
from orchestrator.collecting.sweep import measured
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.model.report import Report
from orchestrator.model.site import Site
from orchestrator.schedulers import Scheduler, choice
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import closing, ended, loop, node_checks
from orchestrator.sweeping.caller import Caller
from orchestrator.sweeping.campaign import Campaign
from orchestrator.sweeping.requested import Requested
from orchestrator.sweeping.resume import Opened

T = TypeVar("T")


class HeldNodes(contextlib.ExitStack):
    """Hold nodes from the first sweep on them to the last, while the context lasts.

    Sweeps that follow one another on the same nodes, as turns do, connect and lock once, and
    observe the nodes once for each image.
    """

    def __init__(self, store: Store, caller: Caller) -> None:
        super().__init__()
        self.store, self._caller = store, caller
        self._held: tuple[Cluster, Scheduler] | None = None
        self._sites: dict[tuple[str, str], Site] = {}

    def reach(self, request: Requested) -> tuple[Scheduler, Site]:
        """Return the scheduler that holds the nodes of a request, and the site as observed.

        Raises:
            StoreError: LOCKED; another controller holds them.
            NodeError: a node does not answer.
            UnfitError: some finding is an error; nothing was started.
        """
        cluster, program = request.cluster, request.recipe.program
        if self._held is None or self._held[0] != cluster:
            self.close()
            self._sites.clear()
            self.enter_context(self.store.lock(cluster.name))
            stopping = self._caller.signals.stopping
            scheduler = self.enter_context(choice.reach(cluster, self.store.root, stopping))
            self.enter_context(scheduler.held())
            self._held = cluster, scheduler
        scheduler = self._held[1]
        key = request.playbook.image.name, program.digest
        if key not in self._sites:
            voice = self._caller.voice
            self._sites[key] = node_checks.site(self.store, request, scheduler, voice)
        return scheduler, self._sites[key]


def run(
    request: Requested, caller: Caller, nodes: HeldNodes, done: Callable[[Sweep, Report], T]
) -> T:
    """Run what is left and measure; return ``done``'s answer, which may still use the nodes.

    Raises:
        Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """
    least = min(trial.case.nodes for trial in request.plan.trials)
    with sites.way_out(request.cluster, least) as omitted:
        scheduler, site = nodes.reach(request)
        store, signals = nodes.store, caller.signals
        with Opened(store, request, site, caller.voice) as opened:
            omitted.add(request.options.not_to_resume)
            with signals:
                campaign = Campaign(
                    *(store, opened, request.recipe, site, scheduler, caller),
                    histories=opened.histories(),
                    strict=request.options.strict,
                )
                closing.clear_others(campaign)
                loop.run_trials(campaign, request)
            if signals.received:
                raise errors.Interrupted(signals.received, less=request.options.not_to_resume)
            ended.note(opened)
            return done(opened, measured(opened, strict=request.options.strict))
