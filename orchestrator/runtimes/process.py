"""Tasks as plain processes, each under a supervisor in POSIX sh that outlives the controller."""

import os
from functools import cache
from importlib import resources

from orchestrator import errors
from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.plan import Task
from orchestrator.runtimes import TaskState
from orchestrator.transports import Transport

# Everything else of the caller's environment could change the number and is not passed on.
INHERITED = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "USER")
START_TIMEOUT_S = 30.0
END_TIMEOUT_S = 30.0

# Processes of a task, its supervisor's among them, are known by a word in their environment:
# torchrun's workers leave every process group, and process ids are used again.
KILL = """
for _ in 1 2 3 4 5 6 7 8 9 10; do
    left=$(grep -lzxF -e "DLPERF_TASK=$1" -e "DLPERF_SUPERVISOR=$1" /proc/[0-9]*/environ \
        2>/dev/null | sed 's,/proc/\\([0-9]*\\)/environ,\\1,')
    [ -n "$left" ] || exit 0
    for pid in $left; do kill -KILL "$pid" 2>/dev/null; done
    sleep 0.1
done
echo $left
exit 1
"""


@cache
def _supervisor() -> str:
    return resources.files("orchestrator.runtimes").joinpath("supervise.sh").read_text()


def inherited_environment() -> dict[str, str]:
    """What tasks take over from the environment of this program."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


class ProcessRuntime:
    """Processes on one node."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Start the task's supervisor, which waits at the gate.

        Raises:
            NodeError, LocalError: the task may or may not have been started.
        """
        token = attempt.token(task)
        script = f"{attempt.folder}/supervise.sh"
        self._transport.put(_supervisor().encode(), script)
        env = {**inherited_environment(), **task.env, "DLPERF_SUPERVISOR": token}
        detached = 'exec setsid -f "$@" </dev/null >/dev/null 2>"$0"'
        words = (
            *("sh", "-c", detached, self._path(attempt, task, "err")),
            *("env", "-i", *(f"{name}={value}" for name, value in env.items())),
            *("sh", script, attempt.folder, str(task.node_rank), token),
            *(f"{limits.time_s:g}", f"{limits.grace_s:g}"),
            *task.argv,
        )
        done = self._transport.run(words, timeout_s=START_TIMEOUT_S)
        if done.exit_code != 0:
            raise errors.NodeError(
                f"the supervisor did not start: {done.stderr.decode(errors='replace').strip()}",
                code="START",
                node=task.node,
                trial=attempt.trial,
            )

    def start(self, attempt: Attempt, task: Task) -> bool:
        """Open the task's gate; False if nothing waits there."""
        return self._transport.feed(self._path(attempt, task, "gate"), b"go\n")

    def inspect(self, attempt: Attempt, task: Task) -> TaskState:
        """What the files of the task and the process table say now."""
        if self._file(attempt, task, "end"):
            return TaskState("ended", self._end(attempt, task))
        pid = self._file(attempt, task, "pid")
        if not pid:
            return TaskState("absent")
        if not self._alive(pid):
            # It may have ended between the two looks.
            if self._file(attempt, task, "end"):
                return TaskState("ended", self._end(attempt, task))
            return TaskState("lost", self._lost(attempt, task))
        return TaskState("running" if self._file(attempt, task, "go") else "waiting")

    def output(self, attempt: Attempt, task: Task, offset: int) -> bytes:
        """The task's raw log from ``offset`` on, at most 4 MiB."""
        return self._transport.get(self._path(attempt, task, "log"), offset) or b""

    def stop(self, attempt: Attempt, task: Task) -> None:
        """Ask the supervisor, if it is still the one that we started, to end the program."""
        pid = self._file(attempt, task, "pid")
        if pid and self._alive(pid):
            self._transport.run(("kill", "-TERM", pid[0]), timeout_s=END_TIMEOUT_S)

    def remove(self, attempt: Attempt, task: Task) -> None:
        """Kill every process that carries the task's token.

        Raises:
            LeftoverError: some would not go.
        """
        token = attempt.token(task)
        done = self._transport.run(("sh", "-c", KILL, "sh", token), timeout_s=END_TIMEOUT_S)
        if done.exit_code != 0:
            pids = done.stdout.decode(errors="replace").strip()
            raise errors.LeftoverError(
                f"processes {pids} of {token} do not end",
                code="LEFTOVER",
                node=task.node,
                trial=attempt.trial,
                fix=f"kill -KILL {pids}",
            )

    def _path(self, attempt: Attempt, task: Task, name: str) -> str:
        return f"{attempt.folder}/r{task.node_rank}.{name}"

    def _file(self, attempt: Attempt, task: Task, name: str) -> list[str]:
        content = self._transport.get(self._path(attempt, task, name))
        return (content or b"").decode(errors="replace").split()

    def _alive(self, pid: list[str]) -> bool:
        """Whether that very process still is: pids are used again, and reboots start anew."""
        number, started, boot = pid
        stat = self._transport.get(f"/proc/{number}/stat") or b""
        fields = stat.rpartition(b") ")[2].split()
        if len(fields) < 20 or fields[0] in (b"Z", b"X") or fields[19].decode() != started:
            return False
        boot_id = self._transport.get("/proc/sys/kernel/random/boot_id") or b""
        return boot_id.decode().strip() == boot

    def _end(self, attempt: Attempt, task: Task) -> TaskEnd:
        status, why = self._file(attempt, task, "exit")
        size, sha256 = self._file(attempt, task, "end")
        return TaskEnd(
            task.node,
            task.node_rank,
            int(status),
            why,
            int(size),
            sha256,
            self._went(attempt, task),
        )

    def _lost(self, attempt: Attempt, task: Task) -> TaskEnd:
        return TaskEnd(task.node, task.node_rank, None, "lost", 0, "", self._went(attempt, task))

    def _went(self, attempt: Attempt, task: Task) -> float | None:
        went = self._file(attempt, task, "go")
        return float(went[0]) if went else None
