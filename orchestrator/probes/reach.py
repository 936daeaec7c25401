"""Whether nodes reach each other on a port: a listener, a connector, and their results.

The listener sends a random token, so that no other server at the address is taken for it. Nodes
may have no Python: any of several programs will do.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.deadlines import CALL_S, CALLED_S, LISTEN_S
from orchestrator.words import printable

EVERY_PAIR = 16  # of more nodes each calls a few others
_LISTEN_PERL = r"""
use Socket qw(:DEFAULT IN6ADDR_ANY IPPROTO_IPV6 IPV6_V6ONLY); $| = 1; $SIG{PIPE} = 'IGNORE';
my ($port, $word) = @ARGV;
sub server {
    my ($family, $address) = @_;
    socket(my $made, $family, SOCK_STREAM, 0) or return;
    setsockopt($made, SOL_SOCKET, SO_REUSEADDR, 1);
    setsockopt($made, IPPROTO_IPV6, IPV6_V6ONLY, 0) if $family == AF_INET6;
    return bind($made, $address) && listen($made, 64) && $made;
}
my $server = server(AF_INET6, pack_sockaddr_in6($port, IN6ADDR_ANY))
    || server(AF_INET, pack_sockaddr_in($port, INADDR_ANY))
    or do { print "problem $!\n"; exit 0 };
print "listening\n";
my $both = "";
vec($both, fileno($_), 1) = 1 for $server, \*STDIN;
while (select(my $ready = $both, undef, undef, undef)) {
    if (vec($ready, fileno($server), 1) && accept(my $caller, $server)) {
        syswrite($caller, "$word\n");
        close $caller;
    }
    exit 0 if vec($ready, fileno(STDIN), 1) && sysread(STDIN, my $ignored, 1) < 1;
}
"""
_LISTEN_PYTHON = r"""
import contextlib, select, socket, sys
port, word = int(sys.argv[1]), sys.argv[2]
try:
    server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
except (OSError, ValueError):
    try:
        server = socket.create_server(("", port))
    except OSError as error:
        sys.exit(print("problem", error.strerror))
print("listening", flush=True)
while True:
    for ready in select.select([server, sys.stdin], [], [])[0]:
        if ready is server:
            with server.accept()[0] as caller, contextlib.suppress(OSError):
                caller.sendall(word.encode() + b"\n")
        elif not sys.stdin.buffer.raw.read(1):
            sys.exit(0)
"""
_LISTENER = r"""
timeout "$3" perl -e "$4" "$1" "$2" 2>/dev/null
case $? in 2 | 127 | 255) ;; *) exit ;; esac # no such module, or an old one; or no perl
if python3 -c '' 2>/dev/null; then exec timeout "$3" python3 -c "$5" "$1" "$2"; fi
echo no-tool
"""
_CONNECT_BASH = 'exec 3<>"/dev/tcp/$1/$2" && IFS= read -r line <&3 && printf "%s\\n" "$line"'
_CONNECT_PERL = r"""
use IO::Socket::IP;
my $peer = IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => $ARGV[1], Type => SOCK_STREAM)
    or die "$@\n";
print scalar <$peer>;
"""
_CONNECT_PYTHON = r"""
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as peer:
        print(peer.makefile().readline(), end="")
except OSError as error:
    sys.exit(str(error))
"""
_CONNECTOR = r"""
if bash -c '' 2>/dev/null; then exec timeout "$3" bash -c "$4" bash "$1" "$2"; fi
if perl -MIO::Socket::IP -e 1 2>/dev/null; then exec timeout "$3" perl -e "$5" "$1" "$2"; fi
if python3 -c '' 2>/dev/null; then exec timeout "$3" python3 -c "$6" "$1" "$2"; fi
echo no-tool
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """Result of listening or connecting; ``reason`` is the node's message on failure."""

    state: Literal["open", "busy", "blocked", "unproven"]
    reason: str = ""


def peers(nodes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return whom each node calls: all others up to 16 nodes, else those 1, 2, 4, ... ahead.

    So each node calls, and is called, a number of times that grows with the logarithm only; and a
    node that cannot be called, or cannot call, is seen by any one of these.
    """
    count = len(nodes)
    steps: Sequence[int] = range(1, count)
    if count > EVERY_PAIR:
        steps = [1 << power for power in range((count - 1).bit_length())]
    return {
        node: tuple(nodes[(place + step) % count] for step in steps)
        for place, node in enumerate(nodes)
    }


def listening_s(nodes: int, calls: int, *, at_once: int) -> int:
    """Seconds that a listener must last, were a node's calls made one after another.

    Args:
        calls: of each node.
        at_once: how many nodes connect at the same time.
    """
    turns = (nodes - 1) // at_once + 1
    return math.ceil(LISTEN_S + turns * calls * CALLED_S)


def listener(port: int, token: str, *, seconds: int) -> tuple[str, ...]:
    """The command that listens on every address, says so, and ends with its input or in time.

    Args:
        token: what the listener sends to every caller; letters and digits.
    """
    arguments = (str(port), token, str(seconds), _LISTEN_PERL, _LISTEN_PYTHON)
    return ("sh", "-c", _LISTENER, "sh", *arguments)


def connector(address: str, port: int) -> tuple[str, ...]:
    """The command that connects to a listener and prints the token that it sends."""
    arguments = (address, str(port), f"{CALL_S:g}", _CONNECT_BASH, _CONNECT_PERL, _CONNECT_PYTHON)
    return ("sh", "-c", _CONNECTOR, "sh", *arguments)


def listening(line: str) -> Heard:
    """The result in a listener's first line; empty if it printed none."""
    answer = line.strip()
    if answer == "listening":
        return Heard("open")
    if answer == "no-tool":
        return Heard("unproven", "neither perl nor python3")
    if re.search("address already in use", answer, re.I):
        return Heard("busy", "the port is in use")
    return Heard("unproven", printable(answer.removeprefix("problem ")) or "no answer")


def connected(exit_code: int | None, out: str, err: str, *, token: str) -> Heard:
    """The result of a connector.

    Args:
        exit_code: None if it did not end in time.
        token: what the listener was to send.
    """
    if out.strip() == token:
        return Heard("open")
    if out.strip() == "no-tool":
        return Heard("unproven", "none of bash, perl and python3")
    if exit_code in (None, 124):
        return Heard("blocked", f"no answer in {CALL_S:g} s")
    if out.strip():
        return Heard("blocked", "something else answers there")
    lines = err.strip().splitlines()
    return Heard("blocked", printable(lines[-1]) if lines else f"exit status {exit_code}")
