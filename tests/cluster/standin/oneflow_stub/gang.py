"""The gang: one process a node finds its place by its own address, and forks a rank for each GPU.

Nobody is told a rank, as in OneFlow: a node's is the place of its address among those of all. The
first node is the hub of the nodes, and each node's first process that of its ranks.
"""

import atexit
import json
import math
import os
import signal
import socket
import struct
import sys
import time
import urllib.request
from collections import namedtuple

from . import nccl  # type: ignore[attr-defined]  # a copy of torch_stub's, in the image alone

SWITCH = "http://10.11.0.1:8000/switch.json"
ITERATION_S = 0.010
GPUS_OF_A_NODE = 8
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
Plan = namedtuple("Plan", "addresses gpus port")
_wanted = {}  # type: dict[str, object]


def switch() -> "dict[str, object]":
    """What a test asks of this run; usually nothing."""
    try:
        with urllib.request.urlopen(SWITCH, timeout=1) as answer:
            said = json.loads(str(answer.read(), "utf-8"))  # type: dict[str, object]
            return said
    except OSError:
        return {}


def fail(words: str) -> None:
    """End this process with words on standard error."""
    sys.stderr.write("stand-in: " + words + "\n")
    sys.stderr.flush()
    sys.exit(1)


def addresses(text: str, nodes: int) -> "list[str]":
    """The addresses of the nodes that take part; there may be more in the list."""
    found = text.split(",")[:nodes]
    if len(found) < nodes:
        fail(f"{text!r} has {len(found)} addresses; needed {nodes}")
    return found


class Gang:
    """This node's part of the gang; ``is_leader`` says whether it prints."""

    def __init__(self, plan: Plan) -> None:
        set_ones = [name for name in os.environ if name.lower() in PROXIES and os.environ[name]]
        if set_ones:
            fail(f"LoadServer {plan.addresses[0]} Failed at 1 times error_code 14: {set_ones} set")
        _wanted.update(switch())
        os.environ["STANDIN_SWITCH"] = json.dumps(_wanted)
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        devices = GPUS_OF_A_NODE if visible is None else len([w for w in visible.split(",") if w])
        if devices < plan.gpus:
            fail(f"CUDA error: {plan.gpus} GPUs of {devices}")
        self._plan = plan
        self.node_rank = _place(plan.addresses)
        self.world_size = plan.gpus * len(plan.addresses)
        first, several = self.node_rank * plan.gpus, self.world_size > 1
        self._ranks = [_forked(first + gpu, gpu, several=several) for gpu in range(plan.gpus)]
        self._links = []  # type: list[socket.socket]
        if self.node_rank:
            self._links = [self._join()]
        elif len(plan.addresses) > 1:
            self._meet()

    @property
    def is_leader(self) -> bool:
        """Whether this is the first node."""
        return self.node_rank == 0

    def step(self) -> None:
        """One iteration: every rank of every node was there, and the first node set the pace."""
        begin = time.time()
        for rank in self._ranks:
            rank.sendall(b"g")
        total = sum(_number(rank) for rank in self._ranks)
        if self.is_leader:
            total += sum(_number(link) for link in self._links)
            if total != self.world_size * (self.world_size - 1) // 2:
                fail(f"the ranks add up to {total} of {self.world_size} ranks")
            time.sleep(max(0.0, begin + self._pace_s() - time.time()))
            for link in self._links:
                link.sendall(b"r")
        else:
            self._links[0].sendall(struct.pack("!q", total))
            _exactly(self._links[0], 1)

    def leave(self) -> None:
        """Let all ranks of this node go."""
        for rank in self._ranks:
            rank.sendall(b"e")
        for _ in self._ranks:
            if os.wait()[1]:
                fail("a rank did not end well")

    def _pace_s(self) -> float:
        base = float(str(_wanted.get("iteration_s", ITERATION_S)))
        return base * (1 + 0.02 * math.log2(self.world_size))

    def _card(self) -> bytes:
        first = self.node_rank * self._plan.gpus
        ranks = list(range(first, first + self._plan.gpus))
        card = {"node_rank": self.node_rank, "host": socket.gethostname(), "ranks": ranks}
        return (json.dumps(card) + "\n").encode()

    def _meet(self) -> None:
        """Take every other node in, and let all go only if each rank is there exactly once."""
        cards = [json.loads(self._card().decode())]
        with socket.socket() as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((self._plan.addresses[0], self._plan.port))
            door.listen(64)
            door.settimeout(float(str(_wanted.get("join_s", 120))))
            while len(cards) < len(self._plan.addresses):
                try:
                    link = door.accept()[0]
                except socket.timeout:  # noqa: UP041 - its name in Python 3.6
                    fail(f"{len(cards)} of {len(self._plan.addresses)} nodes came: {cards}")
                link.settimeout(None)
                with link.makefile("r") as words:
                    cards.append(json.loads(words.readline()))
                self._links.append(link)
        ranks = sorted(rank for card in cards for rank in card["ranks"])
        hosts = {card["host"] for card in cards}
        if ranks != list(range(self.world_size)) or len(hosts) != len(cards):
            fail(f"each rank and node must be there once: {cards}")
        for link in self._links:
            link.sendall(b"r")

    def _join(self) -> socket.socket:
        """A link to the first node, once it let everyone go."""
        deadline = time.monotonic() + float(str(_wanted.get("join_s", 120)))
        while True:
            try:
                link = socket.create_connection((self._plan.addresses[0], self._plan.port), 5)
                break
            except OSError as err:
                if time.monotonic() > deadline:
                    fail(f"LoadServer {self._plan.addresses[0]} Failed error_code 14: {err}")
                time.sleep(0.02)
        link.settimeout(None)
        link.sendall(self._card())
        _exactly(link, 1)
        return link


def _place(known: "list[str]") -> int:
    """The place of an own address; a lone node needs none."""
    if len(known) == 1:
        return 0
    for place, address in enumerate(known):
        with socket.socket() as line:
            try:
                line.bind((address, 0))
            except OSError:
                continue
            return place
    fail(f"none of {known} is an address of {socket.gethostname()}")
    raise AssertionError


def _forked(rank: int, local_rank: int, *, several: bool) -> socket.socket:
    """A new process for a GPU, and the line to it; it dies with this one."""
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        theirs.close()
        atexit.register(_end, pid)
        return ours
    ours.close()
    try:
        if several:  # a lone GPU has nobody to talk to, and NCCL is never begun
            nccl.report(local_rank)
        _work(theirs, rank)
    finally:
        os._exit(1)
    raise AssertionError


def _work(line: socket.socket, rank: int) -> None:
    """A rank's life: in each iteration it gives its number, until it is told to end."""
    iteration = 0
    while True:
        word = line.recv(1)
        if word != b"g":
            os._exit(0 if word == b"e" else 1)
        iteration += 1
        here = {"rank": rank, "iteration": iteration}
        if _wanted.get("die") == here:
            os.kill(os.getpid(), signal.SIGKILL)
        while _wanted.get("hang") == here:
            time.sleep(3600)
        line.sendall(struct.pack("!q", rank))


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return


def _number(line: socket.socket) -> int:
    return int(struct.unpack("!q", _exactly(line, 8))[0])


def _exactly(line: socket.socket, size: int) -> bytes:
    """So many bytes; a peer that is gone ends this process."""
    found = b""
    while len(found) < size:
        try:
            piece = line.recv(size - len(found))
        except OSError:
            piece = b""
        if not piece:
            fail("a peer is lost")
        found += piece
    return found
