"""Tasks as containers, each with the supervisor as its first process."""

import contextlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from orchestrator import errors
from orchestrator.deadlines import ENGINE_LOOK_S
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.plan import Mount, Task
from orchestrator.model.process import ProcessIdentity
from orchestrator.retries import CONTAINER_MAKES
from orchestrator.runtimes import TaskState, marks, observer
from orchestrator.runtimes._files import TaskFiles, script, supervised
from orchestrator.runtimes.containers import Containers, ContainerState
from orchestrator.runtimes.engine import Engine
from orchestrator.runtimes.grants import ContainerSettings, of_node, pairs
from orchestrator.runtimes.images import Images
from orchestrator.transports import Completed, Transport
from orchestrator.transports.cached import Cached

T = TypeVar("T")
LABEL = "dlperf."
KILLED = 137
SILENT = ("DOCKER-DOWN", "DOCKER-HUNG")
LOOK_S = 0.2
STARTS_S = 0.5  # after its start a supervisor may not be there yet; no engine is asked meanwhile
OBSERVED_AFTER_S = 0.2  # of running: what ends sooner has no state that is worth a look
FRESH_S = 1.0  # a supervisor that was alive counts as alive so long, unless its end file is there


@dataclass(slots=True)
class _Seen:
    """Keep what looks at a task have shown so far; times are of the monotonic clock.

    Args:
        made_at: when its container was started; 0 where another controller did it.
        container: its id; empty where another controller made it.
        pid: of its supervisor on the node; empty until the engine was asked.
        went_at: when it was first seen running.
        fresh_until: so long it counts as alive; 0 until it was seen so, or taken for it.
        heard_at: when the engine last answered about it while it ran.
        unobserved: of a task created here whose observer has not been started yet.
    """

    made_at: float = 0.0
    container: str = ""
    pid: str = ""
    went_at: float | None = None
    fresh_until: float = 0.0
    heard_at: float = 0.0
    unobserved: Limits | None = None


class DockerRuntime:
    def __init__(self, transport: Transport, engine: Engine, settings: ContainerSettings) -> None:
        self._transport = transport
        self._node = transport.node
        self._settings = settings
        self._grants = of_node(transport, engine, settings)
        self._engine = engine
        self._containers = Containers(engine)
        self._images = Images(engine)
        self._entrypoints: dict[str, Cached[tuple[str, ...]]] = {}
        self._seen: dict[str, _Seen] = {}  # by token

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Create the task's container and start it; its supervisor waits at the gate.

        Raises:
            UnfitError: why it cannot run here; it was removed.
            NodeError, LocalError: it may or may not have been started.
        """
        self._engine.check()  # a hung one would only start it once it goes on
        self._transport.put(script(), f"{attempt.folder(task)}/supervise.sh")
        host, config = self.request(attempt, task, limits)
        container = self._make(attempt, task, host, config)
        try:
            self._containers.start(attempt.token(task))
        except errors.UnfitError:
            self._containers.remove(attempt.token(task))
            raise
        self._seen[attempt.token(task)] = _Seen(time.monotonic(), container, unobserved=limits)

    def request(
        self, attempt: Attempt, task: Task, limits: Limits
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the ``HostConfig`` of a task's container, and the rest of the request to Docker.

        Raises:
            UnfitError, ImageError: the node lacks what the settings ask for, or the image.
            NodeError: it does not answer.
        """
        image = attempt.images.get(self._node) or attempt.image or self._settings.image
        ask = Cached(partial(self._ask_entrypoint, image))
        argv = (*self._entrypoints.setdefault(image, ask).get(), *task.argv)
        errors_file = self._files(attempt, task).path("err")
        started = {
            "Entrypoint": [
                *("sh", "-c", 'umask 077; exec "$@" 2>"$0"', errors_file),
                *supervised(attempt, task, limits, argv),
            ],
            "Cmd": [],
            "Labels": {
                **_labels(attempt, task),
                **({f"{LABEL}owner": self._settings.owner} if self._settings.owner else {}),
                f"{LABEL}deadline": marks.deadline(limits),
            },
        }
        host, config = self._grants.request(attempt, task, image, started)
        # By which the task is ended without the engine.
        config["Env"].append(f"DLPERF_SUPERVISOR={attempt.token(task)}")
        return host, config

    def start(self, attempt: Attempt, task: Task) -> bool:
        heard = self._files(attempt, task).open_gate()
        if heard:
            seen = self._seen.setdefault(attempt.token(task), _Seen())
            seen.fresh_until = time.monotonic() + FRESH_S
        return heard

    def inspect(self, attempt: Attempt, task: Task) -> TaskState:
        """Return the state by the task's files and the process table.

        A container may run on without its engine, which could not end it then. So the engine is
        checked from time to time while the container runs.

        Raises:
            NodeError: the engine does not answer.
        """
        files = self._files(attempt, task)
        seen = self._seen.setdefault(attempt.token(task), _Seen())
        if time.monotonic() < seen.fresh_until and not files.has("end"):
            return self._lives(attempt, task, seen)
        supervisor = files.supervisor()
        if supervisor is None and seen.made_at and time.monotonic() < seen.made_at + STARTS_S:
            return TaskState("absent")
        came = seen.made_at and not seen.fresh_until  # since the last look, so it is alive
        if supervisor and (came or (seen.pid and files.alive(supervisor, seen.pid))):
            if seen.pid and time.monotonic() > seen.heard_at + ENGINE_LOOK_S:
                self._ask(partial(self._engine.check, seen.container or attempt.token(task)))
                seen.heard_at = time.monotonic()
            seen.fresh_until = time.monotonic() + FRESH_S
            return self._lives(attempt, task, seen)  # also where looks are further apart
        # It is not known to be alive, so the engine is asked.
        container = self._ask(lambda: self._containers.find(attempt.token(task)))
        if container is None or container.finished:
            return self._ask(lambda: self._judge_end(files, supervisor, container))
        if supervisor is None:
            return TaskState("absent")
        seen.pid = str(container.pid)
        return self._lives(attempt, task, seen)

    def output(self, attempt: Attempt, task: Task, offset: int) -> bytes:
        return self._files(attempt, task).output(offset)

    def stop(self, attempt: Attempt, task: Task) -> None:
        self._containers.signal(attempt.token(task), "SIGTERM")

    def remove(self, attempt: Attempt, task: Task) -> None:
        """End and remove the task's container and its observer, and see that it is gone.

        Where the engine is silent its processes are killed without it. The container, in which
        nothing runs then, stays until the next ``remove``.

        Raises:
            LeftoverError: UNKILLABLE; or LEFTOVER, processes live on.
        """
        seen = self._seen.pop(attempt.token(task), _Seen())
        token = attempt.token(task)
        if not self._remove(attempt, task, seen.container):
            marks.kill(self._transport, token, node=task.node, trial=attempt.trial)
        elif seen.unobserved is None:
            with contextlib.suppress(errors.DlperfError):  # an observer disturbs nobody
                marks.kill(self._transport, token)

    def _lives(self, attempt: Attempt, task: Task, seen: _Seen) -> TaskState:
        """Return the state of a task that is alive; start its observer once it is worth that.

        Tasks that another controller created have their observers already.

        Raises:
            NodeError: the engine, which knows the supervisor's pid, does not answer.
        """
        if seen.went_at is None and not self._files(attempt, task).has("go"):
            return TaskState("waiting")
        seen.went_at = seen.went_at or time.monotonic()
        if seen.unobserved is None or time.monotonic() < seen.went_at + OBSERVED_AFTER_S:
            return TaskState("running")
        name = attempt.token(task)
        container = None if seen.pid else self._ask(lambda: self._containers.find(name))
        if container is not None and not container.finished:
            seen.pid = str(container.pid)
        if seen.pid:
            limits, seen.unobserved = seen.unobserved, None
            observer.start(self._transport, observer.command(attempt, task, limits, seen.pid))
        return TaskState("running")

    def _ask(self, question: Callable[[], T]) -> T:
        """Return the engine's answer; turn its refusals into errors of the node."""
        try:
            return question()
        except errors.UnfitError as error:
            raise errors.NodeError(error.cause, code=error.code, node=self._node) from error

    def _remove(self, attempt: Attempt, task: Task, made: str) -> bool:
        """Remove what was made here by its id, else what has the task's name if it is ours.

        Returns:
            False if the engine is silent.
        """
        name = attempt.token(task)
        began = time.monotonic()
        reason = "its removal does not finish"
        while time.monotonic() - began < self._engine.patience.end_s:
            try:
                self._engine.check()
            except errors.UnfitError as error:
                if error.code in SILENT:
                    return False
            try:
                if not made and not self._is_ours(self._containers.find(name), attempt, task):
                    return True
                if self._containers.remove(made or name):
                    return True
                made = ""
            except errors.UnfitError as error:
                # The engine does not even answer about a container that it cannot kill.
                if error.code not in (*SILENT, "DOCKER-REFUSED"):
                    raise
                reason = error.cause
                time.sleep(LOOK_S)
        raise errors.LeftoverError(
            f"container {name} does not end: {reason}",
            code="UNKILLABLE",
            node=task.node,
            fix=f"docker rm --force {name}",
        )

    def run_once(
        self,
        argv: tuple[str, ...],
        *,
        gpus: bool,
        timeout_s: float,
        mounts: tuple[Mount, ...] = (),
    ) -> Completed:
        """Run a command in a container with the settings of tasks, and remove the container.

        Raises:
            UnfitError: why it could not be started.
            CommandTimedOut: it was killed.
        """
        name = f"dlp-probe-{secrets.token_hex(6)}"
        config = {
            "Image": self._settings.image,
            "User": self._grants.user(),
            "Env": pairs(self._grants.environment("/", gpus=gpus)),
            # By a shell, so that a missing command has exit code 127 here too.
            "Entrypoint": ["sh", "-c", 'exec "$@"', "sh", *argv],
            "Labels": {f"{LABEL}probe": self._node},
        }
        host = self._grants.host_config(mounts, gpus=gpus)
        try:
            self._containers.create(name, host, config)
            self._containers.start(name)
            deadline = time.monotonic() + timeout_s
            while time.monotonic() < deadline:
                state = self._containers.find(name)
                if state is None:
                    raise self._containers.explain_removal(name)
                if state.finished:
                    return Completed(state.exit_code, *self._containers.output(name))
                time.sleep(LOOK_S)
            raise errors.CommandTimedOut(
                f"{argv[0]} in a container gave no answer in {timeout_s:g} s",
                code="TIMEOUT",
                node=self._node,
            )
        finally:
            self._containers.remove(name)

    def _make(
        self, attempt: Attempt, task: Task, host: Mapping[str, Any], config: Mapping[str, Any]
    ) -> str:
        """Create the container, unless a call whose answer was lost has done it; return its id."""
        name = attempt.token(task)
        for _ in range(CONTAINER_MAKES):
            with contextlib.suppress(errors.NodeError):
                if made := self._containers.create(name, host, config):
                    return made
            there = self._containers.find(name)
            if there is not None and self._is_ours(there, attempt, task):
                return there.id
            if there is not None and f"{LABEL}sweep" not in there.labels:
                raise errors.UnfitError(
                    f"a container {name} exists that this program did not create",
                    code="NAME-TAKEN",
                    node=task.node,
                    fix=f"find out whose it is and rename it (docker rename {name} ...)",
                )
            if there is not None:
                self._containers.remove(name)
        raise errors.NodeError(
            f"container {name} could not be created", code="START", node=self._node
        )

    def _ask_entrypoint(self, image: str) -> tuple[str, ...]:
        facts = self._images.find(image)
        if facts is None:
            raise errors.ImageError(
                f"there is no image {image}",
                code="IMAGE-MISSING",
                node=self._node,
                fix="run `dlperf-orch provision` again",
            )
        return facts.entrypoint

    def _judge_end(
        self, files: TaskFiles, supervisor: ProcessIdentity | None, container: ContainerState | None
    ) -> TaskState:
        """Return the state of a task whose container has ended or does not exist."""
        end = files.end()
        if end is None and supervisor is None and container is None:
            return TaskState("absent")
        if end is None:
            why = self._find_reason(files, supervisor, container)
            status = container.exit_code if container and why != "lost" else None
            return TaskState("lost", files.make_lost_end(why, status))
        if container is None:
            return TaskState("ended", end)
        # The kernel ended a rank for want of memory, while the program went on and exits with 0.
        if container.oom_killed:
            return TaskState("ended", replace(end, why="oom"))
        # An engine that goes down or starts anew asks what it finds running to end.
        if end.why == "stopped" and self._containers.restarted_since(container):
            return TaskState("ended", replace(end, why="docker-restarted"))
        return TaskState("ended", end)

    def _find_reason(
        self, files: TaskFiles, supervisor: ProcessIdentity | None, container: ContainerState | None
    ) -> str:
        if supervisor is not None and files.rebooted(supervisor):
            return "rebooted"
        if container is None:
            return "lost"
        if container.oom_killed:
            return "oom"
        if container.exit_code != KILLED:
            return "lost"
        return "docker-restarted" if self._containers.restarted_since(container) else "killed"

    def _is_ours(self, container: ContainerState | None, attempt: Attempt, task: Task) -> bool:
        ours = _labels(attempt, task).items()
        return container is not None and ours <= container.labels.items()

    def _files(self, attempt: Attempt, task: Task) -> TaskFiles:
        return TaskFiles(self._transport, attempt, task)


def _labels(attempt: Attempt, task: Task) -> dict[str, str]:
    labels = {
        "sweep": attempt.sweep,
        "trial": attempt.trial,
        "attempt": str(attempt.number),
        "node_rank": str(task.node_rank),
        **({"job": attempt.handle} if attempt.handle else {}),
    }
    return {f"{LABEL}{name}": value for name, value in labels.items()}
