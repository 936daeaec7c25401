"""An image through this machine: from one node's engine to others', by the connections to them."""

import queue
import threading
from collections.abc import Iterator, Sequence

from orchestrator import errors
from orchestrator.fleet import ask_all, settled
from orchestrator.provisioning.materials import Preparing

PIECES_AHEAD = 16
LOOK_S = 1.0


def feed(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Load the image on every target, all at once: one reading of it feeds all of them.

    Raises:
        ImageError, UnfitError, NodeError: some nodes may have it already.
    """
    images = preparing.fleet.images
    pipes = {node: _Pipe() for node in targets}
    feeding = (source, images[source].save(tag), tuple(pipes.values()))
    threading.Thread(target=_feed, args=feeding, daemon=True).start()

    def load(node: str) -> None:
        try:
            images[node].load(pipes[node].pieces())
        finally:
            pipes[node].gone = True

    # One whose turn had yet to come would hold up all others.
    settled(ask_all(targets, load, at_once=len(targets)))


class _Pipe:
    """Pieces on their way to one node; at most 16 lie in memory."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | errors.DlperfError] = queue.Queue(PIECES_AHEAD)
        self.gone = False

    def put(self, piece: "bytes | errors.DlperfError") -> None:
        """Hand on a piece, unless the node has ended its part."""
        while not self.gone:
            try:
                return self._queue.put(piece, timeout=LOOK_S)
            except queue.Full:
                continue

    def pieces(self) -> Iterator[bytes]:
        """Each piece, up to the empty one.

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
