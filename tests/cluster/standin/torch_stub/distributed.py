"""Stub of torch.distributed: ranks really meet at MASTER_ADDR:MASTER_PORT and wait for each other.

Rank 0 is the hub. When a peer is lost in a barrier the others wait for ever, as under NCCL.
"""

import json
import os
import socket
import sys
import time

from . import nccl

_SWITCH = json.loads(os.environ.get("STANDIN_SWITCH", "{}"))
_JOIN_S = float(_SWITCH.get("join_s", 120))
_links = []  # type: list[socket.socket]


def init_process_group(backend: str, init_method: str) -> None:
    """Meet the other ranks.

    Raises:
        RuntimeError: a rank or a node_rank is missing or there twice, or nobody answers.
    """
    if (backend, init_method) != ("nccl", "env://"):
        raise RuntimeError("the stub knows nccl and env://")
    nccl.report(_number("LOCAL_RANK"))
    if get_rank() == 0:
        _found()
    else:
        _links.append(_join())


def get_rank() -> int:
    """This process's place in the gang."""
    return _number("RANK")


def get_world_size() -> int:
    """How many processes the gang has."""
    return _number("WORLD_SIZE")


def barrier() -> None:
    """Wait until every rank is here."""
    hub = get_rank() == 0
    try:
        if not hub:
            _links[0].sendall(b".")
        for link in _links:
            if not link.recv(1):
                raise ConnectionResetError("a peer is gone")
        if hub:
            for link in _links:
                link.sendall(b".")
    except OSError as err:
        sys.stderr.write(f"stand-in: rank {get_rank()} waits for ever: {err}\n")
        sys.stderr.flush()
        while True:
            time.sleep(3600)


def _number(name: str) -> int:
    return int(os.environ[name])


def _tune(link: socket.socket) -> socket.socket:
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.settimeout(None)
    return link


def _card() -> "dict[str, object]":
    return {
        "rank": get_rank(),
        "node_rank": _number("NODE_RANK"),
        "host": socket.gethostname(),
    }


def _found() -> None:
    """Take every other rank in, and let all go only if each is there exactly once."""
    deadline = time.monotonic() + _JOIN_S
    cards = [_card()]
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Not on every address, as torch does: a rank 0 on another node fails here at once.
        door.bind((os.environ["MASTER_ADDR"], _number("MASTER_PORT")))
        door.listen(1024)
        while len(cards) < get_world_size():
            door.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                link = door.accept()[0]
            except socket.timeout as err:  # noqa: UP041 - its name in Python 3.6
                raise RuntimeError(_problem(cards)) from err
            with link.makefile("r") as words:
                cards.append(json.loads(words.readline()))
            _links.append(_tune(link))
            if cards[-1]["rank"] in [card["rank"] for card in cards[:-1]]:
                break
    if _problem(cards):
        raise RuntimeError(_problem(cards))
    for link in _links:
        link.sendall(b"g")


def _problem(cards: "list[dict[str, object]]") -> str:
    """What is wrong with the gang that met; empty when nothing is."""
    ranks = sorted(int(str(card["rank"])) for card in cards)
    if ranks != list(range(get_world_size())):
        return f"stand-in: ranks are {ranks} of {get_world_size()}; cards: {cards}"
    places = sorted({(int(str(card["node_rank"])), str(card["host"])) for card in cards})
    if [node_rank for node_rank, _ in places] != list(range(_number("NNODES"))):
        return f"stand-in: node_ranks are {places} of {_number('NNODES')} nodes"
    return ""


def _join() -> socket.socket:
    """A link to rank 0, once it let everyone go."""
    meeting_point = (os.environ["MASTER_ADDR"], _number("MASTER_PORT"))
    deadline = time.monotonic() + _JOIN_S
    while True:
        try:
            link = _tune(socket.create_connection(meeting_point, timeout=5))
            break
        except OSError as err:
            if time.monotonic() > deadline:
                raise RuntimeError(f"stand-in: no answer from {meeting_point}") from err
            time.sleep(0.02)
    link.sendall((json.dumps(_card()) + "\n").encode())
    if link.recv(1) != b"g":
        raise RuntimeError("stand-in: rank 0 did not let this gang go")
    return link
