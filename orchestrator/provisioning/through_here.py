"""An image through this machine: from one node's engine to others', by the connections to them."""

import queue
import threading
import time
from collections.abc import Iterator, Sequence

from orchestrator import errors
from orchestrator.fleet import ask_all, settled
from orchestrator.provisioning.materials import Preparing

PIECES_AHEAD = 16
LOOK_S = 1.0


def feed(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Load the image on every target, all at once: one reading of it feeds all of them.

    Raises:
        ImageError, NodeError: some nodes may have it already.
    """
    images, engines = preparing.fleet.images, preparing.fleet.engines
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

    # One whose turn had yet to come would hold up all others.
    settled(ask_all(targets, load, at_once=len(targets)))


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
