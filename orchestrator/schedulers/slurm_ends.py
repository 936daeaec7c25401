"""Why Slurm ended what it ran, where its exit codes do not tell."""

import re
from collections.abc import Mapping

from orchestrator import errors
from orchestrator.schedulers import slurm_queue

_BY_STEPD = b"DUE TO PREEMPTION"
_OOM = re.compile(r"^srun: error: (\S+): tasks? \S+: Out Of Memory", re.MULTILINE)


def was_preempted(job: str, said: bytes) -> bool:
    """Return True if a step of a job was ended to make room for another job.

    Args:
        said: what its srun printed: the one place that tells of a job that was queued again.

    Raises:
        LocalError: Slurm cannot be asked.
    """
    if _BY_STEPD in said:
        return True
    try:
        return is_preempted(slurm_queue.shown(job, patience_s=0.0))
    except errors.UnfitError:
        return False  # no such job any more


def short_of_memory(said: bytes) -> frozenset[str]:
    """Return the nodes where Slurm's limit of memory ended a process of a step that is over.

    Args:
        said: what its srun printed, at its end: of tasks by node, however the tasks exited.
    """
    folded = _OOM.findall(said.decode(errors="replace"))
    return frozenset(name for part in folded for name in slurm_queue.names(part))


def is_preempted(job: Mapping[str, str]) -> bool:
    """Return True if a job, by its fields, must make room for another when its grace ends.

    Its steps are told at once, its script and its time limit are not.
    """
    return job.get("PreemptTime", "")[:1].isdigit()
