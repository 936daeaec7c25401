"""clean: remove what finished sweeps left on the nodes, and nothing that others put there."""

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.fleet import Fleet, ask_all, folded
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.schedulers import locks
from orchestrator.state.store import Store
from orchestrator.sweeping import kept_by_clean, leftovers


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """Whether to remove images too, and whether only to list."""

    images: bool
    dry_run: bool


def clean(store: Store, inventory: str | None, voice: Voice, options: CleanOptions) -> int:
    """Remove attempt folders and containers of this state folder's finished sweeps; exit code.

    Raises:
        StoreError: a controller measures there now.
    """
    cluster, _ = sites.inventory(store, inventory, None, voice)
    needed = leftovers.needed_images(store) if options.images else None
    with contextlib.ExitStack() as held:
        if not options.dry_run:  # only looking disturbs no measurement
            held.enter_context(store.lock(cluster.name))
        fleet = held.enter_context(Fleet.of(cluster))
        if not options.dry_run:
            held.enter_context(locks.held(fleet, store.root))
        _say_running(store, cluster, voice)
        settled, why = kept_by_clean.split(store, cluster)
        nodes = {node.name: node for node in cluster.members}

        def clean_node(name: str) -> leftovers.Leftovers | None:
            found = leftovers.look(fleet, nodes[name], settled, needed)
            if found and not options.dry_run:
                leftovers.remove(fleet, nodes[name], found)
            return found or None

        answers = ask_all(list(nodes), clean_node)
        unsettled_answers = ask_all(
            list(nodes), lambda name: kept_by_clean.look(fleet, nodes[name], [*why])
        )
    kept = {answer.node: answer.value for answer in unsettled_answers if answer.value}
    failures = [answer.error for answer in answers if answer.error]
    failures += kept_by_clean.failures(why, kept)
    removed = {answer.node: answer.value for answer in answers if answer.value}
    heading = "would be removed" if options.dry_run else "removed"
    voice.table(f"On {cluster.name}: {heading}", ("node", "kind", "name"), _rows(removed))
    if not removed and not failures:
        voice.result(f"nothing of the sweeps in {store.root} is left on {len(answers)} nodes")
    for failure in folded(failures):
        voice.line(str(failure))
    code = errors.joined(failure.exit_code for failure in failures)
    voice.document(
        {
            "exit_code": code,
            "dry_run": options.dry_run,
            "nodes": {node: asdict(left) for node, left in removed.items()},
            "kept": {node: asdict(left) for node, left in kept.items() if left},
        }
    )
    return code


def _say_running(store: Store, cluster: Cluster, voice: Voice) -> None:
    for sweep in store.sweeps():
        holder = sweep.lock().holder()
        if holder and sweep.record().cluster == cluster.name:
            voice.line(f"sweep {sweep.id} is running ({holder}); what it uses is kept")


def _rows(removed: Mapping[str, leftovers.Leftovers]) -> list[tuple[str, str, str]]:
    return [
        (node, kind.removesuffix("s"), name)
        for node, left in removed.items()
        for kind, names in asdict(left).items()
        for name in names
    ]
