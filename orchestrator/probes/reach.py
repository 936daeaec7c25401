"""Probe for connections between nodes on a port: a listener, a connector, their results.

The listener sends a random token, so that no other server at the address is taken for it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.deadlines import CALL_S, CALLED_S, LISTEN_S
from orchestrator.probes.sections import Output
from orchestrator.words import printable

EVERY_PAIR = 16  # of more nodes each calls a few others
# Runs on Python 3.5 too, that of Ubuntu 16.04.
_LISTEN = r"""
import select, socket, sys
def listen(family, port):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.bind(("", port))
    server.listen(64)
    return server
port, word = int(sys.argv[1]), sys.argv[2].encode() + b"\n"
try:
    server = listen(socket.AF_INET6, port)
except OSError:
    try:
        server = listen(socket.AF_INET, port)
    except OSError as error:
        sys.exit(print("problem", error.strerror))
print("listening", flush=True)
while True:
    for ready in select.select([server, sys.stdin], [], [])[0]:
        if ready is server:
            try:
                with server.accept()[0] as caller:
                    caller.sendall(word)
            except OSError: # the caller is gone
                pass
        elif not sys.stdin.buffer.raw.read(1):
            sys.exit(0)
"""
_LISTENER = r"""
for python in python3 /usr/libexec/platform-python; do
    if "$python" -c '' 2>/dev/null; then exec timeout "$3" "$python" -c "$4" "$1" "$2"; fi
done
echo no-tool
"""
_CONNECT = 'exec 3<>"/dev/tcp/$1/$2" && IFS= read -r line <&3 && printf "%s\\n" "$line"'
_CONNECTOR = r"""
if bash -c '' 2>/dev/null; then exec timeout "$3" bash -c "$4" bash "$1" "$2"; fi
echo no-tool
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """Result of listening or connecting; ``reason`` is the node's message on failure."""

    state: Literal["open", "busy", "blocked", "unproven"]
    reason: str = ""


def peers(nodes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return whom each node calls: all others up to 16 nodes, else those 1, 2, 4, ... ahead."""
    count = len(nodes)
    steps: Sequence[int] = range(1, count)
    if count > EVERY_PAIR:
        steps = [1 << power for power in range((count - 1).bit_length())]
    return {
        node: tuple(nodes[(place + step) % count] for step in steps)
        for place, node in enumerate(nodes)
    }


def listening_s(nodes: int, calls: int, *, at_once: int) -> int:
    """Return the seconds that a listener must last if each node makes its calls in turn."""
    turns = (nodes - 1) // at_once + 1
    return math.ceil(LISTEN_S + turns * calls * CALLED_S)


def listener(port: int, token: str, *, seconds: int) -> tuple[str, ...]:
    """Return the command that sends the token to every caller until its input or time ends."""
    return ("sh", "-c", _LISTENER, "sh", str(port), token, str(seconds), _LISTEN)


def connector(address: str, port: int) -> tuple[str, ...]:
    """Return the command that connects to a listener and prints its token."""
    return ("sh", "-c", _CONNECTOR, "sh", address, str(port), f"{CALL_S:g}", _CONNECT)


def listening(line: str) -> Heard:
    """Return the result in a listener's first line, which is empty if it printed none."""
    answer = line.strip()
    if answer == "listening":
        return Heard("open")
    if answer == "no-tool":
        return Heard("unproven", "no python3")
    if re.search("address already in use", answer, re.I):
        return Heard("busy", "the port is in use")
    return Heard("unproven", printable(answer.removeprefix("problem ")) or "no answer")


def connected(said: Output, *, token: str) -> Heard:
    """Return the result of a connector to a listener with this token."""
    if said.out.strip() == token:
        return Heard("open")
    if said.out.strip() == "no-tool":
        return Heard("unproven", "no bash")
    if said.exit_code in (None, 124):
        return Heard("blocked", f"no answer in {CALL_S:g} s")
    if said.out.strip():
        return Heard("blocked", "something else answers there")
    lines = said.err.strip().splitlines()
    return Heard("blocked", printable(lines[-1]) if lines else f"exit status {said.exit_code}")
