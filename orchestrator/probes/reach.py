"""Whether nodes reach each other on a port: a listener, a connector, and what they answered.

A listener hands out a word that only it knows, so that whatever else may answer at an address is
not taken for it. Nodes may have no Python: any of several programs does.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

from orchestrator.deadlines import CALL_S, CALLED_S, LISTEN_S
from orchestrator.words import printable

_LISTEN_PERL = r"""
use IO::Socket::IP; use IO::Select; $| = 1;
my ($port, $word) = @ARGV;
my %with = (LocalPort => $port, Listen => 64, ReuseAddr => 1, Type => SOCK_STREAM);
my $server = IO::Socket::IP->new(LocalHost => "::", V6Only => 0, %with)
    || IO::Socket::IP->new(LocalHost => "0.0.0.0", %with)
    or do { print "problem $!\n"; exit 0 };
print "listening\n";
my $select = IO::Select->new($server, \*STDIN);
while (1) {
    for my $ready ($select->can_read) {
        if ($ready == $server) {
            my $caller = $server->accept or next;
            print $caller "$word\n";
            close $caller;
        } else {
            exit 0 if sysread(STDIN, my $ignored, 1) < 1;
        }
    }
}
"""
_LISTEN_PYTHON = r"""
import select, socket, sys
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
            caller = server.accept()[0]
            caller.sendall(word.encode() + b"\n")
            caller.close()
        elif not sys.stdin.buffer.raw.read(1):
            sys.exit(0)
"""
_LISTENER = r"""
if perl -MIO::Socket::IP -e 1 2>/dev/null; then exec timeout "$3" perl -e "$4" "$1" "$2"; fi
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
    """What came of listening or connecting; ``said`` is the node's word for a failure."""

    state: Literal["open", "busy", "blocked", "unproven"]
    said: str = ""


def listening_s(peers: int, *, at_once: int) -> int:
    """How long a listener must last: each caller calls its peers one by one, some only later.

    Args:
        at_once: callers of which each has a turn at a time.
    """
    turns = peers // at_once + 1
    return math.ceil(LISTEN_S + turns * peers * CALLED_S)


def listener(port: int, word: str, *, seconds: int) -> tuple[str, ...]:
    """The command that listens on every address, says so, and ends with its input or in time.

    Args:
        word: what callers are told; letters and digits.
    """
    given = (str(port), word, str(seconds), _LISTEN_PERL, _LISTEN_PYTHON)
    return ("sh", "-c", _LISTENER, "sh", *given)


def connector(address: str, port: int) -> tuple[str, ...]:
    """The command that calls a listener and prints what it is told."""
    given = (address, str(port), f"{CALL_S:g}", _CONNECT_BASH, _CONNECT_PERL, _CONNECT_PYTHON)
    return ("sh", "-c", _CONNECTOR, "sh", *given)


def listening(line: str) -> Heard:
    """What the first line of a listener means; an empty one is none."""
    said = line.strip()
    if said == "listening":
        return Heard("open")
    if said == "no-tool":
        return Heard("unproven", "neither perl nor python3")
    if re.search("address already in use", said, re.I):
        return Heard("busy", "the port is in use")
    return Heard("unproven", printable(said.removeprefix("problem ")) or "no answer")


def connected(exit_code: int, out: str, err: str, *, word: str) -> Heard:
    """What a connector's end means."""
    if out.strip() == word:
        return Heard("open")
    if out.strip() == "no-tool":
        return Heard("unproven", "none of bash, perl and python3")
    if exit_code == 124:
        return Heard("blocked", f"no answer in {CALL_S:g} s")
    if out.strip():
        return Heard("blocked", "something else answers there")
    lines = err.strip().splitlines()
    return Heard("blocked", printable(lines[-1]) if lines else f"exit status {exit_code}")
