"""One controller at a time on a node, whatever machine or state folder it works from."""

import contextlib
import getpass
import os
import socket
from collections.abc import Iterator, Mapping

from orchestrator import errors
from orchestrator.model.cluster import Cluster
from orchestrator.store import now
from orchestrator.transports import Stream, Transport
from orchestrator.verbs import _nodes

ANSWER_TIMEOUT_S = 10.0
LONGEST_ANSWER = 4096

# The lock is the process's: it ends with the connection, however that ends.
HOLD = """
umask 077
mkdir -p -- "$1" && exec 9>>"$1/lock" || exit 1
if ! flock -n 9; then printf 'taken '; cat "$1/lock"; exit 0; fi
printf '%s\\n' "$2" >"$1/lock"
echo held
cat >/dev/null
"""


@contextlib.contextmanager
def held(cluster: Cluster, transports: Mapping[str, Transport]) -> Iterator[None]:
    """Hold every node that is not this machine.

    Raises:
        StoreError: LOCKED, by whom and since when; nothing is held.
        NodeError: a node does not answer.
    """
    who = f"{getpass.getuser()} on {socket.gethostname()}, pid {os.getpid()}, since {now()}"
    folders = {node.name: node.folder for node in cluster.members if node.transport != "local"}

    def hold(name: str) -> Stream:
        return _hold(transports[name], folders[name], who)

    answers = _nodes.each(list(folders), hold)
    try:
        _nodes.settled(answers)
        yield
    finally:
        for answer in answers:
            if answer.value is not None:
                answer.value.close()


def _hold(transport: Transport, folder: str, who: str) -> Stream:
    stream = transport.open(("sh", "-c", HOLD, "sh", folder, who))
    stream.settimeout(ANSWER_TIMEOUT_S)
    said = b""
    with contextlib.suppress(TimeoutError):
        while not said.endswith(b"\n") and (piece := stream.recv(LONGEST_ANSWER)):
            said += piece
    words = said.decode(errors="replace").strip()
    if words == "held":
        return stream
    stream.close()
    if words.startswith("taken"):
        raise errors.StoreError(
            f"node {transport.node} is in use by {words.removeprefix('taken').strip() or '?'}",
            code="LOCKED",
            fix="wait for it, or end it where it runs",
            node=transport.node,
        )
    raise errors.UnfitError(
        f"cannot lock {folder}/lock on {transport.node}: {words or 'no answer'}",
        code="LOCK",
        node=transport.node,
        fix="see whether flock (util-linux) is there and the folder can be written",
    )
