"""An image from the node that has it to those that lack it: by a registry, or node to node."""

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orchestrator import errors
from orchestrator.verbs import _nodes

if TYPE_CHECKING:
    from orchestrator.runtimes.images import ImageFacts
    from orchestrator.verbs._images import Preparing

PIECES_AHEAD = 16
STALL_S = 120.0


def carry(preparing: "Preparing", tag: str, source: str, targets: Sequence[str]) -> None:
    """Bring the image to every target.

    Raises:
        ImageError, NodeError: some nodes may have it already.
    """
    registry = preparing.fleet.cluster.registry
    if registry is not None and registry.push is not None:
        _through_registry(preparing, (registry.push, tag), source, targets)
    else:
        _node_to_node(preparing, tag, source, targets)


def _through_registry(
    preparing: "Preparing", what: tuple[str, str], source: str, targets: Sequence[str]
) -> None:
    host, tag = what
    images, name = preparing.fleet.images, f"{host}/{tag}"
    images[source].tag(tag, name)
    preparing.voice.line(f"{source}: push {name}")
    images[source].push(name, _quiet, preparing.credentials)
    pinned = _pushed(images[source].find(name), name)

    def pull(node: str) -> None:
        images[node].pull(pinned, _quiet, preparing.credentials)
        images[node].tag(pinned, tag)

    preparing.voice.line(f"{', '.join(targets)}: pull {pinned}")
    _nodes.settled(_nodes.each(targets, pull))


def _pushed(found: "ImageFacts | None", name: str) -> str:
    """The reference by digest that a push has given to an image."""
    repository = name.rpartition(":")[0]
    digests = found.repo_digests if found else ()
    for reference in digests:
        if reference.partition("@")[0] == repository:
            return reference
    raise errors.ImageError(f"the push of {name} gave it no digest", code="REG-DIGEST")


def _node_to_node(preparing: "Preparing", tag: str, source: str, targets: Sequence[str]) -> None:
    """One reading of the image feeds all writers: every byte passes this machine once inwards.

    Nodes cannot log in to each other, since no key of ours ever lies on one; so all bytes go
    through here, and a tree of nodes would only send them through here more often.
    """
    images = preparing.fleet.images
    preparing.voice.line(f"{tag}: from {source} to {', '.join(targets)}")
    pipes = {node: _Pipe() for node in targets}
    reader = threading.Thread(target=_feed, args=(images[source].save(tag), pipes), daemon=True)
    reader.start()

    def load(node: str) -> None:
        try:
            images[node].load(pipes[node].pieces())
        finally:
            pipes[node].gone = True

    _nodes.settled(_nodes.each(targets, load))


class _Pipe:
    """Pieces on their way to one node; at most 16 lie in memory."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | errors.DlperfError] = queue.Queue(PIECES_AHEAD)
        self.gone = False

    def put(self, piece: "bytes | errors.DlperfError") -> None:
        while not self.gone:
            try:
                return self._queue.put(piece, timeout=1.0)
            except queue.Full:
                continue

    def _next(self) -> "bytes | errors.DlperfError":
        try:
            return self._queue.get(timeout=STALL_S)
        except queue.Empty:
            raise errors.ImageError(
                f"no byte of the image came for {STALL_S:g} s",
                code="CARRY-STALL",
                fix="look at the node that has it, and provision again",
            ) from None

    def pieces(self) -> Iterator[bytes]:
        while piece := self._next():
            if isinstance(piece, errors.DlperfError):
                raise piece
            yield piece


def _feed(pieces: Iterator[bytes], pipes: "dict[str, _Pipe]") -> None:
    last: bytes | errors.DlperfError = b""
    try:
        for piece in pieces:
            for pipe in pipes.values():
                pipe.put(piece)
    except errors.DlperfError as error:
        last = error
    except Exception as error:  # noqa: BLE001 - else those that read would wait for nothing
        last = errors.ImageError(f"the image could not be read: {error}", code="CARRY")
    for pipe in pipes.values():
        pipe.put(last)


def _quiet(_: int, __: int) -> None:
    """Progress of work that runs on many nodes at once is not shown."""
