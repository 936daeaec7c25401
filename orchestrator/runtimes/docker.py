"""Tasks as containers, each with the supervisor as its first process."""

import contextlib
import math
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import docker.utils

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S, ENGINE_LOOK_S, SUPERVISOR_S
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.node import Container
from orchestrator.model.plan import Mount, Task
from orchestrator.model.process import ProcessIdentity
from orchestrator.retries import CONTAINER_MAKES
from orchestrator.runtimes import TaskState, _causes, grants, marks, supervisor
from orchestrator.runtimes.containers import Containers, ContainerState
from orchestrator.runtimes.engine import Engine
from orchestrator.runtimes.images import Images
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.transports import Completed, Transport
from orchestrator.transports.cached import Cached

T = TypeVar("T")
LABEL = "dlperf."
KILLED = 137
SILENT = ("DOCKER-DOWN", "DOCKER-HUNG")
LOOK_S = 0.2
OBSERVED_AFTER_S = 0.2  # after its gate was opened; a shorter task has nothing to observe
FRESH_S = 1.0  # for so long after a full look, only the task's end is looked for

DEVICE_REQUESTS_API = "1.40"
USER = "id -u; id -g"
HCA_DEVICES = f'for path in {grants.HCA_FOLDER}/*; do [ -c "$path" ] && echo "$path"; done; true'
GPU_HOOK = "command -v nvidia-container-runtime-hook"
CDI_SPECS = "grep -ls nvidia.com/gpu /etc/cdi/* /var/run/cdi/*"


@dataclass
class _Seen:
    """The facts about a task's container that this controller has noted."""

    container: str = ""  # its id, if it was created here
    pid: str = ""  # of its supervisor, on the node
    heard_at: float = 0.0  # when the engine last answered about it
    fresh_until: float = 0.0  # until when it counts as alive; 0 before its gate is opened
    observer: str = ""  # the script that starts its observer, until that has been done
    observed_from: float = math.inf  # when to start the observer, if the task still runs
    has_begun: bool = False  # whether its program has started

    def judge(self, files: TaskFiles) -> TaskState:
        """Return whether a living task waits at its gate or runs."""
        self.has_begun = self.has_begun or files.has("go")
        return TaskState("running" if self.has_begun else "waiting")


class DockerRuntime:
    """Runs tasks in containers of a node's engine.

    Args:
        image: by id or reference, for containers of no attempt; it must be there.
        owner: the record of who starts containers, for others who find them there.
    """

    def __init__(
        self,
        transport: Transport,
        engine: Engine,
        container: Container,
        *,
        has_hcas: bool = False,
        image: str = "",
        owner: str = "",
    ) -> None:
        self._transport, self._node = transport, transport.node
        self._engine = engine
        self._options, self._has_hcas = container, has_hcas
        self._image, self._owner = image, owner
        self._containers = Containers(engine)
        self._user = Cached(lambda: ":".join(self._ask_node(USER)))
        self._gpu_access = Cached(self._find_gpu_access)
        self._entrypoints: dict[str, tuple[str, ...]] = {}  # by image
        self._seen: dict[str, _Seen] = {}  # by token

    def create(self, attempt: Attempt, task: Task, limits: Limits) -> None:
        """Create the task's container and start it; its supervisor waits at the gate.

        After an UnfitError it is removed; after other errors it may have been started.
        """
        self._engine.check()  # a hung one would only start it once it goes on
        supervisor.put_programs(self._transport, attempt.folder(task), supervisor.SUPERVISE)
        container = self._make(attempt, task, self.request(attempt, task, limits))
        try:
            self._containers.start(attempt.token(task))
        except errors.UnfitError:
            self._containers.remove(attempt.token(task))
            raise
        self._seen[attempt.token(task)] = _Seen(
            container,
            heard_at=time.monotonic(),
            observer=supervisor.observer(attempt, task, limits),
        )

    def request(self, attempt: Attempt, task: Task, limits: Limits) -> dict[str, Any]:
        """Return the request of Docker's API for a task's container."""
        image = attempt.images.get(self._node) or attempt.image or self._image
        if image not in self._entrypoints:
            facts = Images(self._engine).find(image)
            if facts is None:
                cause = f"there is no image {image}"
                raise _causes.missing_image(cause, self._node, _causes.PROVISION_FIX)
            self._entrypoints[image] = facts.entrypoint
        argv = (*self._entrypoints[image], *task.argv)
        errors_file = TaskFiles(self._transport, attempt, task).path("err")
        started = {
            "Image": image,
            "Entrypoint": [
                *("sh", "-c", 'umask 077; exec "$@" 2>"$0"', errors_file),
                *supervisor.supervised(attempt, task, limits, argv, observed=False),
            ],
            "Cmd": [],
            "Labels": {
                **_labels(attempt, task),
                **({f"{LABEL}owner": self._owner} if self._owner else {}),
                f"{LABEL}deadline": marks.deadline(limits),
            },
        }
        granted = self._granted(gpus=bool(task.gpus))
        request = grants.request(
            self._options, attempt, task, started, user=self._user.get(), **granted
        )
        # By which the task is ended without the engine.
        request["Env"].append(f"DLPERF_SUPERVISOR={attempt.token(task)}")
        return request

    def start(self, attempt: Attempt, task: Task) -> bool:
        seen = self._seen.setdefault(attempt.token(task), _Seen())
        is_open = TaskFiles(self._transport, attempt, task).open_gate()
        if is_open:
            seen.observed_from = time.monotonic() + OBSERVED_AFTER_S
            seen.fresh_until = time.monotonic() + FRESH_S
        return is_open

    def inspect(self, attempt: Attempt, task: Task) -> TaskState:
        """Return the state by the task's files and the process table.

        A container may run on without its engine, which could not end it then. So the engine is
        checked from time to time while the container runs, and a silent one is a NodeError.
        """
        name, files = attempt.token(task), TaskFiles(self._transport, attempt, task)
        seen, now = self._seen.setdefault(name, _Seen()), time.monotonic()
        is_new = not seen.fresh_until and now < seen.heard_at + FRESH_S
        if is_new and files.supervisor() is not None:
            return TaskState("waiting")
        has_ended = files.has("end")
        if seen.observer and now > seen.observed_from and not has_ended:
            observing, seen.observer = seen.observer, ""
            with contextlib.suppress(errors.DlperfError):  # it is measured all the same
                self._transport.run(("sh", "-c", observing, "sh"), timeout_s=SUPERVISOR_S)
        if now < seen.fresh_until and not has_ended:
            return seen.judge(files)
        identity = None if has_ended else files.supervisor()
        if identity is None or not seen.pid or not files.alive(identity, seen.pid):
            container = self._ask(lambda: self._containers.find(name))
            if container is None or container.finished:
                return self._ask(lambda: self._judge_end(files, identity, container))
            if identity is None and not has_ended:
                return TaskState("absent")
            seen.pid, seen.heard_at = str(container.pid), now
        elif now > seen.heard_at + ENGINE_LOOK_S:
            self._ask(lambda: self._engine.check(name))
            seen.heard_at = now
        state = seen.judge(files)
        if seen.has_begun:
            seen.fresh_until = now + FRESH_S
        return state

    def output(self, attempt: Attempt, task: Task, offset: int) -> bytes:
        return TaskFiles(self._transport, attempt, task).output(offset)

    def stop(self, attempt: Attempt, task: Task) -> None:
        self._containers.signal(attempt.token(task), "SIGTERM")

    def remove(self, attempt: Attempt, task: Task) -> None:
        """End and remove the task's container and its observer, and see that it is gone.

        Where the engine is silent its processes are killed without it. The container, in which
        nothing runs then, stays until the next ``remove``.
        """
        seen = self._seen.pop(attempt.token(task), _Seen())
        is_gone = self._remove(attempt, task, seen.container)
        if is_gone and seen.observer:
            return
        try:
            marks.kill(self._transport, attempt.token(task), node=task.node, trial=attempt.trial)
        except errors.DlperfError:
            if not is_gone:  # else an observer alone may be left, which disturbs nobody
                raise

    def run_once(
        self,
        argv: tuple[str, ...],
        *,
        gpus: bool,
        timeout_s: float,
        mounts: tuple[Mount, ...] = (),
    ) -> Completed:
        """Run a command in a container with the settings of tasks, and remove the container."""
        name, granted = f"dlp-probe-{secrets.token_hex(6)}", self._granted(gpus=gpus)
        user = self._user.get()
        request = {
            "Image": self._image,
            "User": user,
            "Env": grants.pairs(grants.environment("/", user, granted["gpu_access"])),
            # By a shell, so that a missing command has exit code 127 here too.
            "Entrypoint": ["sh", "-c", 'exec "$@"', "sh", *argv],
            "Labels": {f"{LABEL}probe": self._node},
            "HostConfig": grants.host_config(self._options, mounts, **granted),
        }
        try:
            self._containers.create(name, request)
            self._containers.start(name)
            deadline = time.monotonic() + timeout_s
            while time.monotonic() < deadline:
                state = self._containers.find(name)
                if state is None or state.finished:
                    outputs = self._containers.output(name)
                    return Completed(state.exit_code if state else KILLED, *outputs)
                time.sleep(LOOK_S)
            raise errors.CommandTimedOut(
                f"{argv[0]} in a container gave no answer in {timeout_s:g} s",
                code="TIMEOUT",
                node=self._node,
            )
        finally:
            self._containers.remove(name)

    def _granted(self, *, gpus: bool) -> dict[str, Any]:
        """Return how GPUs come into a container, and whether HCAs do, which must be there."""
        access = self._gpu_access.get() if gpus else "none"
        wants_hcas = self._has_hcas and not self._options.privileged
        if wants_hcas and not self._ask_node(HCA_DEVICES):
            raise errors.UnfitError(
                f"there is no device in {grants.HCA_FOLDER}; the inventory declares HCAs",
                code="IB-DEVICES",
                node=self._node,
                fix="load the InfiniBand modules (ib_uverbs) on the node",
            )
        return {"gpu_access": access, "has_hcas": self._has_hcas}

    def _find_gpu_access(self) -> str:
        """Return the way in which GPUs come into containers; Docker says if there is none."""
        requested = self._options.gpu_access
        if requested == "none":
            return requested
        info, version = self._engine.ask(lambda client: (client.info(), client.api_version))
        if docker.utils.version_lt(version, DEVICE_REQUESTS_API):
            return "runtime"  # by another way the container would silently start without GPUs
        if requested != "auto":
            return requested
        # The first of ``grants.WAYS`` that is there.
        if "nvidia" in (info.get("Runtimes") or ()):
            return "runtime"
        if self._ask_node(GPU_HOOK) or not info.get("CDISpecDirs"):
            return "gpus"
        return "cdi" if self._ask_node(CDI_SPECS) else "gpus"

    def _ask_node(self, script: str) -> tuple[str, ...]:
        done = self._transport.run(("sh", "-c", script), timeout_s=COMMAND_S)
        return tuple(done.stdout.decode(errors="replace").split())

    def _ask(self, question: Callable[[], T]) -> T:
        """Return the engine's answer; turn its refusals into errors of the node."""
        try:
            return question()
        except errors.UnfitError as error:
            raise errors.NodeError(error.cause, code=error.code, node=self._node) from error

    def _make(self, attempt: Attempt, task: Task, request: Mapping[str, Any]) -> str:
        """Create the container, unless a call whose answer was lost has done it; return its id."""
        name = attempt.token(task)
        for _ in range(CONTAINER_MAKES):
            with contextlib.suppress(errors.NodeError):
                if made := self._containers.create(name, request):
                    return made
            there = self._containers.find(name)
            if there is None:
                continue
            if _is_ours(there, attempt, task):
                return there.id
            if f"{LABEL}sweep" not in there.labels:
                raise errors.UnfitError(
                    f"a container {name} exists that this program did not create",
                    code="NAME-TAKEN",
                    node=task.node,
                    fix=f"find out whose it is and rename it (docker rename {name} ...)",
                )
            self._containers.remove(name)
        raise errors.NodeError(
            f"container {name} could not be created", code="START", node=self._node
        )

    def _remove(self, attempt: Attempt, task: Task, made: str) -> bool:
        """Remove a container of this id, else ours of its name; False if the engine is silent."""
        name, reason = attempt.token(task), "its removal does not finish"
        deadline = time.monotonic() + self._engine.patience.end_s
        while time.monotonic() < deadline:
            try:
                self._engine.check()
            except errors.UnfitError as error:
                if error.code in SILENT:
                    return False
            try:
                if not made:
                    there = self._containers.find(name)
                    if there is None or not _is_ours(there, attempt, task):
                        return True
                    made = there.id
                if self._containers.remove(made):
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

    def _judge_end(
        self, files: TaskFiles, identity: ProcessIdentity | None, container: ContainerState | None
    ) -> TaskState:
        end = files.end()
        if end is None and identity is None and container is None:
            return TaskState("absent")
        is_killed = container is not None and container.exit_code == KILLED
        why = end.why if end else "killed" if is_killed else "lost"
        if end is None and identity is not None and files.rebooted(identity):
            why = "rebooted"
        elif container is not None and container.oom_killed:
            # The kernel ended a rank for want of memory; the program may go on and exit with 0.
            why = "oom"
        elif container is not None and why in ("stopped", "killed"):
            # An engine that goes down or starts anew asks what it finds running to end.
            restarted = self._containers.restarted_since(container)
            why = "docker-restarted" if restarted else why
        if end is not None:
            return TaskState("ended", replace(end, why=why))
        status = container.exit_code if container and why != "lost" else None
        return TaskState("lost", files.make_end(why, status))


def _is_ours(container: ContainerState, attempt: Attempt, task: Task) -> bool:
    return _labels(attempt, task).items() <= container.labels.items()


def _labels(attempt: Attempt, task: Task) -> dict[str, str]:
    return {
        f"{LABEL}sweep": attempt.sweep,
        f"{LABEL}trial": attempt.trial,
        f"{LABEL}attempt": str(attempt.number),
        f"{LABEL}node_rank": str(task.node_rank),
        **({f"{LABEL}job": attempt.handle} if attempt.handle else {}),
    }
