"""The images of a node's engine: pull, push, build, save, load, inspect."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import docker.auth
import docker.errors
import docker.utils

from orchestrator import errors
from orchestrator.model.image import INPUTS_LABEL, Credentials, HeldImage, content_digest
from orchestrator.retries import PULL
from orchestrator.runtimes import _causes
from orchestrator.runtimes.engine import Engine

LAST_LINES = 20
PIECE_BYTES = 1 << 20
Say = Callable[[str], None]


class Images:
    """The images of one engine. Every method may raise what ``Engine.ask`` raises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, reference: str) -> HeldImage | None:
        """Return the image of that name, digest or id; None if the engine has none."""
        answer = self._engine.ask_of(lambda client: client.inspect_image(reference))
        if answer is None:
            return None
        config = answer.get("Config") or {}
        return HeldImage(
            id=answer["Id"],
            inputs=(config.get("Labels") or {}).get(INPUTS_LABEL),
            content=content_digest((answer.get("RootFS") or {}).get("Layers") or (), config),
            repo_digests=tuple(answer.get("RepoDigests") or ()),
            entrypoint=tuple(config.get("Entrypoint") or ()),
        )

    def tagged(self, label: str) -> dict[str, Mapping[str, str]]:
        """Return the labels of all images with a label, by all of their names.

        An image whose name was given to another one is named by its id.
        """
        images = self._engine.ask(lambda client: client.images(filters={"label": [label]}))
        labels: dict[str, Mapping[str, str]] = {}
        for image in images:
            names = [name for name in image.get("RepoTags") or () if not name.startswith("<none>")]
            labels |= dict.fromkeys(names or [str(image["Id"])], image.get("Labels") or {})
        return labels

    def digest(self, reference: str, credentials: Credentials | None) -> str:
        """Return the digest that the registry has for a name now, asked by the node's engine."""
        with self._finding(reference):
            answer = self._engine.ask(
                lambda client: client.inspect_distribution(reference, _auth(credentials)),
                within_s=self._engine.patience.registry_s,
            )
        return str(answer["Descriptor"]["digest"])

    def pull(self, reference: str, say: Say, credentials: Credentials | None) -> HeldImage:
        """Pull an image, again after errors that may pass (``retries.PULL``)."""
        repository, tag = docker.utils.parse_repository_tag(reference)
        params = {"fromImage": repository, "tag": tag or "latest"}
        again = replace(PULL, pause_s=self._engine.patience.pause_s)
        again.call(lambda: self._carry("/images/create", params, credentials, say))
        image = self.find(reference)
        if image is None:
            cause = f"{reference}: the pull succeeded, but the engine has no such image"
            raise _causes.missing_image(cause, self._engine.node)
        return image

    def tag(self, image: str, name: str) -> None:
        """Give an image one more name."""
        repository, tag = docker.utils.parse_repository_tag(name)
        with self._finding(image):
            self._engine.ask(lambda client: client.tag(image, repository, tag))

    def push(self, reference: str, say: Say, credentials: Credentials | None) -> None:
        """Push an image to the registry that its name says."""
        repository, tag = docker.utils.parse_repository_tag(reference)
        params = {"tag": tag or "latest"}
        self._carry(f"/images/{repository}/push", params, credentials, say)

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
        failed = ""
        params = {"t": tag, "rm": True, "forcerm": True, "networkmode": "host"}
        params |= {"buildargs": json.dumps(dict(args)), "labels": json.dumps(dict(labels))}
        request = {"params": params, "headers": {"Content-Type": "application/tar"}}
        wait_s = self._engine.patience.work_s
        with self._words("/build", wait_s, data=iter(context), **request) as words:
            for word in words:
                for line in str(word.get("stream", "")).splitlines():
                    if line.strip():
                        lines.append(line)
                        say(line)
                if failed := _error(word):
                    break
        image = None if failed else self.find(tag)
        if image is None:
            last = "\n".join(lines[-LAST_LINES:])
            cause = failed or "the build ended without an image"
            raise errors.ImageError(
                f"{tag}: {cause}; the last lines of its build:\n{last}\n",
                code="IMAGE-BUILD",
                node=self._engine.node,
            )
        return image.id

    def save(self, reference: str) -> Iterator[bytes]:
        """Yield the image, in pieces of the tar that ``load`` takes."""
        wait_s = self._engine.patience.work_s
        with self._finding(reference), self._engine.asking() as client:
            url = client._url("/images/{0}/get", reference)
            with closing(client._get(url, stream=True, timeout=wait_s)) as answer:
                client._raise_for_status(answer)
                yield from answer.iter_content(PIECE_BYTES)

    def load(self, pieces: Iterable[bytes]) -> None:
        """Take in the tar of an image."""
        request = {"params": {"quiet": True}, "data": iter(pieces)}
        with self._words("/images/load", self._engine.patience.work_s, **request) as words:
            for word in words:
                self._heed(word)

    def remove(self, reference: str) -> bool:
        """Remove an image by one of its names; False if there was none."""
        within_s = self._engine.patience.untag_s
        removed = self._engine.ask_of(
            lambda client: client.remove_image(reference), within_s=within_s
        )
        return removed is not None

    def _carry(
        self, path: str, params: Mapping[str, str], credentials: Credentials | None, say: Say
    ) -> None:
        """Have an image pulled or pushed; given up once no byte has come for ``stall_s``."""
        wait_s = self._engine.patience.stall_s
        stalled = errors.ImageError(
            f"no byte of the image came for {wait_s:g} s",
            code="REG-STALL",
            node=self._engine.node,
            fix="check the registry's log, or use another mirror",
        )
        # A push needs this header even where nobody logs in.
        headers = {"X-Registry-Auth": docker.auth.encode_header(_auth(credentials) or {})}
        last: dict[str, tuple[str, int]] = {}
        moved_at = time.monotonic()  # when any layer last made progress
        try:
            with self._words(path, wait_s, params=params, headers=headers) as words:
                for word in words:
                    self._heed(word)
                    layer, status = str(word.get("id", "")), str(word.get("status", ""))
                    current = int((word.get("progressDetail") or {}).get("current", 0))
                    # Counting down to its next try, the engine talks and nothing comes.
                    if not status.startswith("Retrying") and last.get(layer) != (status, current):
                        last[layer], moved_at = (status, current), time.monotonic()
                        say(f"{layer} {status} " + (f"{current >> 20} MiB" if current else ""))
                    elif time.monotonic() - moved_at > wait_s:
                        raise stalled
        except docker.errors.NotFound as error:
            cause = str(error.explanation)
            raise _causes.refusal(cause, self._engine.node, "IMAGE-MISSING") from error
        except errors.UnfitError as error:
            if error.code != "DOCKER-HUNG":
                raise
            self._engine.check()  # else it is not the registry that is silent
            raise stalled from error

    # The SDK's own pull, load and get take no time-out, and keep their connection when they fail.
    @contextmanager
    def _words(
        self, path: str, wait_s: float, **request: Any
    ) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Yield the JSON lines that the engine sends while it works; each may take ``wait_s``.

        It may take ``stall_s`` for each piece that it is sent.
        """
        stall_s = self._engine.patience.stall_s
        with self._engine.asking(stall_s) as client:
            url = f"{client.base_url}/v{client.api_version}{path}"
            limits = stall_s, wait_s
            with closing(client._post(url, stream=True, timeout=limits, **request)) as answer:
                client._raise_for_status(answer)
                yield client._stream_helper(answer, decode=True)

    @contextmanager
    def _finding(self, reference: str) -> Iterator[None]:
        try:
            yield
        except docker.errors.NotFound as error:
            cause = f"{reference}: {error.explanation}"
            raise _causes.missing_image(cause, self._engine.node) from error

    def _heed(self, word: Mapping[str, Any]) -> None:
        if error := _error(word):
            raise _causes.refusal(error, self._engine.node, "IMAGE-PULL")


def _error(word: Mapping[str, Any]) -> str:
    """Return the error in a line of the engine's answer; `error` is deprecated since API 1.48."""
    detail = word.get("errorDetail") or {}
    return str(detail.get("message") or word.get("error") or "")


def _auth(credentials: Credentials | None) -> dict[str, str] | None:
    if credentials is None:
        return None
    return {"username": credentials.user, "password": credentials.secret}
