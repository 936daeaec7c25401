"""An image from the node that has it to those that lack it.

By a registry, through a folder that all nodes see, or node to node.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orchestrator import errors
from orchestrator.fleet import MOST_AT_ONCE, Answer, ask_all, settled
from orchestrator.provisioning.materials import Preparing

if TYPE_CHECKING:
    from orchestrator.runtimes.images import ImageFacts

PIECES_AHEAD = 16
LOOK_S = 1.0


def carry(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Bring the image to every target.

    Raises:
        ImageError, NodeError: some nodes may have it already.
    """
    registry = preparing.fleet.cluster.registry
    if registry is not None and registry.push is not None:
        _through_registry(preparing, registry.push, tag, source, targets)
    elif preparing.fleet.cluster.slurm is not None:
        _through_folder(preparing, tag, source, targets)
    else:
        # One whose turn has not come would hold up all others.
        turns = (targets[at : at + MOST_AT_ONCE] for at in range(0, len(targets), MOST_AT_ONCE))
        answers = [_node_to_node(preparing, tag, source, turn) for turn in turns]
        settled([answer for turn in answers for answer in turn])


def _through_registry(
    preparing: Preparing, host: str, tag: str, source: str, targets: Sequence[str]
) -> None:
    images, name = preparing.fleet.images, f"{host}/{tag}"
    images[source].tag(tag, name)
    preparing.voice.line(f"{source}: push {name}")
    images[source].push(name, _quiet, preparing.credentials)
    pinned = _pushed(images[source].find(name), name)

    def pull(node: str) -> None:
        images[node].pull(pinned, _quiet, preparing.credentials)
        images[node].tag(pinned, tag)

    preparing.voice.line(f"{', '.join(targets)}: pull {pinned}")
    settled(ask_all(targets, pull))


def _through_folder(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """A file that every node sees: what flows through a step of Slurm's flows slowly."""
    images = preparing.fleet.images
    preparing.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = preparing.folder / f"{tag.replace('/', '-')}.tar"
    preparing.voice.line(f"{tag}: from {source} through {path} to {', '.join(targets)}")
    try:
        images[source].save_file(tag, str(path))
        settled(ask_all(targets, lambda node: images[node].load_file(str(path))))
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _pushed(image: "ImageFacts | None", name: str) -> str:
    """The reference by digest that a push has given to an image."""
    repository = name.rpartition(":")[0]
    digests = image.repo_digests if image else ()
    for reference in digests:
        if reference.partition("@")[0] == repository:
            return reference
    raise errors.ImageError(f"the push of {name} gave it no digest", code="REG-DIGEST")


def _node_to_node(
    preparing: Preparing, tag: str, source: str, targets: Sequence[str]
) -> "list[Answer[None]]":
    """One reading of the image feeds all writers: every byte passes this machine once inwards.

    Nodes cannot log in to each other, since no key of ours ever lies on one; so all bytes go
    through here, and a tree of nodes would only send them through here more often.
    """
    images, engines = preparing.fleet.images, preparing.fleet.engines
    preparing.voice.line(f"{tag}: from {source} to {', '.join(targets)}")
    reading = _Reading(source, images[source].save(tag), engines[source].patience.stall_s)
    pipes = {node: _Pipe(reading) for node in targets}
    threading.Thread(target=_feed, args=(reading, tuple(pipes.values())), daemon=True).start()

    def load(node: str) -> None:
        try:
            images[node].load(pipes[node].pieces())
        except errors.UnfitError as error:
            if error.code != "DOCKER-HUNG" or not pipes[node].flows:
                raise
            raise _stalled(node, "took", engines[node].patience.stall_s) from error
        finally:
            pipes[node].gone = True

    return ask_all(targets, load)


class _Reading:
    """The image's bytes as read from its node, and since when the next piece is waited for."""

    def __init__(self, node: str, pieces: Iterator[bytes], stall_s: float) -> None:
        self._node, self._pieces, self._stall_s = node, pieces, stall_s
        self._requested_at: float | None = None

    def pieces(self) -> Iterator[bytes]:
        """Each piece; the time that targets take to accept one is not counted as a stall."""
        for piece in self._pieces:
            self._requested_at = None
            yield piece
            self._requested_at = time.monotonic()

    def check(self) -> None:
        """Check that pieces keep coming. The first may take any time: Docker packs all before it.

        Raises:
            ImageError: CARRY-STALL; the node with the image gave nothing within its stall limit.
        """
        requested_at = self._requested_at
        if requested_at is not None and time.monotonic() - requested_at > self._stall_s:
            raise _stalled(self._node, "gave", self._stall_s)


class _Pipe:
    """Pieces on their way to one node; at most 16 lie in memory."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._queue: queue.Queue[bytes | errors.DlperfError] = queue.Queue(PIECES_AHEAD)
        self.flows = False
        self.gone = False

    def put(self, piece: "bytes | errors.DlperfError") -> None:
        """Hand on a piece, unless the node has ended its part."""
        while not self.gone:
            try:
                return self._queue.put(piece, timeout=LOOK_S)
            except queue.Full:
                continue

    def pieces(self) -> Iterator[bytes]:
        """Each piece; ``flows`` while the node is given some."""
        while piece := self._next():
            self.flows = True
            yield piece
        self.flows = False

    def _next(self) -> bytes:
        while True:
            try:
                piece = self._queue.get(timeout=LOOK_S)
            except queue.Empty:
                self._reading.check()
                continue
            if isinstance(piece, errors.DlperfError):
                self.flows = False
                raise piece
            return piece


def _feed(reading: _Reading, pipes: Sequence[_Pipe]) -> None:
    last: bytes | errors.DlperfError = b""
    try:
        for piece in reading.pieces():
            for pipe in pipes:
                pipe.put(piece)
    except errors.DlperfError as error:
        last = error
    except Exception as error:  # noqa: BLE001 - else those that read would wait for nothing
        last = errors.ImageError(f"the image could not be read: {error}", code="CARRY")
    for pipe in pipes:
        pipe.put(last)


def _stalled(node: str, verb: str, stall_s: float) -> errors.ImageError:
    return errors.ImageError(
        f"its Docker {verb} no byte of the image for {stall_s:g} s",
        code="CARRY-STALL",
        node=node,
        fix="look at Docker (journalctl -u docker) and the disk there, and provision again",
    )


def _quiet(_: int, __: int) -> None:
    """Progress of work that runs on many nodes at once is not shown."""
