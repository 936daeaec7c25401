"""A task in a container of Docker's within a step of Slurm's: the docker command in its foreground.

The engine starts containers outside of the step, so what ends the step does not end them: a signal
is passed on by the docker command, and where that is killed, the container ends itself.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator import errors
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Task
from orchestrator.runtimes import _causes, docker_run, observer
from orchestrator.runtimes._files import TaskFiles

REFUSED = ("125", "126", "127")  # exit statuses of the docker command without a container
# In the container, before the supervisor takes its place: standard input is the docker command's,
# and ends with it. Then the supervisor is asked to end.
TIED = 'exec 3<&0 </dev/null; (cat <&3 >/dev/null; kill -TERM $$) & exec 3<&-; exec "$@"'
# Before the observer of a container's first process starts. $1: the supervisor's pid file; $2: a
# container; $3...: the docker command.
AWAITED = """
pid_file=$1 name=$2 tries=0
shift 2
until [ -s "$pid_file" ]; do [ $((tries += 1)) -lt 600 ] && sleep 0.1 || exit 0; done
pid=$("$@" inspect --format '{{.State.Pid}}' "$name") || exit 0
"""


def script(
    attempt: Attempt,
    task: Task,
    limits: Limits,
    docker: Sequence[str],
    request: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> str:
    """Return the script that becomes the docker command of a task, on its node.

    Args:
        docker: how the docker command is called there.
        request: what ``DockerRuntime.request`` says of the container.
    """
    base, name = f"{attempt.folder(task)}/r{task.node_rank}", attempt.token(task)
    host, config = request
    tied = {**config, "Entrypoint": ("sh", "-c", TIED, "sh", *config["Entrypoint"])}
    # Standard input is the docker command's, and ends with it: also when that is killed.
    words = (*docker, *docker_run.words(host, tied, "--interactive", f"--name={name}"))
    awaited = f"set -- {shlex.join((f'{base}.pid', name, *docker))}\n{AWAITED}"
    observing = f"{awaited}{observer.command(attempt, task, limits, '$pid')}"
    return (
        f"umask 077\n(\n{observing}) >/dev/null 2>&1 &\n"
        # A standard input that never ends by itself.
        f"mkfifo {shlex.quote(f'{base}.in')} && exec <>{shlex.quote(f'{base}.in')}\n"
        f"rm -f {shlex.quote(f'{base}.in')}\n"
        f"exec {shlex.join(words)}\n"
    )


def refusal(files: TaskFiles, task: Task) -> errors.DlperfError | None:
    """Return why the engine made no container, from the docker command's files; None if it did."""
    if files.supervisor() is not None or files.text("gone") not in REFUSED:
        return None
    return _causes.refusal(files.text("err"), task.node, "DOCKER-REFUSED")
