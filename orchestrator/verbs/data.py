"""data: check that data sets on nodes are complete and equal; prepare them there."""

from typing import Annotated

import typer

from orchestrator import errors, nodeset, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import DataSet, DryRun, FitInventory, Nodes
from orchestrator.datasets import DATASETS
from orchestrator.fleet import Fleet, ask_all
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.preparing_data import copies
from orchestrator.preparing_data.copies import Copies
from orchestrator.preparing_data.prepare import DataRequest, NodeWork, prepare_all
from orchestrator.schedulers import locks
from orchestrator.signals import SIGNALS, Abandoned
from orchestrator.state import lock
from orchestrator.state.store import Store

GOOD = ("prepared", "there", "shared")  # outcomes of nodes that now have the data set


@command("data check", "data check imagenet --inventory mine")
def check(face: Face, name: DataSet, inventory: FitInventory = None, nodes: Nodes = None) -> int:
    store, voice = face.store, face.voice
    request, whole = _resolve(face, name, inventory, nodes)
    names = [node.name for node in request.cluster.members]
    with (
        sites.way_out(request.cluster),
        store.lock(whole.name),
        Fleet.of(request.cluster) as fleet,
        locks.held(fleet, store.root),
    ):
        voice.line(f"data set {name}: looking at it on {nodeset.fold(names)}")
        observed = copies.read(fleet, request.dataset, names)
    return copies.show(voice, request, observed)


@command("data prepare", "data prepare imagenet --dry-run")
def prepare(
    face: Face,
    name: DataSet,
    inventory: FitInventory = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Folder of sources on nodes.")
    ] = None,
    nodes: Nodes = None,
    dry_run: DryRun = False,
) -> int:
    store, voice = face.store, face.voice
    request, whole = _resolve(face, name, inventory, nodes, source)
    if dry_run:
        with Fleet.of(request.cluster) as fleet:
            works, failures = _look_at_nodes(fleet, request, store)
        return copies.show_dry_run(voice, request, works, failures)
    with (
        sites.way_out(request.cluster),
        store.lock(whole.name),
        Fleet.of(request.cluster) as fleet,
        locks.held(fleet, store.root),
        SIGNALS,
    ):
        works, failures = _look_at_nodes(fleet, request, store)
        copies.show_plans(voice, request, works)
        try:
            outcomes = prepare_all(works, failures, voice)
            observed = Copies({}, (), ())
            if not SIGNALS.received:
                good = [name for name, outcome in outcomes.items() if outcome.state in GOOD]
                looked = copies.read(fleet, request.dataset, good)
                observed = observed if SIGNALS.received else looked
        except Abandoned:
            names = nodeset.fold(node.name for node in request.cluster.members)
            raise errors.LeftoverError(
                f"left at once; preparing {request.dataset.name} may go on on {names}",
                code="LEFTOVER",
                fix="run the same command again: it finds what is at work;"
                " Ctrl-C once then ends it",
            ) from None
    return copies.show_outcomes(voice, request, works, outcomes, observed, SIGNALS.received)


def _resolve(
    face: Face, name: str, inventory: str | None, nodes: str | None, source: str | None = None
) -> tuple[DataRequest, Cluster]:
    """Return the request for the chosen nodes, and the whole inventory."""
    dataset = DATASETS.get(name)
    if dataset is None:
        raise errors.UsageError(
            f"there is no data set {name!r}; there are {', '.join(DATASETS)}",
            code="NO-DATASET",
            fix=words.did_you_mean(name, tuple(DATASETS)) or "one of these",
        )
    whole, path = sites.inventory(face.store, inventory, None, face.voice)
    cluster = sites.narrow(whole, nodes)
    for node in cluster.members:
        node_path = node.data.get(dataset.name, "")
        if not node_path.startswith("/"):
            seen = f"has {node_path or 'no path'} for data set {dataset.name}"
            raise errors.UsageError(
                f"{path}: node {node.name} {seen}; needed an absolute path",
                code="NO-DATASET",
                fix=f"say data: {{{dataset.name}: /a/path}} there, or leave it out by --nodes",
            )
    if source is not None:
        if not source.startswith("/") or not source.isprintable():
            raise errors.UsageError(
                f"--from {source!r}; needed the absolute path of a folder on the nodes",
                code="NO-SOURCE",
                fix="such as --from /data/downloads",
            )
        source = source.rstrip("/") or "/"
    return DataRequest(dataset, cluster, source), whole


def _look_at_nodes(
    fleet: Fleet, request: DataRequest, store: Store
) -> tuple[dict[str, NodeWork], list[errors.DlperfError]]:
    """Return the preparations by node name, and the errors of silent nodes."""
    logs = store.root.resolve() / "data" / request.dataset.name
    owner = lock.own(store.root).record()
    works = {
        node.name: NodeWork(fleet, request, node, owner, logs, SIGNALS.stopping)
        for node in request.cluster.members
    }
    answers = ask_all(list(works), lambda name: works[name].look())
    looked_at = {answer.node: works[answer.node] for answer in answers if answer.value}
    return looked_at, [answer.error for answer in answers if answer.error]
