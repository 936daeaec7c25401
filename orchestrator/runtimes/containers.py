"""The containers of a node's engine: made, started, looked at, ended."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import docker.errors

from orchestrator import errors
from orchestrator.runtimes import _causes
from orchestrator.runtimes.engine import Engine

MOST_EVENTS = 256  # what an engine remembers


@dataclass(frozen=True, slots=True)
class ListedContainer:
    """A container in the engine's list."""

    name: str
    labels: Mapping[str, str]
    state: str


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The present state of a container.

    Args:
        user: whose rights its processes have, such as ``1000:100``.
        finished: it has exited, or will never start.
        pid: of its first process, on the node; 0 without one.
        exit_code: of its first process, 137 if that was killed; valid only once finished.
        oom_killed: the kernel killed a process of it, out of memory.
    """

    id: str
    labels: Mapping[str, str]
    user: str
    finished: bool
    pid: int
    exit_code: int
    oom_killed: bool


class Containers:
    """The containers of one engine. Every method may raise what ``Engine.ask`` raises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, name: str) -> ContainerState | None:
        """Return the present state of a container, or None if no container has that name."""
        answer = self._engine.ask_of(lambda client: client.inspect_container(name))
        if answer is None:
            return None
        state = answer["State"]
        return ContainerState(
            id=answer["Id"],
            labels=answer["Config"].get("Labels") or {},
            user=answer["Config"].get("User") or "",
            finished=state["Status"] in ("exited", "dead"),
            pid=state.get("Pid", 0),
            exit_code=state.get("ExitCode", 0),
            oom_killed=bool(state.get("OOMKilled")),
        )

    def labelled(self, *labels: str) -> tuple[ListedContainer, ...]:
        """List containers with all these labels (``name`` or ``name=value``), ended or not."""
        answers = self._engine.ask(
            lambda client: client.containers(all=True, filters={"label": list(labels)})
        )
        return tuple(
            ListedContainer(
                name=answer["Names"][0].removeprefix("/") if answer.get("Names") else "",
                labels=answer.get("Labels") or {},
                state=answer["State"],
            )
            for answer in answers
        )

    def create(self, name: str, request: Mapping[str, Any]) -> str:
        """Create a container without starting it; return its id, or "" if the name is taken.

        Args:
            request: of Docker's API: ``Image``, ``Cmd``, ``Env``, ``HostConfig``, ...

        Raises:
            ImageError: there is no such image.
            NodeError: the connection was lost; it may or may not exist.
        """
        try:
            answer = self._engine.ask(
                lambda client: client.create_container_from_config(dict(request), name),
                within_s=self._engine.patience.create_s,
                once=True,
            )
        except docker.errors.NotFound as error:
            cause, node = str(error.explanation), self._engine.node
            raise _causes.missing_image(cause, node, _causes.PROVISION_FIX) from error
        except errors.UnfitError as error:
            if "is already in use" not in error.cause:
                raise
            return ""
        return str(answer["Id"])

    def start(self, name: str) -> None:
        """Start a container, which stays if it cannot start; nothing happens if it runs already."""
        try:
            self._engine.ask(
                lambda client: client.start(name), within_s=self._engine.patience.start_s
            )
        except docker.errors.NotFound as error:
            raise _causes.refusal(str(error.explanation), self._engine.node) from error

    def signal(self, name: str, signal: str) -> None:
        """Send a signal to a container's first process; nothing happens if it does not run."""
        self._engine.ask_of(lambda client: client.kill(name, signal), unless="is not running")

    def remove(self, name: str) -> bool:
        """Kill and remove a container; False if there was none or its removal is under way."""

        def remove(client: Any) -> bool:
            client.remove_container(name, v=True, force=True)
            return True

        within_s, unless = self._engine.patience.end_s, "is already in progress"
        return bool(self._engine.ask_of(remove, within_s=within_s, unless=unless))

    def output(self, name: str) -> tuple[bytes, bytes]:
        """Return a container's standard output and standard error; nothing of one that is gone."""
        found = self._engine.ask_of(
            lambda client: (
                client.logs(name, stdout=True, stderr=False),
                client.logs(name, stdout=False, stderr=True),
            )
        )
        return found or (b"", b"")

    def restarted_since(self, container: ContainerState) -> bool:
        """Return whether the engine has restarted since it started this container.

        The engine keeps its last 256 events in memory only: if it has fewer, and the container's
        start is not among them, it has been restarted since.
        """
        events = self._engine.ask(_events)
        started = {event["Actor"]["ID"] for event in events if event.get("Action") == "start"}
        return container.id not in started and len(events) < MOST_EVENTS


def _events(client: Any) -> list[Mapping[str, Any]]:
    # Up to the next second by the node's own clock: later, and the engine would wait for it.
    now = datetime.fromisoformat(client.info()["SystemTime"])
    params = {"since": 1, "until": int(now.timestamp()) + 1}
    with closing(client._get(client._url("/events"), params=params, stream=True)) as answer:
        client._raise_for_status(answer)
        return list(client._stream_helper(answer, decode=True))
