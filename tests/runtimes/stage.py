"""Tasks of a runtime on this machine, with the means to see and to hurt them."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.node import Container
from orchestrator.model.plan import Mount, Task
from orchestrator.runtimes import Runtime
from orchestrator.runtimes.docker import DockerRuntime
from orchestrator.runtimes.engine import Engine
from orchestrator.transports.local import LocalTransport
from tests import processes
from tests.dockerd import IMAGE, Dockerd
from tests.processes import wait_for

LIMITS = Limits(time_s=60, stall_s=60, grace_s=1, create_s=30)
ENDLESS = "while :; do sleep 0.1; done"
LEAST = Container()


@dataclass
class StagedTask:
    """The only task of an attempt, and the runtime that runs it."""

    runtime: Runtime
    attempt: Attempt

    @property
    def task(self) -> Task:
        return self.attempt.tasks[0]

    @property
    def token(self) -> str:
        return self.attempt.token(self.task)

    @property
    def phase(self) -> str:
        return self.runtime.inspect(self.attempt, self.task).phase

    def path(self, name: str) -> Path:
        """Return the path of one of the task's files."""
        return Path(self.attempt.folder(self.task)) / f"r0.{name}"

    def create(self, limits: Limits = LIMITS) -> None:
        self.runtime.create(self.attempt, self.task, limits)

    def start(self) -> bool:
        return self.runtime.start(self.attempt, self.task)

    def stop(self) -> None:
        self.runtime.stop(self.attempt, self.task)

    def remove(self) -> None:
        self.runtime.remove(self.attempt, self.task)

    def output(self, offset: int = 0) -> bytes:
        return self.runtime.output(self.attempt, self.task, offset)

    def wait(self, phase: str) -> None:
        wait_for(lambda: self.phase == phase, f"the phase {phase}")

    def begin(self, limits: Limits = LIMITS) -> "StagedTask":
        """Bring the task through its gate."""
        self.create(limits)
        self.wait("waiting")
        assert self.start()
        wait_for(lambda: self.phase != "waiting", "the start")
        return self

    def end(self) -> TaskEnd:
        """Wait for the task's end, also while the engine is not there."""

        def look() -> TaskEnd | None:
            with contextlib.suppress(errors.NodeError):
                return self.runtime.inspect(self.attempt, self.task).end
            return None

        wait_for(look, "the task's end", 60)
        end = self.runtime.inspect(self.attempt, self.task).end
        assert end is not None
        return end

    def pids(self, mark: str = "=") -> dict[int, str]:
        """Return the processes of the task on this machine, with their command lines."""
        found = {}
        for path in processes.files("environ"):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                words = path.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
                if f"{mark}{self.token}\0" in path.read_text():
                    found[int(path.parent.name)] = words
        return found

    def kill_supervisor(self) -> None:
        """Kill the supervisor itself: the process among its forks whose parent is none of them."""
        found = [pid for pid, words in self.pids().items() if "supervise.sh" in words]
        stats = {pid: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2] for pid in found}
        (supervisor,) = [pid for pid in found if int(stats[pid].split()[1]) not in found]
        os.kill(supervisor, signal.SIGKILL)


class Stage:
    """A runtime, and the attempts that a test makes.

    Args:
        lost: the reason that is reported for a task whose supervisor was killed.
    """

    def __init__(self, make: Callable[[], Runtime], folder: Path, lost: str) -> None:
        self.make, self.folder, self.lost = make, folder, lost
        self.runtime = make()
        self.tasks: list[StagedTask] = []

    def task(
        self, *argv: str, mounts: tuple[Mount, ...] = (), gpus: tuple[int, ...] = (), **env: str
    ) -> StagedTask:
        """Return an attempt with one task that runs ``argv``."""
        number = len(self.tasks) + 1
        folders = {"here": str(self.folder / f"a{number}")}
        task = Task("here", 0, argv, env, mounts, gpus)
        # Names are those of all engines' containers and of all processes of this machine.
        made = Attempt(f"s{os.getpid()}", self.folder.name, number, folders, 29500, (task,))
        self.tasks.append(StagedTask(self.runtime, made))
        return self.tasks[-1]

    def begin(self, script: str) -> StagedTask:
        """Bring a task that runs a script through its gate."""
        return self.task("sh", "-c", script).begin()

    def run(self, script: str, limits: Limits = LIMITS) -> tuple[TaskEnd, bytes]:
        """Return how a script ended, and its whole output."""
        staged = self.task("sh", "-c", script).begin(limits)
        return staged.end(), staged.output()


class DockerStage(Stage):
    """Tasks in containers of one engine."""

    runtime: DockerRuntime

    def __init__(
        self,
        dockerd: Dockerd,
        folder: Path,
        options: Container = LEAST,
        *,
        image: str = IMAGE,
        engine: Engine | None = None,
        has_hcas: bool = False,
    ) -> None:
        self.dockerd, self.engine = dockerd, engine or dockerd.engine()

        def make() -> DockerRuntime:
            transport = LocalTransport("here")
            return DockerRuntime(transport, self.engine, options, image=image, has_hcas=has_hcas)

        super().__init__(make, folder, "killed")

    def names(self) -> list[str]:
        """Return the names of all containers of the engine."""
        return self.dockerd.docker("ps", "-a", "--format", "{{.Names}}").split()


@contextlib.contextmanager
def staged(dockerd: Dockerd, folder: Path) -> Iterator[DockerStage]:
    """Yield a stage on an engine that other tests use too, and remove what is left."""
    stage = DockerStage(dockerd, folder)
    yield stage
    stage.engine.close()
    if left := dockerd.docker("ps", "-aq").split():
        dockerd.docker("rm", "-f", *left)


@contextlib.contextmanager
def refused(
    code: str, words: str | None = None, kind: type[errors.DlperfError] = errors.UnfitError
) -> Iterator[None]:
    """Expect an error of this code in the block."""
    with pytest.raises(kind, match=words) as raised:
        yield
    assert raised.value.code == code
