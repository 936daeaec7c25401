"""One node's Docker engine, asked by HTTP over byte streams of the node's one connection."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import docker
import docker.auth
import docker.constants
import docker.errors
import docker.utils.proxy
import requests
import urllib3
from docker.transport import UnixHTTPAdapter
from docker.utils import version_lt

from orchestrator import errors
from orchestrator.deadlines import ENGINE_ANSWER_S, ENGINE_SILENCE_S, PATIENCE, Patience
from orchestrator.model import findings
from orchestrator.model.site import kind_of_silence
from orchestrator.retries import ENGINE
from orchestrator.runtimes import _causes
from orchestrator.transports import Stream, Transport
from orchestrator.transports.cached import Cached

T = TypeVar("T")
OLDEST_API = "1.30"
MOST_STREAMS = 3
Dial = Callable[[], Stream]
# requests lets errors of the libraries below it through while an answer is being read.
BROKEN = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
)


class _Socket:
    """A stream with those methods of a socket that an HTTP client uses.

    An answer that is still being read keeps the stream open after the connection is closed.

    Args:
        check: called in each long silence; raises if the engine is the reason.
    """

    makefile = socket.socket.makefile  # counts in _io_refs who still reads

    def __init__(self, stream: Stream, check: Callable[[], None]) -> None:
        self._stream = stream
        self._check = check
        self._limit_s: float | None = None
        self._io_refs = 0
        self._closed = False
        self.sendall = stream.sendall

    def settimeout(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._stream.settimeout(limit_s)

    def recv_into(self, buffer: Any) -> int:
        piece = self._recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._closed = True
        if self._io_refs == 0:
            self._stream.close()

    def _decref_socketios(self) -> None:  # called by what makefile returns, once it is closed
        self._io_refs -= 1
        if self._closed:
            self.close()

    def idles(self) -> bool:
        """Return whether the stream is still open and holds no unread byte."""
        self._stream.settimeout(0.0)
        try:
            self._stream.recv(1)
        except (BlockingIOError, TimeoutError):
            return True
        except (OSError, errors.NodeError):
            return False
        return False

    def _recv(self, size: int) -> bytes:
        left_s = self._limit_s
        while left_s is not None and left_s > 2 * ENGINE_SILENCE_S:  # no short question's
            self._stream.settimeout(ENGINE_SILENCE_S)
            try:
                return self._stream.recv(size)
            except TimeoutError:
                left_s -= ENGINE_SILENCE_S
                self._check()
        self._stream.settimeout(left_s)
        return self._stream.recv(size)


class _Connection(urllib3.connection.HTTPConnection):
    def __init__(self, dial: Dial, check: Callable[[], None], **of_pool: Any) -> None:
        super().__init__(**of_pool)
        self._dial, self._check = dial, check

    def connect(self) -> None:
        self.sock: Any = _Socket(self._dial(), self._check)
        self.sock.settimeout(self.timeout)

    @property
    def is_connected(self) -> bool:
        return self.sock is not None and self.sock.idles()


class _DialAdapter(UnixHTTPAdapter):  # type: ignore[misc] # the library has no types
    """Sends every request down streams that ``dial`` opens, and keeps them for the next."""

    def __init__(self, dial: Dial, check: Callable[[], None]) -> None:
        self._streams = urllib3.HTTPConnectionPool("docker", maxsize=MOST_STREAMS)
        connected = partial(_Connection, dial, check)
        self._streams.ConnectionCls = connected  # type: ignore[assignment] # pools only call it
        super().__init__("")

    def get_connection(self, *_: object) -> urllib3.HTTPConnectionPool:
        """Return the node's own pool, whatever address the request has."""
        return self._streams

    def close(self) -> None:
        """Let go of the streams that wait for a next request."""
        self._streams.close()
        super().close()


class Engine:
    """The Docker engine of a node, reached by ``docker system dial-stdio`` on its connection.

    A few streams (``MOST_STREAMS``) are open at a time; they are kept for the next question.

    Args:
        sudo: whether the user needs ``sudo -n`` to reach it.
        command: how the docker command is called; the attribute has ``sudo -n`` before it.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        sudo: bool = False,
        command: tuple[str, ...] = ("docker",),
        patience: Patience = PATIENCE,
    ) -> None:
        self.node = transport.node
        self.patience = patience
        self._transport = transport
        self._sudo = sudo
        self.command = (*(("sudo", "-n") if sudo else ()), *command)
        self._slots = threading.BoundedSemaphore(MOST_STREAMS)
        self._adapter = _DialAdapter(self._dial, self._check_aside)
        self._version = Cached(self._common_version)

    def check(self, container: str = "") -> None:
        """See that the engine answers, and containerd behind it.

        Args:
            container: one that runs, whose own state is then asked for: it costs the node less.
        """

        def look(client: Any) -> None:
            if container:  # any status will do, 404 as well
                url = client._url("/containers/{0}/stats", container)
                client._get(url, params={"stream": 0, "one-shot": 1})
            else:
                client.version(api_version=False)

        self.ask(look, within_s=min(ENGINE_ANSWER_S, self.patience.answer_s))

    def ask(
        self,
        question: Callable[[Any], T],
        *,
        within_s: float | None = None,
        once: bool = False,
    ) -> T:
        """Call ``question`` with the API client, twice if a kept stream turns out to be stale.

        Args:
            within_s: the time limit; the one for short questions by default.
            once: a second call would do harm; whether the engine did it may then be unknown.

        Raises:
            UnfitError: the engine is down, hung, not accessible, or refuses.
            NodeError: its connection was lost; or the node does not answer either.
            docker.errors.NotFound: it has no such container or image.
        """

        def ask_once() -> T:
            with self.asking(within_s) as client:
                return question(client)

        return ask_once() if once else ENGINE.call(ask_once)

    def ask_of(
        self,
        question: Callable[[Any], T],
        *,
        within_s: float | None = None,
        unless: str | None = None,
    ) -> T | None:
        """Return the answer; None if there is no such container or image, or it says ``unless``."""
        try:
            return self.ask(question, within_s=within_s)
        except docker.errors.NotFound:
            return None
        except errors.UnfitError as error:
            if unless is None or unless not in error.cause:
                raise
            return None

    @contextmanager
    def asking(self, within_s: float | None = None) -> Iterator[Any]:
        """Yield the engine's API client; translate its errors."""
        limit_s = within_s or self.patience.answer_s
        with self._slots:
            try:
                yield self._client(self._version.get(), limit_s)
            except docker.errors.NotFound:
                raise
            except docker.errors.APIError as error:
                raise _causes.refusal(str(error.explanation or error), self.node) from error
            except docker.errors.DockerException as error:
                raise _causes.refusal(str(error), self.node) from error
            except BROKEN as error:
                if "timed out" in str(error).lower() or isinstance(error, TimeoutError):
                    raise self._hung(limit_s) from error
                self._check_aside()
                raise errors.NodeError(
                    f"the connection to Docker was lost: {error}",
                    code="DOCKER-LOST",
                    node=self.node,
                ) from error

    def command_line(self, *words: str) -> None:
        """Run the docker command on the node, for work that may take long."""
        done = self._transport.run((*self.command, *words), timeout_s=self.patience.work_s)
        if done.exit_code != 0:
            raise _causes.refusal(done.stderr.decode(errors="replace"), self.node)

    def close(self) -> None:
        """Close the streams; the engine and its containers go on. A later question opens others."""
        self._adapter.close()
        self._adapter = _DialAdapter(self._dial, self._check_aside)

    def _dial(self) -> Stream:
        return self._transport.open((*self.command, "system", "dial-stdio"))

    def _client(self, version: str, within_s: float) -> Any:
        """Make an API client that uses nothing from this machine: no proxy, no login, no header."""
        client = docker.APIClient(base_url="tcp://docker:2375", version=version, timeout=within_s)
        client.trust_env = False
        client._auth_configs = docker.auth.AuthConfig({})
        client._general_configs = {}
        client._proxy_configs = docker.utils.proxy.ProxyConfig()
        client.mount("http://", self._adapter)
        return client

    def _common_version(self) -> str:
        ours = docker.constants.DEFAULT_DOCKER_API_VERSION
        # Any version will do until the engine has said which it speaks; none would dial at once.
        client = self._client(OLDEST_API, self.patience.answer_s)
        pinged = client._get(client._url("/_ping", versioned_api=False))
        client._raise_for_status(pinged)
        theirs = pinged.headers.get("Api-Version", "1.12")
        if version_lt(theirs, OLDEST_API):  # one that is too new for us says so itself
            cause = f"Docker speaks API {theirs}; this program requires API version {OLDEST_API}"
            raise _causes.refusal(cause, self.node)
        return str(theirs) if version_lt(theirs, ours) else ours

    def _check_aside(self) -> None:
        """See that the engine answers, by a command of its own and not by our streams."""
        prefix = self.command if not self._sudo else ("env", "LC_ALL=C", *self.command)
        words = (*prefix, "version", "--format", "{{.Server.Version}}")
        limit_s = min(ENGINE_ANSWER_S, self.patience.answer_s)
        try:
            done = self._transport.run(words, timeout_s=limit_s)
        except errors.CommandTimedOut as error:
            raise self._hung(limit_s) from error
        stderr = done.stderr.decode(errors="replace")
        if done.exit_code != 0 or kind_of_silence(stderr) == "FOREIGN":
            asked = self._transport.run(("id", "-un"), timeout_s=self.patience.answer_s)
            user = asked.stdout.decode(errors="replace").strip()
            raise _causes.silence(stderr, self.node, user, self._sudo)

    def _hung(self, limit_s: float) -> errors.UnfitError:
        """Return the error for an engine that is silent on a node which is not.

        Raises:
            NodeError: the node is silent too.
        """
        self._transport.run(("true",), timeout_s=min(ENGINE_ANSWER_S, self.patience.answer_s))
        return errors.UnfitError(
            f"Docker or containerd does not answer within {limit_s:g} s; the node does",
            code="DOCKER-HUNG",
            node=self.node,
            fix=findings.describe("DOCKER-HUNG").fix,
        )
