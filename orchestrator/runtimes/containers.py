"""The containers of a node's engine: made, started, looked at, ended."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import docker.errors

from orchestrator import errors
from orchestrator.runtimes.engine import Engine

FINISHED = ("exited", "dead")
MOST_EVENTS = 256  # what an engine remembers


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """A container among others, as the engine lists it."""

    id: str
    name: str
    labels: Mapping[str, str]
    state: str


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One container, looked at.

    Args:
        pid: of its first process as the node sees it; 0 where there is none.
        exit_code: of its first process, 137 if that was killed; meant only once it finished.
        oom_killed: the kernel ended some process of it for want of memory.
    """

    id: str
    labels: Mapping[str, str]
    status: str
    pid: int
    exit_code: int
    oom_killed: bool
    error: str
    started_at: str

    @property
    def finished(self) -> bool:
        """Whether its first process has ended, or never will be."""
        return self.status in FINISHED


class Containers:
    """What one engine has of containers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, name: str) -> ContainerState | None:
        """The container as it is now; None if there is none of that name."""
        try:
            said = self._engine.ask(lambda client: client.inspect_container(name))
        except docker.errors.NotFound:
            return None
        state = said["State"]
        return ContainerState(
            id=said["Id"],
            labels=said["Config"].get("Labels") or {},
            status=state["Status"],
            pid=state.get("Pid", 0),
            exit_code=state.get("ExitCode", 0),
            oom_killed=bool(state.get("OOMKilled")),
            error=state.get("Error", ""),
            started_at=state.get("StartedAt", ""),
        )

    def labelled(self, *labels: str) -> tuple[ContainerFacts, ...]:
        """Every container that has all these labels (``name`` or ``name=value``), ended or not."""
        found = self._engine.ask(
            lambda client: client.containers(all=True, filters={"label": list(labels)})
        )
        return tuple(
            ContainerFacts(
                id=answer["Id"],
                name=answer["Names"][0].removeprefix("/") if answer.get("Names") else "",
                labels=answer.get("Labels") or {},
                state=answer["State"],
            )
            for answer in found
        )

    def create(self, name: str, host: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
        """Make a container and leave it; False if the name is taken.

        Args:
            host: what it is granted of its node, in the engine's API words.
            config: image, command, environment and labels, likewise.

        Raises:
            ImageError: there is no such image.
            NodeError: the connection was lost; it may or may not be there.
        """
        document = {**config, "HostConfig": dict(host)}

        def ask(client: Any) -> Any:
            return client.create_container_from_config(document, name)

        try:
            self._engine.ask_once(ask, within_s=self._engine.patience.create_s)
        except docker.errors.NotFound as error:
            raise errors.ImageError(
                str(error.explanation), code="IMAGE-MISSING", node=self._engine.node
            ) from error
        except errors.UnfitError as error:
            if "is already in use" not in error.cause:
                raise
            return False
        return True

    def start(self, name: str) -> None:
        """Start a container; one that runs already goes on.

        Raises:
            UnfitError: why it did not start; it is still there.
        """
        try:
            self._engine.ask(
                lambda client: client.start(name), within_s=self._engine.patience.start_s
            )
        except docker.errors.NotFound as error:
            raise self._engine.refusal(error) from error

    def signal(self, name: str, signal: str) -> None:
        """Send a signal to a container's first process; nothing happens where it does not run."""
        try:
            self._engine.ask(lambda client: client.kill(name, signal))
        except docker.errors.NotFound:
            return
        except errors.UnfitError as error:
            if "is not running" not in error.cause:
                raise

    def remove(self, name: str) -> bool:
        """End and remove a container; False if there was none or it is on its way out.

        Raises:
            UnfitError: the engine could not.
        """
        try:
            self._engine.ask(
                lambda client: client.remove_container(name, v=True, force=True),
                within_s=self._engine.patience.end_s,
            )
        except docker.errors.NotFound:
            return False
        except errors.UnfitError as error:
            if "is already in progress" not in error.cause:
                raise
            return False
        return True

    def output(self, name: str) -> tuple[bytes, bytes]:
        """What a container has printed, standard output and error apart."""
        out: bytes = self._engine.ask(lambda client: client.logs(name, stdout=True, stderr=False))
        err: bytes = self._engine.ask(lambda client: client.logs(name, stdout=False, stderr=True))
        return out, err

    def restarted_since(self, container: ContainerState) -> bool:
        """Whether the engine was itself started after it had started this container.

        It keeps its last events in memory only: where they are few and the container's start is
        not among them, they are those of another life.
        """
        events = self._engine.ask(_events)
        started = {event.get("id") for event in events if event.get("status") == "start"}
        return container.id not in started and len(events) < MOST_EVENTS


def _events(client: Any) -> list[Mapping[str, Any]]:
    # Up to the next second by the node's own clock: later, and the engine would wait for it.
    now = datetime.fromisoformat(client.info()["SystemTime"])
    params = {"since": 1, "until": int(now.timestamp()) + 1}
    with closing(client._get(client._url("/events"), params=params, stream=True)) as answer:
        client._raise_for_status(answer)
        return list(client._stream_helper(answer, decode=True))
