"""What a node runs while an image passes from node to node.

It takes the image from the node before it, or packs its own, and hands it on to the next node while
Docker loads it. The text of this file goes to the node, whose own python3, 3.6 or later, runs it.
Its argument is the port to listen at, 0 where the image is; a line of JSON on its input says the
rest, and the end of its input ends it. It prints ``ready``; ``next`` and the place of whom it
reached, or -1; ``at`` and the bytes that came, as a sign of life; at last ``end``, whether the next
node was given all, and what Docker printed.
"""

import collections
import contextlib
import hmac
import json
import os
import select
import socket
import subprocess
import sys
import time
from typing import Any

PIECE_BYTES = 1 << 20
AHEAD_BYTES = 16 << 20
MOST_PRINTED = 4096
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


class Taker:
    """Who is given all pieces: Docker on this node, or the next node.

    Args:
        limit_s: without taking a byte of those that wait, until it is given up.
    """

    def __init__(self, file: Any, limit_s: float) -> None:
        os.set_blocking(file.fileno(), False)
        self.file, self.waiting = file, 0
        self._limit_s, self._took_at = limit_s, time.monotonic()
        self._pieces = collections.deque()  # type: collections.deque[memoryview]

    def fileno(self) -> int:
        """For ``select``."""
        return int(self.file.fileno())

    def put(self, piece: bytes) -> None:
        """Have a piece wait."""
        if not self.waiting:
            self._took_at = time.monotonic()
        if piece:
            self._pieces.append(memoryview(piece))
            self.waiting += len(piece)

    def give(self) -> bool:
        """Give what it takes now; False for one that takes no more."""
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

    def stalls(self) -> bool:
        """Whether it has taken nothing for too long."""
        return self.waiting > 0 and time.monotonic() - self._took_at > self._limit_s


def listening(port: int) -> socket.socket:
    """A server at every address of this node.

    Raises:
        OSError: why not.
    """
    try:
        server = socket.socket(socket.AF_INET6)
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        address = "::"
    except OSError:
        server, address = socket.socket(socket.AF_INET), ""
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen(8)
    return server


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


def flow(
    controller: Controller, source: Any, takers: "list[Taker]", limits_s: "tuple[float, float]"
) -> "list[Taker]":
    """Give all takers what comes from the source until its end; those that took everything.

    Args:
        limits_s: until the first piece comes, and until each further one.
    """
    left, whole, ended = list(takers), [], False
    limit_s, came_at = limits_s[0], time.monotonic()
    while left:
        reads = not ended and max(taker.waiting for taker in left) < AHEAD_BYTES
        waiting = [taker for taker in left if taker.waiting]
        ready = controller.ready([source] if reads else [], waiting)
        if source in ready:
            piece = received(source)
            ended, limit_s = not piece, limits_s[1]
            controller.came += len(piece)
            for taker in left:
                taker.put(piece)
        if source in ready or not reads:
            came_at = time.monotonic()
        elif time.monotonic() - came_at > limit_s:
            break
        left = [taker for taker in left if taker not in ready or taker.give()]
        whole += [taker for taker in left if ended and not taker.waiting]
        left = [taker for taker in left if taker not in whole and not taker.stalls()]
        for taker in set(takers) - set(left):
            taker.file.close()
    for taker in left:
        taker.file.close()
    return whole


def received(source: Any) -> bytes:
    """The next bytes; none at the end, however it came."""
    try:
        return os.read(source.fileno(), PIECE_BYTES)
    except OSError:
        return b""


def printed(controller: Controller, load: Any, limit_s: float) -> str:
    """What Docker prints until its end."""
    text, until = b"", time.monotonic() + limit_s
    while time.monotonic() < until and len(text) < MOST_PRINTED:
        if load.stdout in controller.ready([load.stdout], []):
            piece = os.read(load.stdout.fileno(), MOST_PRINTED)
            if not piece:
                break
            text += piece
    return " | ".join(text.decode(errors="replace").splitlines())


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


def carry(controller: Controller, source: Any, peer: Any, told: Any) -> None:
    """Have Docker load what comes from the source, or pack what there is without one."""
    feed = subprocess.PIPE if source else subprocess.DEVNULL
    docker = subprocess.Popen(
        told["argv"], bufsize=0, stdin=feed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    # The next node gives up its own Docker before it is given up itself.
    onward = [Taker(peer, 2 * told["stall_s"])] if peer else []
    try:
        if source:
            load = Taker(docker.stdin, told["stall_s"])
            whole = flow(controller, source, [load, *onward], (NEVER_S, NEVER_S))
            text = printed(controller, docker, told["work_s"]) if load in whole else ""
        else:
            whole = flow(controller, docker.stdout, onward, (told["work_s"], told["stall_s"]))
            text = ""
        controller.say("end", "cut" if set(onward) - set(whole) else "handed", text)
    finally:
        if docker.poll() is None:
            with contextlib.suppress(OSError):  # one under sudo is another user's
                docker.kill()


if __name__ == "__main__":
    main()
