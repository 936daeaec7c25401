"""Tasks in containers of one engine, brought to their gates and through them."""

from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors
from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.node import Container
from orchestrator.model.plan import Mount, Task
from orchestrator.runtimes.docker import DockerRuntime
from orchestrator.runtimes.engine import Engine
from orchestrator.transports.local import LocalTransport
from tests.dockerd import IMAGE, Dockerd
from tests.waiting import wait_for

LIMITS = Limits(time_s=60, stall_s=60, grace_s=1, create_s=30)
ENDLESS = "while :; do sleep 0.1; done"
LEAST = Container()


@dataclass
class Stage:
    """Tasks in containers of one engine."""

    dockerd: Dockerd
    engine: Engine
    folder: Path
    number: int = 0

    def runtime(
        self, options: Container = LEAST, image: str = IMAGE, *, has_hcas: bool = False
    ) -> DockerRuntime:
        """A runtime on the engine."""
        return DockerRuntime(
            LocalTransport("here"), self.engine, options, image=image, has_hcas=has_hcas
        )

    def attempt(
        self, *argv: str, mounts: tuple[Mount, ...] = (), gpus: tuple[int, ...] = ()
    ) -> tuple[Attempt, Task]:
        """An attempt with one task that runs ``argv``."""
        self.number += 1
        made = Task("here", 0, argv, {}, mounts, gpus)
        folders = {"here": str(self.folder / f"a{self.number}")}
        return Attempt("s1", self.folder.name, self.number, folders, 29500, (made,)), made

    def begin(
        self, attempt: Attempt, task: Task, options: Container = LEAST, image: str = IMAGE
    ) -> DockerRuntime:
        """The runtime that has brought the task through its gate."""
        runtime = self.runtime(options, image)
        runtime.create(attempt, task, LIMITS)
        wait_for(lambda: runtime.inspect(attempt, task).phase == "waiting", "the gate", 20)
        assert runtime.start(attempt, task)
        wait_for(lambda: runtime.inspect(attempt, task).phase != "waiting", "the start", 20)
        return runtime

    def end(self, runtime: DockerRuntime, attempt: Attempt, task: Task) -> TaskEnd:
        """How the task ended, once it has."""

        def look() -> TaskEnd | None:
            try:
                return runtime.inspect(attempt, task).end
            except errors.NodeError:
                return None

        wait_for(look, "the task's end", 30)
        end = look()
        assert end is not None
        return end

    def said(self, script: str, options: Container = LEAST, image: str = IMAGE) -> str:
        """What a script prints in a container."""
        attempt, task = self.attempt("sh", "-c", script)
        runtime = self.begin(attempt, task, options, image)
        assert self.end(runtime, attempt, task).status == 0
        return runtime.output(attempt, task, 0).decode()

    def names(self) -> list[str]:
        """Every container that there is."""
        return self.dockerd.docker("ps", "-a", "--format", "{{.Names}}").split()
