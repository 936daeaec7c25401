"""Tasks as plain processes, each under a supervisor in POSIX sh that outlives the controller."""

import os

from orchestrator import errors
from orchestrator.deadlines import SUPERVISOR_S
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Task
from orchestrator.runtimes import TaskState, marks, supervisor
from orchestrator.runtimes.grants import pairs
from orchestrator.runtimes.supervisor import OBSERVE, SUPERVISE, TaskFiles
from orchestrator.transports import Transport

# Everything else of the caller's environment could change the number and is not passed on.
INHERITED = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "USER")
# $1: a file for standard error; then variables and a command. Before them come the variables of
# the login user that tasks inherit: ${HOME+"HOME=$HOME"} is no word where HOME is not set.
DETACHED = f"""
umask 077
err=$1
shift
set -- {" ".join(f'${{{name}+"{name}=${name}"}}' for name in INHERITED)} "$@"
exec setsid -f env -i "$@" </dev/null >/dev/null 2>"$err"
"""


def inherited_environment() -> dict[str, str]:
    """Return the variables of ``INHERITED`` that are set in this program."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


class ProcessRuntime:
    """Runs tasks through a node's transport.

    Args:
        owner: the record of who starts them, for others who find them there.
    """

    def __init__(self, transport: Transport, owner: str = "") -> None:
        self._transport, self._owner = transport, owner

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Start the task's supervisor, which waits at the gate; after an error it may run."""
        supervisor.put_programs(self._transport, attempt.folder(task), SUPERVISE, OBSERVE)
        known = marks.of_controller(self._owner, limits) if self._owner else {}
        env = {**task.env, "DLPERF_SUPERVISOR": attempt.token(task), **known}
        words = (
            *("sh", "-c", DETACHED, "sh", self._files(attempt, task).path("err")),
            *pairs(env),
            *supervisor.supervised(attempt, task, limits, task.argv),
        )
        done = self._transport.run(words, timeout_s=SUPERVISOR_S)
        if done.exit_code != 0:
            raise errors.NodeError(
                f"the supervisor did not start: {done.stderr.decode(errors='replace').strip()}",
                code="START",
                node=task.node,
                trial=attempt.trial,
            )

    def start(self, attempt: Attempt, task: Task) -> bool:
        return self._files(attempt, task).open_gate()

    def inspect(self, attempt: Attempt, task: Task) -> TaskState:
        files = self._files(attempt, task)
        if end := files.end():
            return TaskState("ended", end)
        identity = files.supervisor()
        if identity is None:
            return TaskState("absent")
        if files.alive(identity, str(identity.pid)):
            return TaskState("running" if files.has("go") else "waiting")
        if end := files.end():  # it may have ended between the two looks
            return TaskState("ended", end)
        why = "rebooted" if files.rebooted(identity) else "lost"
        return TaskState("lost", files.make_end(why))

    def output(self, attempt: Attempt, task: Task, offset: int) -> bytes:
        return self._files(attempt, task).output(offset)

    def stop(self, attempt: Attempt, task: Task) -> None:
        files = self._files(attempt, task)
        identity = files.supervisor()
        if identity and files.alive(identity, str(identity.pid)):
            self._transport.run(("kill", "-TERM", str(identity.pid)), timeout_s=SUPERVISOR_S)

    def remove(self, attempt: Attempt, task: Task) -> None:
        marks.kill(self._transport, attempt.token(task), node=task.node, trial=attempt.trial)

    def _files(self, attempt: Attempt, task: Task) -> TaskFiles:
        return TaskFiles(self._transport, attempt, task)
