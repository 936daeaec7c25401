"""What sweeps with open attempts have on nodes: `clean` must not remove it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import errors, nodeset
from orchestrator.deadlines import COMMAND_S
from orchestrator.fleet import Fleet
from orchestrator.model.cluster import Cluster
from orchestrator.model.node import Node
from orchestrator.schedulers import strays
from orchestrator.state.store import Store
from orchestrator.sweeping.observed_sweep import Running

# $1: the node's folder; then sweeps. Prints those that have a folder in it.
FOLDERS = (
    'cd -- "$1" 2>/dev/null || exit 0; shift; for id; do [ -d "$id" ] && echo "$id"; done; true'
)


@dataclass(frozen=True, slots=True)
class Left:
    """What a node has of such sweeps: names of tasks, running or ended, and paths of folders."""

    tasks: tuple[str, ...]
    folders: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.tasks or self.folders)


def split(store: Store, cluster: Cluster) -> tuple[tuple[str, ...], dict[str, tuple[str, str]]]:
    """Sweeps of a cluster whose attempts have all ended, and those that have not and do not run.

    A sweep whose record cannot be read may be of this cluster, and counts as such.

    Returns:
        Ids of the settled sweeps; by id of the others, the cause and what to do.
    """
    settled: list[str] = []
    why = {sweep_id: _mend(error) for sweep_id, error in store.unreadable().items()}
    for sweep in store.sweeps():
        if sweep.record().cluster != cluster.name:
            continue
        try:
            attempts = Running.from_sweep(sweep).open_attempts()
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


def look(fleet: Fleet, node: Node, sweep_ids: Sequence[str]) -> Left:
    """Tasks and folders of these sweeps on a node.

    Raises:
        NodeError: it does not answer.
    """
    tasks = {*strays.running(fleet, node.name, sweep_ids)}
    if node.name in fleet.engines:
        labelled = fleet.containers[node.name].labelled(strays.LABEL)
        tasks |= {
            container.name for container in labelled if container.labels[strays.LABEL] in sweep_ids
        }
    if node.shares_files or not sweep_ids:
        return Left(tuple(sorted(tasks)), ())
    words = ("sh", "-c", FOLDERS, "sh", node.folder, *sweep_ids)
    done = fleet.transports[node.name].run(words, timeout_s=COMMAND_S)
    names = done.stdout.decode(errors="replace").splitlines()
    return Left(tuple(sorted(tasks)), tuple(f"{node.folder}/{name}" for name in names))


def failures(
    why: Mapping[str, tuple[str, str]], left: Mapping[str, Left]
) -> list[errors.LeftoverError]:
    """An error for every sweep that has something on nodes; its cause names all of it.

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
