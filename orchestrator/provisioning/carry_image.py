"""An image from the node that has it to those that lack it.

Through a registry, a folder that all nodes see, or this machine.
"""

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence
from functools import partial

from orchestrator import errors, nodeset
from orchestrator.fleet import ask_all, settled
from orchestrator.provisioning.materials import Preparing

PIECES_AHEAD = 16  # in memory, for each node
LOOK_S = 1.0


def carry(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Bring the image to every target.

    Raises:
        ImageError, UnfitError, NodeError: some nodes may have it already.
    """
    registry, show = preparing.fleet.cluster.registry, preparing.voice.line
    if registry is not None and registry.push is not None:
        _through_registry(preparing, f"{registry.push}/{tag}", tag, source, targets)
    elif preparing.fleet.cluster.slurm is not None:
        # What flows through a step of Slurm's flows slowly.
        engines = preparing.fleet.engines
        preparing.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = preparing.folder / f"{tag.replace('/', '-')}.tar"
        show(f"{tag}: from {source} through {path} to {', '.join(targets)}")
        try:
            engines[source].command_line("save", "--output", str(path), tag)
            load = ("load", "--quiet", "--input", str(path))
            settled(ask_all(targets, lambda node: engines[node].command_line(*load)))
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    else:
        show(f"{tag}: from {source} through this machine to {nodeset.fold(targets)}")
        _through_here(preparing, tag, source, targets)


def _through_registry(
    preparing: Preparing, name: str, tag: str, source: str, targets: Sequence[str]
) -> None:
    images, credentials = preparing.fleet.images, preparing.credentials

    def ignore(received: int, total: int) -> None:
        """Show no progress of work that runs on many nodes at once."""

    images[source].tag(tag, name)
    preparing.voice.line(f"{source}: push {name}")
    images[source].push(name, ignore, credentials)
    pushed = images[source].find(name)
    for pinned in pushed.repo_digests if pushed else ():
        if pinned.partition("@")[0] == name.rpartition(":")[0]:
            break
    else:
        raise errors.ImageError(f"the push of {name} gave it no digest", code="REG-DIGEST")

    def pull(node: str) -> None:
        images[node].pull(pinned, ignore, credentials)
        images[node].tag(pinned, tag)

    preparing.voice.line(f"{', '.join(targets)}: pull {pinned}")
    settled(ask_all(targets, pull))


def _through_here(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Load the image on every target, all at once: one reading of it feeds all of them."""
    images = preparing.fleet.images
    pipes = {node: _Pipe() for node in targets}
    pieces = images[source].save(tag)
    feed = partial(_feed, source, pieces, tuple(pipes.values()))
    threading.Thread(target=feed, daemon=True).start()

    def load(node: str) -> None:
        try:
            images[node].load(pipes[node].pieces())
        finally:
            pipes[node].gone = True

    # A node whose turn had yet to come would hold up all others.
    settled(ask_all(targets, load, at_once=len(targets)))


class _Pipe:
    """Pieces on their way to one node; at most 16 lie in memory."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | errors.DlperfError] = queue.Queue(PIECES_AHEAD)
        self.gone = False

    def put(self, piece: "bytes | errors.DlperfError") -> None:
        """Hand on a piece, unless the node has ended its part."""
        while not self.gone:
            with contextlib.suppress(queue.Full):
                return self._queue.put(piece, timeout=LOOK_S)

    def pieces(self) -> Iterator[bytes]:
        """Yield each piece, up to the empty one.

        Raises:
            DlperfError: why the node that has the image gives no more.
        """
        while piece := self._queue.get():
            if isinstance(piece, errors.DlperfError):
                raise piece
            yield piece


def _feed(source: str, pieces: Iterator[bytes], pipes: Sequence[_Pipe]) -> None:
    last: bytes | errors.DlperfError = b""
    try:
        for piece in pieces:
            for pipe in pipes:
                pipe.put(piece)
    except errors.DlperfError as error:
        last = error
    except Exception as error:  # noqa: BLE001 - whatever ends this thread, readers must get an end
        words = f"the image could not be read: {error}"
        last = errors.ImageError(words, code="CARRY", node=source)
    for pipe in pipes:
        pipe.put(last)
