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
from orchestrator.provisioning import inside
from orchestrator.schedulers import locks
from orchestrator.state.store import Store
from orchestrator.sweeping import unsettled
from orchestrator.transports import Transport

SWEEP_LABEL, IMAGE_LABEL = "dlperf.sweep", "dlperf.image"

# One line for each of the sweeps named that has left a folder, and for each preparation of a data
# set that left one and runs no more.
FOLDERS = """
folder=$1; shift
for id in "$@"; do [ -d "$folder/$id" ] && echo "$id"; done
for each in "$folder"/prepare/*; do
    [ -d "$each" ] || continue
    name=${each##*/}
    grep -qsz "=dlp-data-$name-a" /proc/[0-9]*/environ || echo "prepare/$name"
done
true
"""


@dataclass(frozen=True, slots=True)
class What:
    """What the command line asks to remove, beside attempts."""

    images: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """What of ours lies on a node and is needed no more; containers and images by name."""

    folders: tuple[str, ...]
    containers: tuple[str, ...]
    images: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.folders or self.containers or self.images)


def clean(store: Store, inventory: str | None, voice: Voice, what: What) -> int:
    """Remove attempt folders and containers of this state folder's finished sweeps; exit code.

    Raises:
        StoreError: a controller measures there now.
    """
    cluster, _ = sites.inventory(store, inventory, None, voice)
    needed = _needed(store) if what.images else None
    with contextlib.ExitStack() as held:
        if not what.dry_run:  # to look is in nobody's way
            held.enter_context(store.lock(cluster.name))
        fleet = held.enter_context(Fleet.of(cluster))
        if not what.dry_run:
            held.enter_context(locks.held(fleet, store.root))
        _say_running(store, cluster, voice)
        settled, why = unsettled.split(store, cluster)
        nodes = {node.name: node for node in cluster.members}

        def one(name: str) -> _Found | None:
            found = _look(fleet, nodes[name], settled, needed)
            if found and not what.dry_run:
                _remove(fleet, nodes[name], found)
            return found or None

        answers = ask_all(list(nodes), one)
        looked = ask_all(list(nodes), lambda name: unsettled.look(fleet, nodes[name], [*why]))
    kept = {answer.node: answer.value for answer in looked if answer.value}
    failures = [answer.error for answer in answers if answer.error]
    failures += unsettled.leftovers(why, kept)
    found = {answer.node: answer.value for answer in answers if answer.value}
    word = "would be removed" if what.dry_run else "removed"
    voice.table(f"On {cluster.name}: {word}", ("node", "kind", "name"), _rows(found))
    if not found and not failures:
        voice.result(f"nothing of ours is left on the {len(answers)} nodes")
    for failure in folded(failures):
        voice.line(str(failure))
    code = errors.joined(failure.exit_code for failure in failures)
    said = {"exit_code": code, "dry_run": what.dry_run, "nodes": _json(found)}
    voice.document(
        {**said, "kept": {node: asdict(leftovers) for node, leftovers in kept.items() if leftovers}}
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
        StoreError: a site does not read; then nobody knows what it needs.
    """
    known = [sites.read(content, "provision that cluster again") for content in store.sites()]
    records = [record for site in known for record in site.images.values()]
    return frozenset(name for record in records for name in (record.tag, record.id))


def _look(
    fleet: Fleet, node: Node, sweeps: tuple[str, ...], needed: frozenset[str] | None
) -> _Found:
    transport = fleet.transports[node.name]
    folders = tuple(_lines(transport, sections.STALE))
    if not node.is_here:
        left = _lines(transport, FOLDERS, node.folder, *sweeps)
        folders += tuple(f"{node.folder}/{folder}" for folder in left)
    if node.name not in fleet.engines:
        return _Found(folders, (), ())
    engine = fleet.containers[node.name]
    tasks = [
        container
        for container in engine.labelled(SWEEP_LABEL)
        if container.labels[SWEEP_LABEL] in sweeps
        or (container.labels[SWEEP_LABEL] == "data" and container.state != "running")
    ]
    # Those that looked around for a provisioning that was killed; the lock says that none runs.
    looked = engine.labelled(inside.LABEL)
    containers = tuple(task.name for task in (*tasks, *looked))
    tags = () if needed is None else fleet.images[node.name].tagged(IMAGE_LABEL)
    return _Found(folders, containers, tuple(sorted(set(tags) - (needed or frozenset()))))


def _lines(transport: Transport, script: str, *arguments: str) -> list[str]:
    done = transport.run(("sh", "-c", script, "sh", *arguments), timeout_s=REMOVE_S)
    return done.stdout.decode(errors="replace").splitlines()


def _remove(fleet: Fleet, node: Node, found: _Found) -> None:
    for name in found.containers:
        fleet.containers[node.name].remove(name)
    for tag in found.images:
        fleet.images[node.name].remove(tag)
    if found.folders:
        done = fleet.transports[node.name].run(
            ("rm", "-rf", "--", *found.folders), timeout_s=REMOVE_S
        )
        if done.exit_code != 0:
            raise errors.LeftoverError(
                done.stderr.decode(errors="replace").strip(),
                code="LEFTOVER",
                node=node.name,
                fix=f"rm -rf {' '.join(found.folders)}",
            )


def _rows(found: Mapping[str, _Found]) -> list[tuple[str, str, str]]:
    return [
        (node, kind, name)
        for node, leftovers in found.items()
        for kind, names in (
            ("folder", leftovers.folders),
            ("container", leftovers.containers),
            ("image", leftovers.images),
        )
        for name in names
    ]


def _json(found: Mapping[str, _Found]) -> dict[str, dict[str, list[str]]]:
    return {
        node: {
            "folders": list(leftovers.folders),
            "containers": list(leftovers.containers),
            "images": list(leftovers.images),
        }
        for node, leftovers in found.items()
    }
