"""Why a container from an image file did not start, by what srun and the task's own start printed.

srun's exit status is then that of a program which failed; only these words tell the two apart.
"""

import re

from orchestrator import errors
from orchestrator.model.plan import Task
from orchestrator.runtimes.supervisor import TaskFiles

FIX = "see that containers start there: `srun --container-image=FILE true`, or `apptainer exec`"
# Source: pyxis 0.24.0 under Slurm 22.05; tests/samples/srun-pyxis. Where one slurmd serves a
# machine, slurmstepd does not name its node.
_LINE = re.compile(r"^slurmstepd(?:-(\S+))?: error: pyxis: (.*)$", re.MULTILINE)
_SAYS_NOTHING = re.compile(r"child \d+ |printing enroot log file|couldn't create enroot start")
_SEE_LOG = re.compile(r"failed to |container start failed|container exited")
_FATAL = re.compile(r"FATAL: +(.*)")  # apptainer 1.4.5, without colours
_EXITED = re.compile(r"^srun: error: ([^][\s]+): task \d+: Exited with exit code", re.MULTILINE)
_ENDED = "received SIG"  # a node whose container was being made when another's failed


def find_failed_start(said: str) -> tuple[str, str] | None:
    """Return node and cause of the first container that did not start, if pyxis names one.

    Args:
        said: standard error of srun. The node is empty where it names none.
    """
    lines = [(node, text) for node, text in _LINE.findall(said) if text.strip()]
    ended = {node for node, text in lines if text.startswith(_ENDED)}
    node = next((name for name, _ in lines if name not in ended), None)
    if node is None:
        return None
    words = [text for name, text in lines if name == node]
    log = [text.strip() for text in words if text[0] == " " and "[INFO]" not in text]
    told = [text for text in words if text[0] != " " and not _SAYS_NOTHING.match(text)]
    cause = told[0] if told else words[0]
    if log and _SEE_LOG.match(cause):
        cause = log[0]
    return node, cause.removeprefix("[ERROR] ")


def blame(said: str) -> tuple[str, str]:
    """Return the node and the cause that srun's error output names for a failed container.

    Args:
        said: standard error of srun. The node is empty where it names none, or several.
    """
    nodes = _EXITED.findall(said)
    node = nodes[0] if len(nodes) == 1 else ""
    return find_failed_start(said) or (node, first_error(said))


def first_error(said: str) -> str:
    """Return the first error in standard error; its first line if no line is marked as one."""
    if fatal := _FATAL.search(said):
        return fatal[1]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors_told = (line for line in lines if "error:" in line or "unrecognized" in line)
    return next(errors_told, lines[0] if lines else "no reason given")


def refusal(files: TaskFiles, said: str, task: Task) -> errors.UnfitError | None:
    """Return why an ended step never started a task's container; None if it did.

    Args:
        said: standard error of the step's srun.
    """
    if files.supervisor() is not None:
        return None
    found = find_failed_start(said)
    told = files.text("err") if files.has("gone") else ""  # nothing: killed, for another's failure
    if found is None and not told:
        return None
    node, cause = found or ("", first_error(told))
    return errors.UnfitError(
        f"no container started: {cause}",
        code="CONTAINER-START",
        node=node or task.node,
        fix=FIX,
    )
