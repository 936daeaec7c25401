"""Files that an attempt's tasks need before they start: SSH keys and settings for mpirun."""

from collections.abc import Mapping

from orchestrator import errors
from orchestrator.launchers import mpirun
from orchestrator.launchers.mpirun import Keys
from orchestrator.model.attempt import Attempt
from orchestrator.model.text import Endpoint
from orchestrator.schedulers import Scheduler
from orchestrator.transports import keys


def bring(scheduler: Scheduler, attempt: Attempt) -> None:
    """Write fresh keys and settings into the folders of the attempt's tasks, where any needs them.

    Raises:
        UnfitError: FOLDERS; the nodes keep attempts in different folders.
        NodeError, LocalError: some files may be written; they are removed with the folders.
    """
    if any(task.files for task in attempt.tasks):
        _refuse_folders(attempt)
        scheduler.write(attempt, _files(attempt))


def _files(attempt: Attempt) -> dict[int, dict[str, bytes]]:
    leader, *others = attempt.tasks
    user = Keys(*keys.generate())
    hosts = {task.node_rank: Keys(*keys.generate()) for task in others}
    addresses = dict(enumerate(seat.address for seat in attempt.seats))
    keys_at = {addresses[rank]: pair for rank, pair in hosts.items()}
    files: dict[int, Mapping[str, str]] = {
        0: mpirun.leader_files(attempt.folder(leader), user, keys_at, attempt.port)
    }
    for task in others:
        rank, at = task.node_rank, Endpoint(addresses[task.node_rank], port=attempt.port)
        files[rank] = mpirun.service_files(attempt.folder(task), rank, user, hosts[rank], at)
    return {
        task.node_rank: {name: files[task.node_rank][name].encode() for name in task.files}
        for task in attempt.tasks
    }


def _refuse_folders(attempt: Attempt) -> None:
    folders = {attempt.folder(task) for task in attempt.tasks}
    if len(folders) > 1:
        raise errors.UnfitError(
            f"the nodes keep this attempt in {', '.join(sorted(folders))};"
            " mpirun's ranks have one working folder everywhere",
            code="FOLDERS",
            trial=attempt.trial,
            fix="give the nodes of the inventory the same `folder`",
        )
