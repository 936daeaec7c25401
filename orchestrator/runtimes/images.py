"""The images of a node's engine: pull, push, build, save, load, inspect."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import docker.auth
import docker.errors
import docker.utils

from orchestrator import errors
from orchestrator.model.image import content_digest
from orchestrator.retries import PULL
from orchestrator.runtimes import _causes
from orchestrator.runtimes.engine import Engine

LAST_LINES = 20
PIECE_BYTES = 1 << 20
OnProgress = Callable[[int, int], None]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and secret for a registry; the secret is never shown."""

    user: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """An image as an engine has it.

    Args:
        id: what this engine calls it: the digest of its configuration, or of its manifest where the
            engine keeps images in containerd.
        content: what is the same on every engine (``content_digest``).
    """

    id: str
    content: str
    repo_digests: tuple[str, ...]
    entrypoint: tuple[str, ...]
    labels: Mapping[str, str]


class Images:
    """The images of one engine. Every method may raise what ``Engine.ask`` raises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, reference: str) -> ImageFacts | None:
        """Return the image of that name, digest or id; None if the engine has none."""
        try:
            answer = self._engine.ask(lambda client: client.inspect_image(reference))
        except docker.errors.NotFound:
            return None
        config = answer.get("Config") or {}
        return ImageFacts(
            id=answer["Id"],
            content=content_digest((answer.get("RootFS") or {}).get("Layers") or (), config),
            repo_digests=tuple(answer.get("RepoDigests") or ()),
            entrypoint=tuple(config.get("Entrypoint") or ()),
            labels=config.get("Labels") or {},
        )

    def tagged(self, label: str) -> dict[str, Mapping[str, str]]:
        """Return the labels of all images with a label, by all of their names.

        An image whose name was given to another one is named by its id.
        """
        images = self._engine.ask(lambda client: client.images(filters={"label": [label]}))
        return {name: image.get("Labels") or {} for image in images for name in _names(image)}

    def digest(self, reference: str, credentials: Credentials | None) -> str:
        """Return the digest that the registry has for a name now, asked by the node's engine.

        Raises:
            ImageError: the registry has no such image, or does not answer.
        """
        auth = _auth(credentials)
        try:
            answer = self._engine.ask(
                lambda client: client.inspect_distribution(reference, auth),
                within_s=self._engine.patience.registry_s,
            )
        except docker.errors.NotFound as error:
            raise self._missing(reference, str(error.explanation)) from error
        return str(answer["Descriptor"]["digest"])

    def pull(
        self, reference: str, progress: OnProgress, credentials: Credentials | None
    ) -> ImageFacts:
        """Pull an image, again after errors that may pass (``retries.PULL``).

        Args:
            progress: called with bytes transferred and total bytes, as far as known.

        Raises:
            ImageError: of the last try, or the engine has no such image after it.
        """
        repository, tag = docker.utils.parse_repository_tag(reference)
        params = {"fromImage": repository, "tag": tag or "latest"}
        request = {"params": params, "headers": _header(credentials)}
        again = replace(PULL, pause_s=self._engine.patience.pause_s)
        again.call(lambda: self._carry("/images/create", request, progress))
        image = self.find(reference)
        if image is None:
            raise self._missing(reference, "the pull succeeded, but the engine has no such image")
        return image

    def tag(self, image: str, name: str) -> None:
        """Give an image one more name.

        Raises:
            ImageError: there is no such image.
        """
        repository, tag = docker.utils.parse_repository_tag(name)
        try:
            self._engine.ask(lambda client: client.tag(image, repository, tag))
        except docker.errors.NotFound as error:
            raise self._missing(image, str(error.explanation)) from error

    def push(self, reference: str, progress: OnProgress, credentials: Credentials | None) -> None:
        """Push an image to the registry that its name says.

        Raises:
            ImageError: why; the registry may have some of its layers.
        """
        repository, tag = docker.utils.parse_repository_tag(reference)
        # The engine wants this header even where nobody logs in.
        headers = _header(credentials) or {"X-Registry-Auth": "e30="}
        request = {"params": {"tag": tag or "latest"}, "headers": headers}
        self._carry(f"/images/{repository}/push", request, progress)

    def build(
        self,
        context: Iterable[bytes],
        tag: str,
        args: Mapping[str, str],
        labels: Mapping[str, str],
        say: Say,
    ) -> str:
        """Build an image from a tar with its Dockerfile; return the image's id.

        Args:
            labels: written on the image, whatever its Dockerfile says of them.
            say: called with every line that the build prints.

        Raises:
            ImageError: IMAGE-BUILD, with the last lines of the build.
        """
        lines: list[str] = []
        params = {"t": tag, "rm": True, "forcerm": True, "networkmode": "host"}
        params |= {"buildargs": json.dumps(dict(args)), "labels": json.dumps(dict(labels))}
        headers = {"Content-Type": "application/tar"}
        wait_s = self._engine.patience.work_s
        with self._words(
            "/build", wait_s, params=params, headers=headers, data=iter(context)
        ) as words:
            for word in words:
                for line in str(word.get("stream", "")).splitlines():
                    if line.strip():
                        lines.append(line)
                        say(line)
                if error := _error(word):
                    raise self._unbuilt(tag, error, lines)
        image = self.find(tag)
        if image is None:
            raise self._unbuilt(tag, "the build ended without an image", lines)
        return image.id

    def save(self, reference: str) -> Iterator[bytes]:
        """Yield the image, in pieces of the tar that ``load`` takes.

        Raises:
            ImageError: there is no such image.
        """
        wait_s = self._engine.patience.work_s
        try:
            with self._engine.asking() as client:
                url = client._url("/images/{0}/get", reference)
                with closing(client._get(url, stream=True, timeout=wait_s)) as answer:
                    client._raise_for_status(answer)
                    yield from answer.iter_content(PIECE_BYTES)
        except docker.errors.NotFound as error:
            raise self._missing(reference, str(error.explanation)) from error

    def load(self, pieces: Iterable[bytes]) -> None:
        """Take in the tar of an image.

        Raises:
            ImageError: the engine could not take it.
        """
        # The first is for each piece that is sent: an engine that stalls takes none.
        stall_s = self._engine.patience.stall_s
        wait_s = (stall_s, self._engine.patience.work_s)
        try:
            with self._words(
                "/images/load", wait_s, params={"quiet": True}, data=iter(pieces)
            ) as words:
                for word in words:
                    self._heed(word)
        except errors.UnfitError as error:
            if error.code == "DOCKER-HUNG" and error.where["node"] == self._engine.node:
                error.cause = f"Docker took no byte of the image for {stall_s:g} s"
            raise

    def save_file(self, reference: str, path: str) -> None:
        """Write the image to a file on the node.

        Raises:
            ImageError, UnfitError: why it could not be written.
        """
        self._engine.command_line("save", "--output", path, reference)

    def load_file(self, path: str) -> None:
        """Take in the image in a file on the node.

        Raises:
            ImageError, UnfitError: the engine could not take it.
        """
        self._engine.command_line("load", "--quiet", "--input", path)

    def remove(self, reference: str) -> bool:
        """Remove an image by one of its names; False if there was none."""
        try:
            self._engine.ask(
                lambda client: client.remove_image(reference),
                within_s=self._engine.patience.untag_s,
            )
        except docker.errors.NotFound:
            return False
        return True

    def _carry(self, path: str, request: Mapping[str, Any], progress: OnProgress) -> None:
        """Have an image pulled or pushed; given up once no byte has come for ``stall_s``."""
        wait_s = self._engine.patience.stall_s
        flow = Flow()
        try:
            with self._words(path, wait_s, **request) as words:
                for word in words:
                    self._heed(word)
                    flow.take(word)
                    progress(flow.carried, flow.total)
                    if flow.still_s > wait_s:
                        raise self._stalled(wait_s)
        except docker.errors.NotFound as error:
            cause = str(error.explanation)
            raise _causes.refusal(cause, self._engine.node, "IMAGE-MISSING") from error
        except errors.UnfitError as error:
            if error.code != "DOCKER-HUNG":
                raise
            self._engine.check()  # else it is not the registry that is silent
            raise self._stalled(wait_s) from error

    # The SDK's own pull, load and get take no time-out, and keep their connection when they fail.
    @contextmanager
    def _words(
        self, path: str, wait_s: float | tuple[float, float], **request: Any
    ) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Yield the JSON lines that the engine sends while it works; each may take ``wait_s``."""
        with self._engine.asking() as client:
            url = f"{client.base_url}/v{client.api_version}{path}"
            with closing(client._post(url, stream=True, timeout=wait_s, **request)) as answer:
                client._raise_for_status(answer)
                yield client._stream_helper(answer, decode=True)

    def _heed(self, word: Mapping[str, Any]) -> None:
        if error := _error(word):
            raise _causes.refusal(error, self._engine.node, "IMAGE-PULL")

    def _stalled(self, wait_s: float) -> errors.ImageError:
        return errors.ImageError(
            f"no byte of the image came for {wait_s:g} s",
            code="REG-STALL",
            node=self._engine.node,
            fix="check the registry's log, or use another mirror",
        )

    def _missing(self, reference: str, cause: str) -> errors.ImageError:
        return errors.ImageError(
            f"{reference}: {cause}",
            code="IMAGE-MISSING",
            node=self._engine.node,
            fix=_causes.MISSING_FIX,
        )

    def _unbuilt(self, tag: str, cause: str, lines: list[str]) -> errors.ImageError:
        last = "\n".join(lines[-LAST_LINES:])
        return errors.ImageError(
            f"{tag}: {cause}; the last lines of its build:\n{last}\n",
            code="IMAGE-BUILD",
            node=self._engine.node,
        )


def _error(word: Mapping[str, Any]) -> str:
    """Return the error in a line of the engine's answer; `error` is deprecated since API 1.48."""
    detail = word.get("errorDetail") or {}
    return str(detail.get("message") or word.get("error") or "")


def _names(listed: Mapping[str, Any]) -> list[str]:
    """Return an image's names, or its id; Docker lists a missing name as ``<none>:<none>``."""
    names = [name for name in listed.get("RepoTags") or () if not name.startswith("<none>")]
    return names or [str(listed["Id"])]


def _auth(credentials: Credentials | None) -> dict[str, str] | None:
    if credentials is None:
        return None
    return {"username": credentials.user, "password": credentials.secret}


def _header(credentials: Credentials | None) -> dict[str, str]:
    auth = _auth(credentials)
    return {"X-Registry-Auth": docker.auth.encode_header(auth)} if auth else {}


# Unpacking is not counted: the same bytes would count twice.
CARRYING, CARRIED = ("Downloading", "Pushing"), ("Download complete", "Pushed")


class Flow:
    """Adds up the bytes of an image's layers while the engine pulls or pushes them."""

    def __init__(self) -> None:
        self._moved_at = time.monotonic()
        self._last: dict[str, tuple[str, int]] = {}
        self._bytes: dict[str, tuple[int, int]] = {}

    @property
    def still_s(self) -> float:
        """Seconds since any layer made progress."""
        return time.monotonic() - self._moved_at

    @property
    def carried(self) -> int:
        """Bytes transferred so far."""
        return sum(carried for carried, _ in self._bytes.values())

    @property
    def total(self) -> int:
        """Bytes to transfer in all, of the layers whose size the engine has sent so far."""
        return sum(total for _, total in self._bytes.values())

    def take(self, word: Mapping[str, Any]) -> None:
        """Count one status line of the engine."""
        detail, layer = word.get("progressDetail") or {}, str(word.get("id", ""))
        status, current = str(word.get("status", "")), int(detail.get("current", 0))
        # Counting down to its next try, the engine talks and nothing comes.
        if status.startswith("Retrying") or self._last.get(layer) == (status, current):
            return
        self._moved_at = time.monotonic()
        self._last[layer] = status, current
        if status in CARRYING and current:
            self._bytes[layer] = current, max(current, int(detail.get("total", 0)))
        elif status in CARRIED and layer in self._bytes:
            total = self._bytes[layer][1]
            self._bytes[layer] = total, total
