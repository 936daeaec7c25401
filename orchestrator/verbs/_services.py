"""What an attempt's tasks need in their folders before they start: keys and settings of its own."""

from collections.abc import Mapping

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S
from orchestrator.fleet import ask_all, settled
from orchestrator.launchers import mpirun
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Task
from orchestrator.transports import Transport, keys

PRIVATE = frozenset({"id", "host_key"})


def bring(cluster: Cluster, transports: Mapping[str, Transport], attempt: Attempt) -> None:
    """Put new keys and settings of the attempt's services into the folders of its tasks.

    Raises:
        UnfitError: the nodes keep attempts in different folders.
        NodeError, LocalError: some may be there; they go with the folders.
    """
    if not any(task.files for task in attempt.tasks):
        return
    _one_folder(attempt)
    files = _files(cluster, attempt)

    def put(node: str) -> bool:
        for path, content in files[node].items():
            transports[node].put(content.encode(), path)
        return True

    settled(ask_all([task.node for task in attempt.tasks], put))


def forget(transports: Mapping[str, Transport], attempt: Attempt) -> None:
    """Remove the attempt's keys; where a node does not answer they open nothing any more."""
    files = {
        task.node: [f"{attempt.folder(task)}/{name}" for name in PRIVATE & {*task.files}]
        for task in attempt.tasks
        if task.files
    }

    def remove(node: str) -> None:
        transports[node].run(("rm", "-f", "--", *files[node]), timeout_s=COMMAND_S)

    ask_all(list(files), remove)


def _files(cluster: Cluster, attempt: Attempt) -> dict[str, dict[str, str]]:
    """By node, what each file holds, by path there."""
    leader, *others = attempt.tasks
    addresses = {node.name: node.address for node in cluster.members}
    user = mpirun.Keys(*keys.generate())
    hosts = {task.node: mpirun.Keys(*keys.generate()) for task in others}
    known = {addresses[node]: pair for node, pair in hosts.items()}
    folder = attempt.folder(leader)
    found = {
        leader.node: _at(attempt, leader, mpirun.leader_files(folder, user, known, attempt.port))
    }
    for task in others:
        at = (addresses[task.node], attempt.port)
        said = mpirun.service_files(attempt.folder(task), user, hosts[task.node], at)
        found[task.node] = _at(attempt, task, said)
    return found


def _at(attempt: Attempt, task: Task, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{attempt.folder(task)}/{name}": files[name] for name in task.files}


def _one_folder(attempt: Attempt) -> None:
    folders = {attempt.folder(task) for task in attempt.tasks}
    if len(folders) > 1:
        raise errors.UnfitError(
            f"the nodes keep this attempt in {', '.join(sorted(folders))};"
            " mpirun's ranks have one working folder everywhere",
            code="FOLDERS",
            trial=attempt.trial,
            fix="give the nodes of the inventory the same `folder`",
        )
