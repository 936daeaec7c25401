"""Find what sweeps left on nodes; `clean` removes only what finished sweeps left."""

import shlex
from collections.abc import Collection, Mapping

from orchestrator import errors, nodeset, words
from orchestrator.deadlines import REMOVE_S
from orchestrator.fleet import Fleet
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import IMAGE_LABEL, OWNER_LABEL, STATE_LABEL
from orchestrator.model.node import Node
from orchestrator.probes import sections
from orchestrator.provisioning import last_checks
from orchestrator.schedulers import strays
from orchestrator.state.store import Store
from orchestrator.sweeping import observed_sweep

Names = dict[str, tuple[str, ...]]
"""Names of folders, containers, data sets and images on a node, by kind."""

# $1: the node's folder; then sweeps. Prints those that have a folder in it, and preparations of
# data sets that left one and run no more.
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


def split(store: Store, cluster: Cluster) -> tuple[tuple[str, ...], dict[str, tuple[str, str]]]:
    """Split the sweeps of a cluster that do not run into settled ones and those with open attempts.

    Returns:
        Ids of the settled sweeps; by id of the others, the cause and what to do.
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
    return tuple(settled), why


def needed_images(store: Store) -> frozenset[str]:
    """Return the images of every cluster that was provisioned from here.

    Raises:
        StoreError: a site file cannot be read, so its images are unknown.
    """
    clusters = [sites.read(content, "provision that cluster again") for content in store.sites()]
    records = [record for site in clusters for record in site.images.values()]
    return frozenset(
        name for record in records for name in (record.tag, record.id, *record.ids.values())
    )


def look(
    fleet: Fleet, node: Node, settled: Collection[str], unsettled: Collection[str]
) -> tuple[Names, Names]:
    """Return what a node has of finished sweeps and killed provisionings, and what is kept.

    Kept are folders and tasks, running or ended, of sweeps with open attempts.

    Raises:
        NodeError: it does not answer.
    """

    def list_lines(script: str, *arguments: str) -> list[str]:
        argv = ("sh", "-c", script, "sh", *arguments)
        done = fleet.transports[node.name].run(argv, timeout_s=REMOVE_S)
        return done.stdout.decode(errors="replace").splitlines()

    folders, kept = list_lines(sections.STALE), list[str]()
    if not node.shares_files:
        for name in list_lines(FOLDERS, node.folder, *settled, *unsettled):
            (kept if name in unsettled else folders).append(f"{node.folder}/{name}")
    tasks = strays.find_names(fleet, node.name, unsettled) if unsettled else ()
    containers = list[str]()
    if node.name in fleet.engines:
        engine = fleet.containers[node.name]
        labelled = engine.labelled(strays.LABEL)
        containers += [it.name for it in labelled if it.labels[strays.LABEL] in settled]
        # Of a killed provisioning; the node's lock proves that none runs.
        containers += [it.name for it in engine.labelled(last_checks.LABEL)]
    return (
        {"folders": tuple(folders), "containers": tuple(containers), "images": ()},
        {"tasks": tasks, "folders": tuple(kept)},
    )


def derived_images(
    fleet: Fleet, node: Node, needed: frozenset[str] | None, state: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the images of ours on a node that no site needs, and those of other state folders.

    Args:
        needed: None where images are not looked at.
        state: the identity of this state folder.

    Returns:
        Names of ours; by name of the others, who made them, empty if unknown.
    """
    ours: list[str] = []
    others: dict[str, str] = {}
    if needed is not None and node.name in fleet.engines:
        tagged = fleet.images[node.name].tagged(IMAGE_LABEL)
        for name, labels in tagged.items():
            if name not in needed and labels.get(STATE_LABEL) == state:
                ours.append(name)
            elif name not in needed:
                others[name] = words.printable(labels.get(OWNER_LABEL, ""))
    return tuple(sorted(ours)), others


def remove(fleet: Fleet, node: Node, leftovers: Names) -> None:
    """Remove leftovers from a node.

    Raises:
        LeftoverError: some folder could not be removed.
    """
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


def failures(
    why: Mapping[str, tuple[str, str]], left: Mapping[str, Names]
) -> list[errors.LeftoverError]:
    """Return an error for every sweep that has something on nodes; its cause names all of it.

    Args:
        why: by id of the sweep, the cause and what to do.
        left: by node name.
    """
    found: list[errors.LeftoverError] = []
    for sweep_id, (cause, fix) in why.items():
        by_node: dict[str, list[str]] = {}
        for node, kept in left.items():
            for name in (*kept["tasks"], *kept["folders"]):
                if f"dlp-{sweep_id}-" in name or name.endswith(f"/{sweep_id}"):
                    by_node.setdefault(node, []).append(name)
        if by_node:
            words = "; ".join(f"{', '.join(names)} on {node}" for node, names in by_node.items())
            where, cause = nodeset.fold(by_node), f"{cause}; kept: {words}"
            found.append(errors.LeftoverError(cause, code="LEFTOVER", fix=fix, node=where))
    return found
