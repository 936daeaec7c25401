"""What a node runs while an image passes from node to node.

It takes the image from the node before it, or packs its own, and hands it on to the next node while
Docker loads it. The text of this file goes to the node, whose own python3, 3.6 or later, runs it.
Its argument is the port to listen at, 0 where the image is; a line of JSON on its input says the
rest, and the end of its input ends it. It prints ``ready``; ``next`` and the place of whom it
reached, or -1; ``at`` and the bytes that came, as a sign of life; at last ``end``, and whether the
next node was given all.

The image travels in frames: the length of a piece, a MAC of its number and bytes, the piece; the
last is empty. The key is told by SSH, so nothing that somebody else sends comes to Docker.
"""

import collections
import contextlib
import hashlib
import hmac
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from typing import Any

PIECE_BYTES = 1 << 20
AHEAD_BYTES = 16 << 20
HEAD = struct.Struct(">I32s")
WORD_S = 2.0  # for a caller to say its word; others wait meanwhile
NEVER_S = float("inf")


class Controller:
    """Whoever started this program."""

    def __init__(self) -> None:
        self.came = 0
        self._said_at = time.monotonic()
        self._beat_s = NEVER_S

    def told(self) -> Any:
        """What to do; waits for it."""
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        told = json.loads(line)
        self._beat_s = told["beat_s"]
        return told

    def say(self, *words: object) -> None:
        """Print one line."""
        os.write(1, (" ".join(map(str, words)) + "\n").encode())
        self._said_at = time.monotonic()

    def ready(self, reading: "list[Any]", writing: "list[Any]") -> "list[Any]":
        """Who can be read or written now; none after a second. Exits where nobody listens."""
        readable, writable, _ = select.select([0, *reading], writing, [], 1.0)
        if 0 in readable and not os.read(0, 1):
            sys.exit(0)
        self.beat()
        return readable + writable

    def beat(self) -> None:
        """Give a sign of life, if it is time for one."""
        if time.monotonic() - self._said_at > self._beat_s:
            self.say("at", self.came)


class Packed:
    """The image as this node's Docker packs it, put into frames.

    Args:
        limits_s: without a byte, before the first and after it, until Docker is given up.
    """

    def __init__(self, file: Any, key: bytes, limits_s: "tuple[float, float]") -> None:
        self.fileno, self.limit_s = file.fileno, limits_s[0]
        self.ended = False
        self._key, self._number, self._more_s = key, 0, limits_s[1]

    def frames(self) -> "list[bytes]":
        """The next frame."""
        piece = received(self.fileno())
        self.ended, self.limit_s = not piece, self._more_s
        head = HEAD.pack(len(piece), mac(self._key, self._number, piece))
        self._number += 1
        return [head + piece]


class Passed:
    """The image as the node before passes it on."""

    limit_s = float("inf")  # whoever started this program looks after the node before

    def __init__(self, peer: Any, key: bytes) -> None:
        self.fileno = peer.fileno
        self.ended = False
        self._key, self._number, self._rest = key, 0, bytearray()

    def frames(self) -> "list[bytes]":
        """All frames that have come whole; the first that is not authentic ends it."""
        came, found = received(self.fileno()), []
        self.ended = not came
        self._rest += came
        while len(self._rest) >= HEAD.size and not self.ended:
            size, code = HEAD.unpack_from(self._rest)
            frame = bytes(self._rest[: HEAD.size + size])
            if size <= PIECE_BYTES and len(frame) < HEAD.size + size:
                break
            piece = frame[HEAD.size :]
            if not hmac.compare_digest(code, mac(self._key, self._number, piece)):
                self.ended = True
                break
            del self._rest[: len(frame)]
            self._number += 1
            self.ended = not size
            found.append(frame)
        return found


class Taker:
    """Who is given all pieces: Docker on this node, or the next node, which takes whole frames.

    Args:
        limit_s: without taking a byte of those that wait, until it is given up.
        skip: of each frame.
    """

    def __init__(self, file: Any, limit_s: float, skip: int = 0) -> None:
        os.set_blocking(file.fileno(), False)
        self.file, self.waiting = file, 0
        self._has_last = False
        self._skip, self._limit_s, self._took_at = skip, limit_s, time.monotonic()
        self._pieces = collections.deque()  # type: collections.deque[memoryview]

    def fileno(self) -> int:
        """For ``select``."""
        return int(self.file.fileno())

    @property
    def whole(self) -> bool:
        """Whether it has taken everything, the last frame too."""
        return self._has_last and not self.waiting

    def put(self, frame: bytes) -> None:
        """Have what it takes of a frame wait."""
        if not self.waiting:
            self._took_at = time.monotonic()
        if len(frame) > self._skip:
            self._pieces.append(memoryview(frame)[self._skip :])
            self.waiting += len(frame) - self._skip
        self._has_last = len(frame) == HEAD.size

    def goes_on(self, ready: "list[Any]", ended: bool) -> bool:
        """Give it what it takes now; False, and closed, once it takes no more or has all.

        Args:
            ended: whether no more is put.
        """
        stalls = self.waiting > 0 and time.monotonic() - self._took_at > self._limit_s
        if stalls or (self in ready and not self._takes()) or (ended and not self.waiting):
            self.file.close()
            return False
        return True

    def _takes(self) -> bool:
        try:
            took = os.write(self.fileno(), self._pieces[0])
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._took_at = time.monotonic()
        self.waiting -= took
        rest = self._pieces.popleft()[took:]
        if rest:
            self._pieces.appendleft(rest)
        return True


def listening(port: int) -> socket.socket:
    """A server at every address of this node.

    Raises:
        OSError: why not.
    """
    problem = OSError()
    for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "")):
        try:
            server = socket.socket(family)
            if family == socket.AF_INET6:
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((address, port))
            server.listen(8)
            return server
        except OSError as error:  # a kernel may have no IPv6
            problem = error
    raise problem


def called(controller: Controller, server: socket.socket, told: Any) -> Any:
    """The one caller that says the word in time, once it is answered; None if there is none."""
    until = time.monotonic() + told["called_s"]
    while time.monotonic() < until:
        if server in controller.ready([server], []):
            caller, _ = server.accept()
            with contextlib.suppress(OSError):
                if said(caller, told["word"], WORD_S):
                    caller.sendall(told["answer"].encode())
                    server.close()
                    return caller
            caller.close()
    return None


def reached(controller: Controller, told: Any) -> "tuple[int, Any]":
    """The first of the next nodes that is there and knows the word, by its place; or -1."""
    for place, (address, port, word, answer) in enumerate(told["next"]):
        controller.beat()
        with contextlib.suppress(OSError):
            peer = socket.create_connection((address, port), told["call_s"])
            with contextlib.suppress(OSError):
                peer.sendall(word.encode())
                if said(peer, answer, told["call_s"]):
                    return place, peer
            peer.close()
    return -1, None


def said(peer: socket.socket, word: str, limit_s: float) -> bool:
    """Whether a peer says this word, and says it in time."""
    heard, until = b"", time.monotonic() + limit_s
    while len(heard) < len(word) and time.monotonic() < until:
        peer.settimeout(max(until - time.monotonic(), 0.001))
        piece = peer.recv(len(word) - len(heard))
        if not piece:
            return False
        heard += piece
    peer.settimeout(None)
    return hmac.compare_digest(heard, word.encode())


def flow(controller: Controller, source: Any, takers: "list[Taker]") -> None:
    """Give all takers what comes from the source, until its end or until none is left."""
    left, came_at = list(takers), time.monotonic()
    while left:
        reads = not source.ended and max(taker.waiting for taker in left) < AHEAD_BYTES
        waiting = [taker for taker in left if taker.waiting]
        ready = controller.ready([source] if reads else [], waiting)
        if source in ready or not reads:
            came_at = time.monotonic()
        if source in ready:
            for frame in source.frames():
                controller.came += len(frame) - HEAD.size
                for taker in left:
                    taker.put(frame)
        source.ended = source.ended or time.monotonic() - came_at > source.limit_s
        left = [taker for taker in left if taker.goes_on(ready, source.ended)]


def received(fileno: int) -> bytes:
    """The next bytes; none at the end, however it came."""
    try:
        return os.read(fileno, PIECE_BYTES)
    except OSError:
        return b""


def mac(key: bytes, number: int, piece: bytes) -> bytes:
    """What proves that a piece has this place, and comes from who knows the key."""
    code = hmac.new(key, struct.pack(">Q", number), hashlib.sha256)
    code.update(piece)
    return code.digest()


def finished(controller: Controller, docker: Any, limit_s: float) -> None:
    """Wait until Docker has closed its output, at its end."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if docker.stdout in controller.ready([docker.stdout], []) and not received(
            docker.stdout.fileno()
        ):
            break


def main() -> None:
    """Take, load and hand on; or pack and hand on."""
    controller, port = Controller(), int(sys.argv[1])
    server = source = None
    if port:
        try:
            server = listening(port)
        except OSError as error:
            return controller.say("problem", error.strerror)
    controller.say("ready")
    told = controller.told()
    if server:
        source = called(controller, server, told)
        if source is None:
            return None
    place, peer = reached(controller, told)
    controller.say("next", place)
    if source or peer:
        carry(controller, source, peer, told)
    return None


def carry(controller: Controller, peer: Any, onward: Any, told: Any) -> None:
    """Have Docker load what comes from the peer before; without one, pack what there is."""
    docker = subprocess.Popen(
        told["argv"],
        bufsize=0,
        stdin=subprocess.PIPE if peer else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    key, stall_s, work_s = bytes.fromhex(told["key"]), told["stall_s"], told["work_s"]
    takers = [Taker(onward, told["onward_s"])] if onward else []
    try:
        if peer:
            load = Taker(docker.stdin, stall_s, HEAD.size)
            flow(controller, Passed(peer, key), [load, *takers])
            if load.whole:
                finished(controller, docker, work_s)
        else:
            flow(controller, Packed(docker.stdout, key, (work_s, stall_s)), takers)
        controller.say("end", "handed" if all(taker.whole for taker in takers) else "cut")
    finally:
        if docker.poll() is None:
            with contextlib.suppress(OSError):  # one under sudo is another user's
                docker.kill()


if __name__ == "__main__":
    main()
