"""Hold and check nodes, and hold the sweeps that run on them."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator import errors, nodeset, words
from orchestrator.console import Voice
from orchestrator.fleet import folded
from orchestrator.inputs import sites, user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import Finding, Site
from orchestrator.model.text import shape
from orchestrator.provisioning import observe
from orchestrator.schedulers import choice
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.signals import Abandoned, Stopped
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep, resume
from orchestrator.sweeping.campaign import Campaign
from orchestrator.sweeping.requested import Caller, Requested


class HeldNodes(contextlib.ExitStack):
    """Hold nodes from the first sweep on them to the last, while the context lasts.

    Sweeps that follow one another on the same nodes connect and lock once, and observe the nodes
    once for each image.
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


@contextlib.contextmanager
def open_campaigns(
    requests: Sequence[Requested],
    caller: Caller,
    nodes: HeldNodes,
    earlier: Sequence[Sweep] = (),
) -> Iterator[list[Campaign]]:
    """Hold the sweeps of requests for the same nodes, locked, their plans written.

    Args:
        earlier: the sweep to resume for each request; without them each request's own is found.

    Raises:
        Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """
    store, cluster = nodes.store, requests[0].cluster
    less = requests[0].options.not_to_resume
    least = min(trial.case.nodes for request in requests for trial in request.plan.trials)
    try:
        with sites.way_out(cluster, least) as omitted, contextlib.ExitStack() as held:
            campaigns = []
            reached = [nodes.reach(request) for request in requests]  # before any sweep is made
            for place, request in enumerate(requests):
                scheduler, site = reached[place]
                before = earlier[place] if earlier else None
                sweep = held.enter_context(
                    resume.open_sweep(store, request, site, caller.voice, before)
                )
                campaigns.append(
                    Campaign(
                        *(store, sweep, request.recipe, site, scheduler, caller),
                        histories=sweep.histories(),
                        strict=request.options.strict,
                        less=less,
                    )
                )
            omitted.add(less)
            yield campaigns
    except (Abandoned, Stopped) as end:
        observed_sweep.refuse_left(store, cluster.name)
        if isinstance(end, Stopped):
            raise
        raise errors.Interrupted(caller.signals.received, less=less) from None


def _observe_site(store: Store, requested: Requested, scheduler: Scheduler, voice: Voice) -> Site:
    """Observe the site in one round trip; return it with the images that provisioning prepared.

    Raises:
        NodeError: a node does not answer.
        UnfitError: some finding is an error; nothing was started.
    """
    cluster, image, known = requested.cluster, requested.playbook.image, requested.known
    site, failures = observe.observe(
        cluster,
        scheduler.ask,
        store,
        requested.inventory,
        requested.digest,
        known,
        (image,),
        is_certain=True,
    )
    if failed := folded(failures):
        gravest = voice.gravest(failed)
        gravest.others = tuple(failure.where.get("node", "") for failure in failures)
        raise gravest
    names = {"all", *(node.name for node in cluster.members)}
    before = known.provisioned if known else ()
    unchecked = [  # by a sweep
        replace(finding, fix=f"{finding.fix}; then provision again")
        for finding in before
        if finding.node in names
    ]
    site = replace(site, findings=(*site.findings, *unchecked), provisioned=before)
    scheduler.preflight(image.name, requested.recipe.program)
    if not cluster.in_containers:
        store.keep_site(cluster.name, shape(Site).dump_json(site, indent=1))
        files = user_files.folder_files(requested.playbook.image_folder)
        scheduler.push(files, requested.recipe.program.code)
    inventory = str(requested.options.inventory or requested.inventory)
    busy = scheduler.others(store.sweep_ids(), inventory)
    site = replace(site, findings=(*busy, *site.findings))
    _say_findings(site.findings, known.findings if known else (), voice)
    wrong = [finding for finding in site.findings if finding.severity == "error"]
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
    return site


def _say_findings(findings: Sequence[Finding], earlier: Sequence[Finding], voice: Voice) -> None:
    """Print new findings in a line each, and the codes of earlier warnings in one line."""
    before = {(finding.code, finding.node) for finding in earlier}
    fresh: dict[Finding, list[str]] = {}
    unchanged: dict[str, list[str]] = {}
    for finding in findings:
        if finding.severity != "error" and (finding.code, finding.node) in before:
            unchanged.setdefault(finding.code, []).append(finding.node)
        else:
            fresh.setdefault(replace(finding, node=""), []).append(finding.node)
    for new, nodes in fresh.items():
        seen = f"{new.severity} {new.code} {nodeset.fold(nodes)}: {new.seen}"
        voice.line(f"{seen}; needed {new.expected}. Fix: {new.fix}.")
    if unchanged:
        codes = (f"{code} {nodeset.fold(nodes)}" for code, nodes in unchanged.items())
        voice.line(f"warnings as before: {', '.join(codes)}")
