"""clean: remove what finished sweeps left on the nodes, and nothing that others put there."""

import contextlib
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from orchestrator import errors, nodeset, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import DryRun, FitInventory
from orchestrator.deadlines import REMOVE_S
from orchestrator.fleet import Fleet, ask_all
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import IMAGE_LABEL, OWNER_LABEL, STATE_LABEL
from orchestrator.model.node import Node
from orchestrator.model.site import Finding
from orchestrator.probes import sections
from orchestrator.provisioning import last_checks
from orchestrator.schedulers import locks, strays
from orchestrator.state.store import Store
from orchestrator.sweeping import observed_sweep

Names = dict[str, list[str]]
"""Names of folders, containers, tasks and images on a node, by kind."""

# $1: the node's folder; other arguments: sweep ids. Prints the sweeps that have a folder there,
# and folders of data-set preparations that no longer run.
FOLDERS = """
cd -- "$1" 2>/dev/null || exit 0
shift
for id; do [ -d "$id" ] && echo "$id"; done
for path in prepare/*; do
    [ -d "$path" ] || continue
    grep -qsz "=dlp-data-${path#*/}-a" /proc/[0-9]*/environ || echo "$path"
done
true
"""


@command("clean", "clean --dry-run", "clean --inventory mine --images")
def clean(
    face: Face,
    inventory: FitInventory = None,
    images: Annotated[bool, typer.Option("--images", help="Unused derived images too.")] = False,
    dry_run: DryRun = False,
) -> int:
    store, voice = face.store, face.voice
    cluster, path = sites.inventory(store, inventory, None, voice)
    needed = _list_needed_images(store) if images else None
    with contextlib.ExitStack() as held:
        if not dry_run:  # a dry run disturbs no measurement
            held.enter_context(store.lock(cluster.name))
        fleet = held.enter_context(Fleet.of(cluster))
        if not dry_run:
            held.enter_context(locks.held(fleet, store.root))
        for sweep in store.sweeps():
            holder = sweep.lock().holder()
            if holder and sweep.record().cluster == cluster.name:
                voice.line(f"sweep {sweep.id} is running ({holder}); what it uses is kept")
        settled, why = split(store, cluster)
        nodes = {node.name: node for node in cluster.members}
        state = store.identity() if images else ""
        kept: dict[str, Names] = {}
        others: dict[str, dict[str, str]] = {}  # by node and image, who made it

        def clean_node(name: str) -> Names:
            found, open_sweeps = _look(fleet, nodes[name], settled, why)
            if any(open_sweeps.values()):
                kept[name] = open_sweeps
            found["images"], others[name] = _find_unused_images(fleet, name, needed, state)
            if any(found.values()) and not dry_run:
                _remove(fleet, nodes[name], found)
            return found

        answers = ask_all(list(nodes), clean_node)
        gangs: Sequence[Finding] = ()
        with contextlib.suppress(errors.NodeError):  # the answers have the error, too
            gangs = strays.others(fleet, store.sweep_ids(), inventory or str(path))
    failures = [answer.error for answer in answers if answer.error]
    failures += _explain_kept(why, kept)
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
        for name, by in names.items()
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


def split(store: Store, cluster: Cluster) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """Split a cluster's stopped sweeps into settled ones and those with open attempts.

    Return ids of the settled sweeps; by id of the others, the cause and what to do.
    """
    settled, why = list[str](), dict[str, tuple[str, str]]()
    for sweep, attempts, error in observed_sweep.list_left(store, cluster.name):
        if error is not None:
            mend = "restore the file, then clean again"
            if error.code == "STORE-VERSION":
                mend = "clean with the dlperf-orch that wrote it"
            why[sweep.id] = error.cause, f"{mend}; or remove by hand what is kept"
        elif attempts:
            names = ", ".join(f"{attempt.trial} a{attempt.number}" for attempt in attempts)
            fix = f"dlperf-orch stop {sweep.id}; or run that sweep again: it goes on with them"
            why[sweep.id] = (f"{names} of sweep {sweep.id} has no outcome", fix)
        else:
            settled.append(sweep.id)
    return settled, why


def _list_needed_images(store: Store) -> frozenset[str]:
    """Return the images of every cluster that was provisioned from here.

    Raises:
        StoreError: a site file cannot be read, so its images are unknown.
    """
    clusters = [sites.read(content, "provision that cluster again") for content in store.sites()]
    records = [record for site in clusters for record in site.images.values()]
    return frozenset(
        name for record in records for name in (record.tag, record.id, *record.ids.values())
    )


def _look(
    fleet: Fleet, node: Node, settled: Collection[str], unsettled: Collection[str]
) -> tuple[Names, Names]:
    """List what finished sweeps and killed provisionings left on a node, and what is kept.

    Kept are folders and tasks, running or ended, of sweeps with open attempts.
    """

    def list_lines(script: str, *arguments: str) -> list[str]:
        argv = ("sh", "-c", script, "sh", *arguments)
        done = fleet.transports[node.name].run(argv, timeout_s=REMOVE_S)
        return done.stdout.decode(errors="replace").splitlines()

    folders, kept = list_lines(sections.STALE), list[str]()
    if not node.shares_files:
        for name in list_lines(FOLDERS, node.folder, *settled, *unsettled):
            (kept if name in unsettled else folders).append(f"{node.folder}/{name}")
    marked = strays.find_tasks(fleet, node.name) if unsettled else ()
    tasks = [task.name for task in marked if task.sweep in unsettled]
    containers = list[str]()
    if node.name in fleet.engines:
        engine = fleet.containers[node.name]
        labelled = engine.labelled(strays.LABEL)
        containers += [it.name for it in labelled if it.labels[strays.LABEL] in settled]
        # Containers of a killed provisioning; the node's lock proves that none runs.
        containers += [it.name for it in engine.labelled(last_checks.LABEL)]
    return {"folders": folders, "containers": containers}, {"tasks": tasks, "folders": kept}


def _find_unused_images(
    fleet: Fleet, node: str, needed: frozenset[str] | None, state: str
) -> tuple[list[str], dict[str, str]]:
    """Return the images on a node that no site needs: ours, and by name who made the others.

    Args:
        needed: None where images are not looked at.
    """
    ours, others = list[str](), dict[str, str]()
    if needed is not None and node in fleet.engines:
        for name, labels in sorted(fleet.images[node].tagged(IMAGE_LABEL).items()):
            if name not in needed and labels.get(STATE_LABEL) == state:
                ours.append(name)
            elif name not in needed:
                others[name] = words.printable(labels.get(OWNER_LABEL, ""))
    return ours, others


def _remove(fleet: Fleet, node: Node, leftovers: Names) -> None:
    for name in leftovers["containers"]:
        fleet.containers[node.name].remove(name)
    for tag in leftovers["images"]:
        fleet.images[node.name].remove(tag)
    if folders := leftovers["folders"]:
        remove_folders = ("rm", "-rf", "--", *folders)
        done = fleet.transports[node.name].run(remove_folders, timeout_s=REMOVE_S)
        if done.exit_code != 0:
            raise errors.LeftoverError(
                done.stderr.decode(errors="replace").strip(),
                code="LEFTOVER",
                node=node.name,
                fix=f"rm -rf {shlex.join(folders)}",
            )


def _explain_kept(
    why: Mapping[str, tuple[str, str]], left: Mapping[str, Names]
) -> list[errors.LeftoverError]:
    """Return an error for every sweep that has something on nodes; its cause names all of it."""
    found: list[errors.LeftoverError] = []
    for sweep_id, (cause, fix) in why.items():
        by_node: dict[str, list[str]] = {}
        for node, kept in left.items():
            for name in (*kept["tasks"], *kept["folders"]):
                if f"dlp-{sweep_id}-" in name or name.endswith(f"/{sweep_id}"):
                    by_node.setdefault(node, []).append(name)
        if by_node:
            kept_names = "; ".join(f"{', '.join(it)} on {node}" for node, it in by_node.items())
            where, cause = nodeset.fold(by_node), f"{cause}; kept: {kept_names}"
            found.append(errors.LeftoverError(cause, code="LEFTOVER", fix=fix, node=where))
    return found
