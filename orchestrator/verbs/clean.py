"""clean: remove what finished sweeps left on the nodes, and nothing that others put there."""

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.deadlines import REMOVE_S
from orchestrator.fleet import Fleet, ask_all, folded
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster, Node
from orchestrator.probes import sections
from orchestrator.provisioning import in_containers
from orchestrator.schedulers import locks
from orchestrator.state.store import Store
from orchestrator.sweeping import kept_by_clean
from orchestrator.transports import Transport

SWEEP_LABEL, IMAGE_LABEL = "dlperf.sweep", "dlperf.image"

# One line for each of the sweeps named that has left a folder, and for each preparation of a data
# set that left one and runs no more.
FOLDERS = """
folder=$1; shift
for id in "$@"; do [ -d "$folder/$id" ] && echo "$id"; done
for path in "$folder"/prepare/*; do
    [ -d "$path" ] || continue
    name=${path##*/}
    grep -qsz "=dlp-data-$name-a" /proc/[0-9]*/environ || echo "prepare/$name"
done
true
"""


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """Whether to remove images too, and whether only to list."""

    images: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Leftovers:
    """Folders, and names of containers and images, that lie on a node and are no longer needed."""

    folders: tuple[str, ...]
    containers: tuple[str, ...]
    images: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.folders or self.containers or self.images)


def clean(store: Store, inventory: str | None, voice: Voice, options: CleanOptions) -> int:
    """Remove attempt folders and containers of this state folder's finished sweeps; exit code.

    Raises:
        StoreError: a controller measures there now.
    """
    cluster, _ = sites.inventory(store, inventory, None, voice)
    needed = _needed(store) if options.images else None
    with contextlib.ExitStack() as held:
        if not options.dry_run:  # only looking disturbs no measurement
            held.enter_context(store.lock(cluster.name))
        fleet = held.enter_context(Fleet.of(cluster))
        if not options.dry_run:
            held.enter_context(locks.held(fleet, store.root))
        _say_running(store, cluster, voice)
        settled, why = kept_by_clean.split(store, cluster)
        nodes = {node.name: node for node in cluster.members}

        def clean_node(name: str) -> _Leftovers | None:
            leftovers = _look(fleet, nodes[name], settled, needed)
            if leftovers and not options.dry_run:
                _remove(fleet, nodes[name], leftovers)
            return leftovers or None

        answers = ask_all(list(nodes), clean_node)
        unsettled_answers = ask_all(
            list(nodes), lambda name: kept_by_clean.look(fleet, nodes[name], [*why])
        )
    kept = {answer.node: answer.value for answer in unsettled_answers if answer.value}
    failures = [answer.error for answer in answers if answer.error]
    failures += kept_by_clean.leftovers(why, kept)
    removed = {answer.node: answer.value for answer in answers if answer.value}
    heading = "would be removed" if options.dry_run else "removed"
    voice.table(f"On {cluster.name}: {heading}", ("node", "kind", "name"), _rows(removed))
    if not removed and not failures:
        voice.result(f"nothing of ours is left on the {len(answers)} nodes")
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


def _needed(store: Store) -> frozenset[str]:
    """The images of every cluster that was provisioned from here.

    Raises:
        StoreError: a site file cannot be read, so its images are unknown.
    """
    clusters = [sites.read(content, "provision that cluster again") for content in store.sites()]
    records = [record for site in clusters for record in site.images.values()]
    return frozenset(name for record in records for name in (record.tag, record.id))


def _look(
    fleet: Fleet, node: Node, sweeps: tuple[str, ...], needed: frozenset[str] | None
) -> _Leftovers:
    transport = fleet.transports[node.name]
    folders = tuple(_lines(transport, sections.STALE))
    if not node.shares_files:
        left = _lines(transport, FOLDERS, node.folder, *sweeps)
        folders += tuple(f"{node.folder}/{folder}" for folder in left)
    if node.name not in fleet.engines:
        return _Leftovers(folders, (), ())
    engine = fleet.containers[node.name]
    tasks = [
        container
        for container in engine.labelled(SWEEP_LABEL)
        if container.labels[SWEEP_LABEL] in sweeps
        or (container.labels[SWEEP_LABEL] == "data" and container.state != "running")
    ]
    # Of a provisioning that was killed; the lock says that none runs.
    probes = engine.labelled(in_containers.LABEL)
    containers = tuple(task.name for task in (*tasks, *probes))
    tags = () if needed is None else fleet.images[node.name].tagged(IMAGE_LABEL)
    return _Leftovers(folders, containers, tuple(sorted(set(tags) - (needed or frozenset()))))


def _lines(transport: Transport, script: str, *arguments: str) -> list[str]:
    done = transport.run(("sh", "-c", script, "sh", *arguments), timeout_s=REMOVE_S)
    return done.stdout.decode(errors="replace").splitlines()


def _remove(fleet: Fleet, node: Node, leftovers: _Leftovers) -> None:
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
                fix=f"rm -rf {' '.join(leftovers.folders)}",
            )


def _rows(leftovers: Mapping[str, _Leftovers]) -> list[tuple[str, str, str]]:
    return [
        (node, kind.removesuffix("s"), name)
        for node, left in leftovers.items()
        for kind, names in asdict(left).items()
        for name in names
    ]
