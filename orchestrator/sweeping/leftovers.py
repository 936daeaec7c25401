"""Find what sweeps left on nodes; `clean` removes only what finished sweeps left."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import errors, nodeset, words
from orchestrator.deadlines import REMOVE_S
from orchestrator.fleet import Fleet
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.model.node import Node
from orchestrator.planning import images
from orchestrator.probes import sections
from orchestrator.provisioning import in_containers
from orchestrator.schedulers import strays
from orchestrator.state.store import Store
from orchestrator.sweeping import observed_sweep
from orchestrator.transports import Transport

# $1: the node's folder; then sweeps. Prints those that have a folder in it.
FOLDERS = """
cd -- "$1" 2>/dev/null || exit 0
shift
for id; do [ -d "$id" ] && echo "$id"; done
true
"""
# $1: the node's folder. Prints preparations of data sets that left one and run no more.
PREPARED = """
cd -- "$1" 2>/dev/null || exit 0
for path in prepare/*; do
    [ -d "$path" ] || continue
    grep -qsz "=dlp-data-${path#*/}-a" /proc/[0-9]*/environ || echo "$path"
done
true
"""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """List a node's folders, containers and images that are no longer needed."""

    folders: tuple[str, ...]
    containers: tuple[str, ...]
    images: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.folders or self.containers or self.images)


@dataclass(frozen=True, slots=True)
class Kept:
    """List a node's tasks, running or ended, and folders of sweeps with open attempts."""

    tasks: tuple[str, ...]
    folders: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.tasks or self.folders)


def split(store: Store, cluster: Cluster) -> tuple[tuple[str, ...], dict[str, tuple[str, str]]]:
    """Split the sweeps of a cluster that do not run into settled ones and those with open attempts.

    A sweep whose record cannot be read may be of this cluster, and counts as such.

    Returns:
        Ids of the settled sweeps; by id of the others, the cause and what to do.
    """
    settled: list[str] = []
    why = {sweep_id: _mend(error) for sweep_id, error in store.unreadable().items()}
    for sweep in observed_sweep.sweeps_on(store, cluster.name):
        try:
            attempts = observed_sweep.Running.from_sweep(sweep).open_attempts()
        except errors.DlperfError as error:
            why[sweep.id] = _mend(error)
            continue
        if sweep.lock().holder():
            continue  # it runs: what it has is in use
        if not attempts:
            settled.append(sweep.id)
            continue
        names = ", ".join(f"{attempt.trial} a{attempt.number}" for attempt in attempts)
        fix = f"dlperf-orch stop {sweep.id}; or run that sweep again: it goes on with them"
        why[sweep.id] = (f"{names} of sweep {sweep.id} has no outcome", fix)
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


def look(fleet: Fleet, node: Node, sweeps: Sequence[str], removable: Sequence[str]) -> Leftovers:
    """Return what a node has of finished sweeps, and of provisionings that were killed.

    Args:
        removable: images that may go.
    """
    transport = fleet.transports[node.name]
    folders = tuple(_lines(transport, sections.STALE))
    if not node.shares_files:
        folders += _folders(transport, node, sweeps)
        prepared = _lines(transport, PREPARED, node.folder)
        folders += tuple(f"{node.folder}/{name}" for name in prepared)
    if node.name not in fleet.engines:
        return Leftovers(folders, (), ())
    engine = fleet.containers[node.name]
    tasks = [
        container
        for container in engine.labelled(strays.LABEL)
        if container.labels[strays.LABEL] in sweeps
    ]
    # Containers of a killed provisioning; the node's lock proves that none runs.
    probes = engine.labelled(in_containers.LABEL)
    return Leftovers(
        folders, tuple(task.name for task in (*tasks, *probes)), tuple(sorted(removable))
    )


def look_kept(fleet: Fleet, node: Node, sweep_ids: Sequence[str]) -> Kept:
    """Return tasks and folders of sweeps with open attempts on a node.

    Raises:
        NodeError: it does not answer.
    """
    if not sweep_ids:
        return Kept((), ())
    transport = fleet.transports[node.name]
    folders = () if node.shares_files else _folders(transport, node, sweep_ids)
    return Kept(strays.find_names(fleet, node.name, sweep_ids), folders)


def derived_images(
    fleet: Fleet, node: Node, needed: frozenset[str], state: str
) -> tuple[list[str], dict[str, str]]:
    """Return the images of ours on a node that no site needs, and those of other state folders.

    Args:
        state: the identity of this state folder.

    Returns:
        Names of ours; by name of the others, who made them, empty if unknown.
    """
    ours: list[str] = []
    others: dict[str, str] = {}
    if node.name in fleet.engines:
        tagged = fleet.images[node.name].tagged(images.IMAGE_LABEL)
        for name, labels in tagged.items():
            if name not in needed and labels.get(images.STATE_LABEL) == state:
                ours.append(name)
            elif name not in needed:
                others[name] = words.printable(labels.get(images.OWNER_LABEL, ""))
    return ours, others


def _folders(transport: Transport, node: Node, sweeps: Sequence[str]) -> tuple[str, ...]:
    names = _lines(transport, FOLDERS, node.folder, *sweeps) if sweeps else []
    return tuple(f"{node.folder}/{name}" for name in names)


def _lines(transport: Transport, script: str, *arguments: str) -> list[str]:
    done = transport.run(("sh", "-c", script, "sh", *arguments), timeout_s=REMOVE_S)
    return done.stdout.decode(errors="replace").splitlines()


def remove(fleet: Fleet, node: Node, leftovers: Leftovers) -> None:
    """Remove leftovers from a node.

    Raises:
        LeftoverError: some folder could not be removed.
    """
    for name in leftovers.containers:
        fleet.containers[node.name].remove(name)
    for tag in leftovers.images:
        fleet.images[node.name].remove(tag)
    if leftovers.folders:
        done = fleet.transports[node.name].run(
            ("rm", "-rf", "--", *leftovers.folders), timeout_s=REMOVE_S
        )
        if done.exit_code != 0:
            raise errors.LeftoverError(
                done.stderr.decode(errors="replace").strip(),
                code="LEFTOVER",
                node=node.name,
                fix=f"rm -rf {shlex.join(leftovers.folders)}",
            )


def failures(
    why: Mapping[str, tuple[str, str]], left: Mapping[str, Kept]
) -> list[errors.LeftoverError]:
    """Return an error for every sweep that has something on nodes; its cause names all of it.

    Args:
        why: by id of the sweep, the cause and what to do.
        left: by node name.
    """
    found: list[errors.LeftoverError] = []
    for sweep_id, (cause, fix) in why.items():
        names = {
            node: [*_of(sweep_id, tokens.tasks), *_of(sweep_id, tokens.folders)]
            for node, tokens in left.items()
        }
        words = "; ".join(f"{', '.join(kept)} on {node}" for node, kept in names.items() if kept)
        if words:
            where = nodeset.fold(node for node, kept in names.items() if kept)
            found.append(
                errors.LeftoverError(
                    f"{cause}; kept: {words}", code="LEFTOVER", fix=fix, node=where
                )
            )
    return found


def _of(sweep_id: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if f"dlp-{sweep_id}-" in name or name.endswith(f"/{sweep_id}")]


def _mend(error: errors.DlperfError) -> tuple[str, str]:
    mend = "restore the file, then clean again"
    if error.code == "STORE-VERSION":
        mend = "clean with the dlperf-orch that wrote it"
    return error.cause, f"{mend}; or remove by hand what is kept"
