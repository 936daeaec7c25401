"""Hold everything that is open while sweeps run: nodes, locks, sweeps and their histories."""

import contextlib
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator import errors, nodeset, words
from orchestrator.collecting import evidence
from orchestrator.console import Voice
from orchestrator.deadlines import GATES_S, GRACE_S
from orchestrator.fleet import folded
from orchestrator.inputs import sites, user_files
from orchestrator.model.attempt import Limits
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Trial
from orchestrator.model.site import Finding, Site
from orchestrator.model.sweep import History
from orchestrator.model.text import shape
from orchestrator.planning.plan import Recipe
from orchestrator.provisioning import observe
from orchestrator.runtimes.process import inherited_environment
from orchestrator.schedulers import choice
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.signals import SIGNALS, Abandoned, Stopped
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import observed_sweep, resume
from orchestrator.sweeping.requested import Requested


@dataclass(slots=True)
class Rotation:
    """Count the attempts of each case on each node; used by one lane at a time."""

    nodes: Sequence[str] = ()  # that take turns; while there are none, no node is preferred
    used: Counter[tuple[Case, str]] = field(default_factory=Counter)

    def add(self, trial: Trial, nodes: Iterable[str]) -> None:
        """Record that an attempt of the trial was given these nodes."""
        self.used.update((trial.case, node) for node in nodes)

    def order(self, trial: Trial) -> tuple[str, ...]:
        """Return the nodes in the order in which to take them; empty for a canary, which stays.

        A repeat's own pair is first, then the nodes on which the case ran least often.
        """
        if trial.canary:
            return ()
        own = pair(self.nodes, trial.repeat) if trial.case.nodes == 2 else ()
        used = {node: self.used[trial.case, node] for node in self.nodes}
        return tuple(sorted(self.nodes, key=lambda node: (node not in own, used[node])))


def pair(nodes: Sequence[str], repeat: int) -> tuple[str, ...]:
    """Return the two nodes of a repeat, counted from 1; one of an odd number rests each round.

    Rounds are those of a tournament by the circle method, in the order of cubes: consecutive
    rounds pair the same nodes too often on large clusters.
    """
    if len(nodes) < 2:
        return ()
    turn, at = divmod(repeat - 1, len(nodes) // 2)
    others = len(nodes) - 1 + len(nodes) % 2
    shift = turn**3 % others
    if len(nodes) % 2 == 0 and at == 0:
        return nodes[others], nodes[shift]
    at += len(nodes) % 2
    return nodes[(shift + at) % others], nodes[(shift - at) % others]


@dataclass(frozen=True, slots=True)
class Campaign:
    """A sweep while it runs.

    Args:
        begun: called with the sweep each time a gang of it runs.
        histories: by trial; a trial's own is touched by the lane alone that runs it.
        next: held by the lane that requests nodes, so that wide trials do not starve.
        failed: set once a lane has failed; no attempt begins after that.
    """

    store: Store
    sweep: Sweep
    request: Requested
    site: Site
    scheduler: Scheduler
    voice: Voice
    begun: Callable[[Sweep], None]
    histories: dict[str, History] = field(default_factory=dict)
    next: threading.Lock = field(default_factory=threading.Lock)
    failed: threading.Event = field(default_factory=threading.Event)
    rotation: Rotation = field(default_factory=Rotation)

    @property
    def recipe(self) -> Recipe:
        return self.request.recipe

    def history(self, trial: Trial) -> History:
        """Return the attempts of a trial so far; the history is empty if it never ran."""
        return self.histories.setdefault(trial.name, History())

    def outcome(self, trial: Trial) -> evidence.KeptOutcome:
        """Return a trial's recorded outcome; marks of its nodes are problems of a strict sweep."""
        kept = evidence.check_outcome(self.sweep, trial, self.history(trial))
        marks = kept.outcome.marks if self.request.options.strict and kept.outcome else ()
        return replace(kept, problems=(*kept.problems, *marks))

    def value(self, trial: Trial) -> float | None:
        """Return the throughput of a trial that need not be run again, else None."""
        kept = self.outcome(trial)
        return kept.outcome.throughput if kept.valid and kept.outcome else None

    def rotate(self) -> None:
        """Let the repeats of a case go round the nodes from now on."""
        self.rotation.nodes = [node.name for node in self.request.cluster.members]
        for trial in self.request.plan.trials:
            kept = self.outcome(trial)
            if kept.outcome and kept.valid:
                self.rotation.add(trial, (end.node for end in kept.outcome.tasks))

    @property
    def limits(self) -> Limits:
        method, most = self.recipe.experiment.method, self.recipe.cluster.log_bytes
        return Limits(method.time_limit_s, method.stall_limit_s, GRACE_S, GATES_S, most)

    @property
    def iterations(self) -> int:
        """Return the last iteration that a trial's log will show."""
        return self.recipe.workload.last_iteration(self.recipe.experiment.method.iterations)

    @property
    def inherited_env(self) -> Mapping[str, str]:
        """Return the variables that tasks inherit; empty unless all are processes here."""
        here = self.recipe.cluster.shares_files and not self.recipe.cluster.in_containers
        return inherited_environment() if here else {}


class HeldNodes(contextlib.ExitStack):
    """Hold nodes from the first sweep on them to the last, while the context lasts.

    Sweeps that follow one another on the same nodes connect and lock once, and observe the nodes
    once for each image.
    """

    def __init__(
        self, store: Store, voice: Voice, begun: Callable[[Sweep], None] = lambda _sweep: None
    ) -> None:
        super().__init__()
        self._store, self._voice, self._begun = store, voice, begun
        self._held: tuple[Cluster, Scheduler] | None = None
        self._sites: dict[tuple[str, str], Site] = {}

    def _reach(self, request: Requested) -> tuple[Scheduler, Site]:
        """Return the scheduler that holds the nodes of a request, and the site as observed.

        Raises:
            UnfitError: some finding is an error; nothing was started.
        """
        cluster, program = request.cluster, request.recipe.program
        if self._held is None or self._held[0] != cluster:
            self.close()
            self._sites.clear()
            self.enter_context(self._store.lock(cluster.name))
            reached = choice.reach(cluster, self._store.root, SIGNALS.stopping)
            scheduler = self.enter_context(reached)
            self.enter_context(scheduler.held())
            self._held = cluster, scheduler
        scheduler = self._held[1]
        key = request.playbook.image.name, program.digest
        if key not in self._sites:
            self._sites[key] = _observe_site(self._store, request, scheduler, self._voice)
        return scheduler, self._sites[key]

    @contextlib.contextmanager
    def open(
        self, requests: Sequence[Requested], earlier: Sequence[Sweep] = ()
    ) -> Iterator[list[Campaign]]:
        """Hold the sweeps of requests for the same nodes, locked, their plans written.

        Args:
            earlier: the sweep to resume for each request; without them each request's own is found.

        Raises:
            Interrupted: a signal came; nothing that was started still runs.
            LeftoverError: tasks may still run on nodes.
        """
        store, voice, begun = self._store, self._voice, self._begun
        cluster = requests[0].cluster
        less = requests[0].options.not_to_resume
        least = min(trial.case.nodes for request in requests for trial in request.plan.trials)
        try:
            with sites.way_out(cluster, least) as omitted, contextlib.ExitStack() as held:
                campaigns = []
                reached = [self._reach(request) for request in requests]  # before a sweep is made
                before = earlier or (None,) * len(requests)
                for request, (scheduler, site), old in zip(requests, reached, before, strict=True):
                    opened = resume.open_sweep(store, request, site, voice, old)
                    sweep = held.enter_context(opened)
                    histories = sweep.histories()
                    campaigns.append(
                        Campaign(store, sweep, request, site, scheduler, voice, begun, histories)
                    )
                omitted.add(less)
                yield campaigns
        except (Abandoned, Stopped) as end:
            observed_sweep.refuse_left(store, cluster.name)
            if isinstance(end, Stopped):
                raise
            raise errors.Interrupted(SIGNALS.received, less=less) from None


def _observe_site(store: Store, requested: Requested, scheduler: Scheduler, voice: Voice) -> Site:
    """Observe the site in one round trip; return it with the images that provisioning prepared."""
    cluster, image, known = requested.cluster, requested.playbook.image, requested.known
    inventory, digest = requested.inventory, sites.digest(requested.recipe.cluster)
    site, failures = observe.observe(
        cluster, scheduler.ask, store, inventory, digest, known, (image,), is_certain=True
    )
    if failed := folded(failures):
        gravest = voice.gravest(failed)
        gravest.others = tuple(failure.where.get("node", "") for failure in failures)
        raise gravest
    names = {"all", *(node.name for node in cluster.members)}
    before = known.provisioned if known else ()
    unchecked = (  # by a sweep
        replace(finding, fix=f"{finding.fix}; then provision again")
        for finding in before
        if finding.node in names
    )
    site = replace(site, findings=(*site.findings, *unchecked), provisioned=before)
    scheduler.preflight(image.name, requested.recipe.program)
    if not cluster.in_containers:
        store.keep_site(cluster.name, shape(Site).dump_json(site, indent=1))
        files = user_files.folder_files(requested.playbook.image_folder)
        scheduler.push(files, requested.recipe.program.code)
    busy = scheduler.others(store.sweep_ids(), str(requested.options.inventory or inventory))
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
    fresh, unchanged = defaultdict[Finding, list[str]](list), defaultdict[str, list[str]](list)
    for finding in findings:
        if finding.severity != "error" and (finding.code, finding.node) in before:
            unchanged[finding.code].append(finding.node)
        else:
            fresh[replace(finding, node="")].append(finding.node)
    for new, nodes in fresh.items():
        seen = f"{new.severity} {new.code} {nodeset.fold(nodes)}: {new.seen}"
        voice.line(f"{seen}; needed {new.expected}. Fix: {new.fix}.")
    if unchanged:
        codes = (f"{code} {nodeset.fold(nodes)}" for code, nodes in unchanged.items())
        voice.line(f"warnings as before: {', '.join(codes)}")
