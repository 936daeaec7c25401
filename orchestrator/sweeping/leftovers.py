"""What finished sweeps left on nodes: `clean` removes it, and nothing that others put there."""

from dataclasses import dataclass

from orchestrator import errors
from orchestrator.deadlines import REMOVE_S
from orchestrator.fleet import Fleet
from orchestrator.inputs import sites
from orchestrator.model.node import Node
from orchestrator.probes import sections
from orchestrator.provisioning import in_containers
from orchestrator.state.store import Store
from orchestrator.transports import Transport

SWEEP_LABEL, IMAGE_LABEL = "dlperf.sweep", "dlperf.image"

# Prints the sweeps named that left a folder, and the preparations of data sets that left one and
# run no more.
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
class Leftovers:
    """Folders, and names of containers and images, that lie on a node and are no longer needed."""

    folders: tuple[str, ...]
    containers: tuple[str, ...]
    images: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.folders or self.containers or self.images)


def needed_images(store: Store) -> frozenset[str]:
    """The images of every cluster that was provisioned from here.

    Raises:
        StoreError: a site file cannot be read, so its images are unknown.
    """
    clusters = [sites.read(content, "provision that cluster again") for content in store.sites()]
    records = [record for site in clusters for record in site.images.values()]
    return frozenset(
        name for record in records for name in (record.tag, record.id, *record.ids.values())
    )


def look(
    fleet: Fleet, node: Node, sweeps: tuple[str, ...], needed: frozenset[str] | None
) -> Leftovers:
    """What a node has of these sweeps, and of provisionings and preparations that were killed.

    Args:
        needed: images to keep; None to keep all.
    """
    transport = fleet.transports[node.name]
    folders = tuple(_lines(transport, sections.STALE))
    if not node.shares_files:
        left = _lines(transport, FOLDERS, node.folder, *sweeps)
        folders += tuple(f"{node.folder}/{folder}" for folder in left)
    if node.name not in fleet.engines:
        return Leftovers(folders, (), ())
    engine = fleet.containers[node.name]
    tasks = [
        container
        for container in engine.labelled(SWEEP_LABEL)
        if container.labels[SWEEP_LABEL] in sweeps
    ]
    # Of a provisioning that was killed; the lock says that none runs.
    probes = engine.labelled(in_containers.LABEL)
    containers = tuple(task.name for task in (*tasks, *probes))
    tags = () if needed is None else fleet.images[node.name].tagged(IMAGE_LABEL)
    return Leftovers(folders, containers, tuple(sorted(set(tags) - (needed or frozenset()))))


def _lines(transport: Transport, script: str, *arguments: str) -> list[str]:
    done = transport.run(("sh", "-c", script, "sh", *arguments), timeout_s=REMOVE_S)
    return done.stdout.decode(errors="replace").splitlines()


def remove(fleet: Fleet, node: Node, leftovers: Leftovers) -> None:
    """Remove it all.

    Raises:
        LeftoverError: of the folders, something stays.
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
                fix=f"rm -rf {' '.join(leftovers.folders)}",
            )
