"""Hold and check the nodes of a sweep, and run its trials."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from orchestrator import errors, nodeset, words
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.fleet import folded
from orchestrator.inputs import sites, user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.report import Report
from orchestrator.model.site import Finding, Site
from orchestrator.model.text import shape
from orchestrator.provisioning import observe
from orchestrator.schedulers import choice
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import closing, loop, resume
from orchestrator.sweeping.campaign import Campaign
from orchestrator.sweeping.requested import Caller, Requested
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
            self._sites[key] = _observe_site(self.store, request, scheduler, voice)
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
            resume.note_end(opened)
            return done(opened, measured(opened, strict=request.options.strict))


def _observe_site(store: Store, requested: Requested, scheduler: Scheduler, voice: Voice) -> Site:
    """Observe the site in one round trip; return it with the images that provisioning prepared.

    Raises:
        NodeError: a node does not answer.
        UnfitError: some finding is an error; nothing was started.
    """
    cluster, playbook = requested.cluster, requested.playbook
    observed = _observe_nodes(store, requested, scheduler, voice)
    scheduler.preflight(playbook.image.name, requested.recipe.program)
    if not cluster.in_containers:
        store.keep_site(cluster.name, shape(Site).dump_json(observed, indent=1))
        code = requested.recipe.program.code
        scheduler.push(user_files.folder_files(playbook.image_folder), code)
    busy = scheduler.others(
        store.sweep_ids(), str(requested.options.inventory or requested.inventory)
    )
    observed = replace(observed, findings=(*busy, *observed.findings))
    _say_findings(observed, requested.known, voice)
    wrong = [found for found in observed.findings if found.severity == "error"]
    if wrong:
        first = wrong[0]
        unfit = errors.UnfitError(
            f"{words.count(len(wrong), 'error')} found, the first: {first.seen};"
            f" needed {first.expected}",
            code=first.code,
            node=first.node,
            phase="preflight",
            fix=first.fix,
        )
        unfit.others = tuple(finding.node for finding in wrong)
        raise unfit
    return observed


def _say_findings(site: Site, earlier: Site | None, voice: Voice) -> None:
    """Print new findings in a line each, and the codes of earlier warnings in one line."""
    before = {(finding.code, finding.node) for finding in (earlier.findings if earlier else ())}
    old = [
        finding
        for finding in site.findings
        if finding.severity != "error" and (finding.code, finding.node) in before
    ]
    fresh = [finding for finding in site.findings if finding not in old]
    for new in dict.fromkeys(replace(finding, node="") for finding in fresh):
        nodes = nodeset.fold(finding.node for finding in fresh if replace(finding, node="") == new)
        seen = f"{new.severity} {new.code} {nodes}: {new.seen}"
        voice.line(f"{seen}; needed {new.expected}. Fix: {new.fix}.")
    codes = dict.fromkeys(finding.code for finding in old)
    unchanged = [
        f"{code} {nodeset.fold(finding.node for finding in old if finding.code == code)}"
        for code in codes
    ]
    if unchanged:
        voice.line(f"warnings as before: {', '.join(unchanged)}")


def _observe_nodes(store: Store, requested: Requested, scheduler: Scheduler, voice: Voice) -> Site:
    site, failures = observe.observe(
        requested.cluster,
        scheduler.ask,
        store,
        requested.inventory,
        requested.digest,
        requested.known,
        (requested.playbook.image,),
        is_certain=True,
    )
    if failed := folded(failures):
        gravest = voice.gravest(failed)
        gravest.others = tuple(failure.where.get("node", "") for failure in failures)
        raise gravest
    before = requested.known.provisioned if requested.known else ()
    return replace(site, findings=(*site.findings, *_provisioned(requested)), provisioned=before)


def _provisioned(requested: Requested) -> tuple[Finding, ...]:
    """Return the last provisioning's findings about what a sweep does not check again."""
    names = {node.name for node in requested.cluster.members}
    findings = requested.known.provisioned if requested.known else ()
    return tuple(
        replace(finding, fix=f"{finding.fix}; then provision again")
        for finding in findings
        if finding.node in names or finding.node == "all"
    )
