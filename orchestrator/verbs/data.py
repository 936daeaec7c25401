"""data: are data sets on the nodes, whole and alike? And bring them there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import datasets, errors, nodeset, words
from orchestrator.console import Voice
from orchestrator.fleet import Fleet, ask_all
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import Finding
from orchestrator.preparing import held, labels, plan, run, show
from orchestrator.preparing.held import Verdict
from orchestrator.preparing.plan import Asked, Plans
from orchestrator.preparing.run import Outcome
from orchestrator.preparing.show import Ended
from orchestrator.preparing.work import Work
from orchestrator.schedulers import locks
from orchestrator.signals import Abandoned, Signals
from orchestrator.state.store import Store

GOOD = ("prepared", "there", "shared")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks of data sets.

    Args:
        name: of the data set, as inventories have it.
        nodes: names and globs of the nodes that are meant; None for all.
        source: folder of sources on every node.
        labels: a file here that tells the classes of validation images.
    """

    name: str
    inventory: str | None
    nodes: str | None
    source: str | None = None
    labels: Path | None = None


def check(store: Store, options: Options, voice: Voice) -> int:
    """Look at a data set on every node, file by file; exit code.

    Raises:
        StoreError: somebody measures there now, whom reading would disturb.
    """
    asked, whole = _asked(store, options, voice)
    names = [node.name for node in asked.cluster.members]
    with (
        store.lock(whole.name),
        Fleet.of(asked.cluster) as fleet,
        locks.held(fleet, store.root),
    ):
        voice.working(f"data set {options.name}: looking at it on {nodeset.fold(names)}")
        found = held.verdict(fleet, asked.dataset, names)
        voice.rested()
    return show.holdings(voice, asked, found)


def dry_run(store: Store, options: Options, voice: Voice) -> int:
    """Say what preparing would do on each node, and what stands against it; exit code."""
    asked, _ = _asked(store, options, voice)
    given = labels.given(options.labels)
    with Fleet.of(asked.cluster) as fleet:
        plans = _plans(fleet, asked, given)
    return show.dry_run(voice, asked, plans)


def prepare(store: Store, options: Options, voice: Voice, signals: Signals) -> int:
    """Bring a data set onto every node that has it not, then look at it there; exit code.

    Nothing that lies at its path is replaced. What an earlier run began is gone on with.

    Raises:
        StoreError: somebody measures there now.
        LeftoverError: left by a second signal; the work goes on.
    """
    asked, whole = _asked(store, options, voice)
    given = labels.given(options.labels)
    with (
        store.lock(whole.name),
        Fleet.of(asked.cluster) as fleet,
        locks.held(fleet, store.root),
        signals,
    ):
        plans = _plans(fleet, asked, given)
        show.plans(voice, asked, plans)
        logs = store.root.resolve() / "data" / asked.dataset.name
        work = Work(fleet, asked, plans.labels, logs, signals.stopping)
        try:
            outcomes = run.run(work, plans, voice)
            found = _afterwards(fleet, asked, outcomes, signals)
        except Abandoned:
            raise _abandoned(asked) from None
    return show.outcomes(voice, Ended(asked, plans, outcomes, found), signals.received)


def _asked(store: Store, options: Options, voice: Voice) -> tuple[Asked, Cluster]:
    dataset = datasets.find(options.name)
    if dataset is None:
        hint = words.did_you_mean(options.name, datasets.names())
        known = ", ".join(datasets.names())
        raise errors.UsageError(
            f"there is no data set {options.name!r}; there are {known}",
            code="NO-DATASET",
            fix=hint or "one of these",
        )
    whole, path = sites.inventory(store, options.inventory, None, voice)
    cluster = sites.narrowed(whole, options.nodes)
    for node in cluster.members:
        said = node.data.get(dataset.name, "")
        if not said.startswith("/"):
            seen = f"has it at {said}" if said else f"has no path for data set {dataset.name}"
            raise errors.UsageError(
                f"{path}: node {node.name} {seen}; needed an absolute path",
                code="NO-DATASET",
                fix=f"say data: {{{dataset.name}: /a/path}} there, or leave it out by --nodes",
            )
    source = _source(options.source)
    known_site = sites.of(store, whole)
    images = known_site.images if known_site else {}
    return Asked(dataset, cluster, source, images), whole


def _source(named: str | None) -> str | None:
    if named is None:
        return None
    if not named.startswith("/") or not named.isprintable():
        raise errors.UsageError(
            f"--from {named!r}; needed the absolute path of a folder on the nodes",
            code="NO-SOURCE",
            fix="such as --from /data/downloads",
        )
    return named.rstrip("/") or "/"


def _plans(fleet: Fleet, asked: Asked, given: bytes | None) -> Plans:
    names = [node.name for node in asked.cluster.members]
    answers = ask_all(names, lambda name: plan.planned(fleet, asked, name))
    nodes = {answer.node: answer.value for answer in answers if answer.value}
    failures = [answer.error for answer in answers if answer.error]
    known: dict[str, bytes] = {}
    for name, planned in nodes.items():
        if planned.way is None or not planned.way.labels:
            continue
        said = given or labels.beside(fleet, asked, planned)
        if isinstance(said, Finding):
            refusals = (*planned.refusals, said)
            nodes[name] = replace(planned, state="refused", refusals=refusals)
        else:
            known[name] = said
    return Plans(nodes, known, tuple(failures))


def _afterwards(
    fleet: Fleet, asked: Asked, outcomes: Mapping[str, Outcome], signals: Signals
) -> Verdict:
    """What nodes that have the data set now hold; nothing once a signal has come."""
    good = [name for name, outcome in outcomes.items() if outcome.state in GOOD]
    nothing = Verdict({}, (), ())
    if signals.received:
        return nothing
    found = held.verdict(fleet, asked.dataset, good)
    return nothing if signals.received else found


def _abandoned(asked: Asked) -> errors.LeftoverError:
    names = nodeset.fold(node.name for node in asked.cluster.members)
    return errors.LeftoverError(
        f"left at once; preparing {asked.dataset.name} may go on on {names}",
        code="LEFTOVER",
        fix="run the same command again: it finds what is at work; Ctrl-C once then ends it",
    )
