"""clean: remove what finished sweeps left on the nodes, and nothing that others put there."""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from orchestrator import errors
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import DryRun, FitInventory
from orchestrator.fleet import Fleet, ask_all
from orchestrator.inputs import sites
from orchestrator.model.site import Finding
from orchestrator.schedulers import locks, strays
from orchestrator.sweeping import leftovers


@command("clean", "clean --dry-run", "clean --inventory mine --images")
def clean(
    face: Face,
    inventory: FitInventory = None,
    images: Annotated[bool, typer.Option("--images", help="Unused derived images too.")] = False,
    dry_run: DryRun = False,
) -> int:
    store, voice = face.store, face.voice
    cluster, path = sites.inventory(store, inventory, None, voice)
    needed = leftovers.needed_images(store) if images else None
    others: dict[str, dict[str, str]] = {}  # by node and image, who made it
    with contextlib.ExitStack() as held:
        if not dry_run:  # only looking disturbs no measurement
            held.enter_context(store.lock(cluster.name))
        fleet = held.enter_context(Fleet.of(cluster))
        if not dry_run:
            held.enter_context(locks.held(fleet, store.root))
        for sweep in store.sweeps():
            holder = sweep.lock().holder()
            if holder and sweep.record().cluster == cluster.name:
                voice.line(f"sweep {sweep.id} is running ({holder}); what it uses is kept")
        settled, why = leftovers.split(store, cluster)
        nodes = {node.name: node for node in cluster.members}

        kept: dict[str, leftovers.Names] = {}
        state = store.identity() if images else ""

        def clean_node(name: str) -> leftovers.Names:
            found, open_sweeps = leftovers.look(fleet, nodes[name], settled, why)
            if any(open_sweeps.values()):
                kept[name] = open_sweeps
            found["images"], others[name] = leftovers.derived_images(
                fleet, nodes[name], needed, state
            )
            if any(found.values()) and not dry_run:
                leftovers.remove(fleet, nodes[name], found)
            return found

        answers = ask_all(list(nodes), clean_node)
        gangs: Sequence[Finding] = ()
        with contextlib.suppress(errors.NodeError):  # which is among the answers
            gangs = strays.others(fleet, store.sweep_ids(), inventory or str(path))
    failures = [answer.error for answer in answers if answer.error]
    failures += leftovers.failures(why, kept)
    removed = {it.node: it.value for it in answers if it.value and any(it.value.values())}
    heading = "would be removed" if dry_run else "removed"
    rows = [
        (node, kind.removesuffix("s"), name)
        for node, left in removed.items()
        for kind, names in left.items()
        for name in names
    ]
    voice.table(f"On {cluster.name}: {heading}", ("node", "kind", "name"), rows)
    made = [
        (node, name, by or "unknown", f"docker rmi {name}")
        for node, names in sorted(others.items())
        for name, by in sorted(names.items())
    ]
    head = ("node", "image", "made by", "to remove it there")
    voice.table("Kept: images that another state folder made", head, made)
    if not removed and not failures:
        voice.result(f"nothing of the sweeps in {store.root} is left on {len(answers)} nodes")
    for gang in gangs:
        voice.line(f"left alone: {gang.code} {gang.node}: {gang.seen}. Fix: {gang.fix}.")
    document = {
        "dry_run": dry_run,
        "nodes": removed,
        "kept": dict(sorted(kept.items())),
        "others": [asdict(gang) for gang in gangs],
        "images_of_others": {node: names for node, names in others.items() if names},
    }
    return voice.finish(document, failures)
