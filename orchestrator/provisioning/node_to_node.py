"""An image that passes along a chain of nodes: each is given it once, and hands it on as it comes.

Nodes cannot log in to each other, since no key of ours ever lies on one. A program that our SSH
session starts on each connects to the next one's. Random words and a key, told by SSH, used once,
prove to each of the two that the other is ours, and every byte; the image itself is not encrypted.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources

from orchestrator import deadlines, errors, nodeset
from orchestrator.deadlines import Patience
from orchestrator.fleet import Answer, Fleet, ask_all
from orchestrator.provisioning.between_nodes import PORT
from orchestrator.provisioning.materials import Preparing
from orchestrator.transports import Stream
from orchestrator.words import printable

LONGEST_LINE = 8192
START = """
python3 -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null || exec echo no-tool
exec timeout "$1" python3 -IS -c "$2" "$3"
"""


def pass_on(
    preparing: Preparing, tag: str, source: str, targets: Sequence[str]
) -> Mapping[str, str]:
    """Have the image pass from node to node; which targets lack it after that, and why.

    A chain may end behind a node that fails, so a new one serves the rest, as long as that helps;
    a single node is left, whose own Docker may be what failed.
    """
    here = {node.name for node in preparing.fleet.cluster.members if node.is_here}
    lacking = {node: "it is this machine" for node in targets if node in here}
    left = [node for node in targets if node not in here]
    while left:
        with _posts(preparing.fleet, source, left) as answers:
            why = _chained(preparing, tag, answers)
        lacking = {node: reason for node, reason in lacking.items() if node not in left} | why
        tried = [answer.node for answer in answers[1:] if answer.error is None]
        left = [node for node in tried if node in why]
        if len(left) in (1, len(tried)):
            break
    return lacking


def onward_s(stall_s: float, behind: int) -> float:
    """Seconds in which the next node takes nothing, until a node gives it up.

    Each gives up the next one later than that one gives up those behind it, and its own Docker.

    Args:
        behind: how many nodes there are behind the one that waits.
    """
    return 2 * stall_s + 2 * behind


class _Post:
    """The program on a node, and the words that callers must say and hear."""

    def __init__(self, node: str, stream: Stream, patience: Patience) -> None:
        self.node, self._stream, self._patience = node, stream, patience
        self.word, self.answer = secrets.token_hex(16), secrets.token_hex(16)
        self._rest = b""
        self.close = stream.close

    def tell(
        self, argv: Sequence[str], onward: Sequence[tuple[str, "_Post"]], key: str, *, behind: int
    ) -> None:
        """Say what to do; a program that has ended is found out when it is listened to.

        Args:
            key: of all that takes part.
            onward: by address, those of whom it hands on to the first that it reaches.
            behind: how many there are behind it in the chain.
        """
        told = {
            "argv": argv,
            "word": self.word,
            "answer": self.answer,
            "key": key,
            "next": [(address, PORT, post.word, post.answer) for address, post in onward],
            "called_s": deadlines.CARRY_CALLED_S,
            "call_s": deadlines.CALL_S,
            "beat_s": deadlines.CARRY_BEAT_S,
            "stall_s": self._patience.stall_s,
            "onward_s": onward_s(self._patience.stall_s, behind),
            "work_s": self._patience.work_s,
        }
        with suppress(OSError, errors.NodeError):
            self._stream.sendall(json.dumps(told).encode() + b"\n")

    def line(self, within_s: float) -> str:
        """What it prints; empty at its end, if the node is lost, or silent for too long."""
        self._stream.settimeout(within_s)
        while b"\n" not in self._rest:
            try:
                piece = self._stream.recv(LONGEST_LINE)
            except (OSError, errors.NodeError):
                piece = b""
            if not piece or len(self._rest) > LONGEST_LINE:
                return ""
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    def after(self, word: str, on_bytes: Callable[[int], None] | None = None) -> str:
        """The rest of the line that begins with a word; empty if none comes."""
        while line := self.line(deadlines.CARRY_SILENCE_S):
            first, _, rest = line.partition(" ")
            if first == word:
                return rest
            if on_bytes and first == "at" and rest.isdecimal():
                on_bytes(int(rest))
        return ""


@contextmanager
def _posts(fleet: Fleet, source: str, targets: Sequence[str]) -> Iterator[list[Answer[_Post]]]:
    """The program on every node, or why it is not there; its source first. At last none is left."""

    def begin(node: str) -> _Post:
        port = 0 if node == source else PORT
        words = ("sh", "-c", START, "sh", f"{deadlines.CARRY_S:g}", _program(), str(port))
        stream = fleet.transports[node].open(words)
        post = _Post(node, stream, fleet.engines[node].patience)
        line = post.line(deadlines.LISTEN_S)
        if line != "ready":
            post.close()
            raise errors.UnfitError(_trouble(line), code="CARRY")
        return post

    answers = ask_all([source, *targets], begin)
    try:
        yield answers
    finally:
        for answer in answers:
            if answer.value:
                answer.value.close()


@cache
def _program() -> str:
    return resources.files("orchestrator.runtimes").joinpath("hand_on.py").read_text()


def _trouble(line: str) -> str:
    if line == "no-tool":
        return "it has no python3 of 3.6 or later"
    reason = printable(line.removeprefix("problem ")) or "no answer"
    return f"it cannot listen on port {PORT}: {reason}"


def _chained(preparing: Preparing, tag: str, answers: Sequence[Answer[_Post]]) -> dict[str, str]:
    """Which nodes lack the image once all have done their part, and why."""
    images, source = preparing.fleet.images, answers[0].node
    image, why = images[source].find(tag), {a.node: a.error.cause for a in answers if a.error}
    if source in why or image is None:
        cause = f"{source}: {why.get(source, 'the image is not there')}"
        return {answer.node: cause for answer in answers[1:]}
    posts = [answer.value for answer in answers if answer.value]
    chain = _reached(preparing.fleet, tag, posts)
    for post in posts:
        if post not in chain:
            why[post.node] = f"no other node reaches it on port {PORT}"
            post.close()
    if nodes := [post.node for post in chain[1:]]:
        preparing.voice.line(f"{tag}: from {source} to {nodeset.fold(nodes)}, node to node")
    _ended(preparing, tag, chain)
    for found in ask_all(nodes, lambda node: images[node].find(tag)):
        if found.value is None:
            why[found.node] = "it did not arrive there"
        elif found.value.content != image.content:
            why[found.node] = f"{found.value.id[7:19]} is there, in place of {image.id[7:19]}"
    return why


def _reached(fleet: Fleet, tag: str, posts: Sequence[_Post]) -> list[_Post]:
    """The chain that forms: its source, then each node that the one before it reached."""
    address = {node.name: node.address for node in fleet.cluster.members}
    key = secrets.token_hex(32)
    for place, post in reversed(list(enumerate(posts))):  # the source calls when all others know
        words = ("load", "--quiet") if place else ("save", tag)
        onward = [(address[posts[at].node], posts[at]) for at in _onward(place, len(posts))]
        argv, behind = (*fleet.engines[post.node].command, *words), len(posts) - 1 - place
        post.tell(argv, onward, key, behind=behind)
    chain = [0]
    while choice := posts[chain[-1]].after("next"):
        onward_places = _onward(chain[-1], len(posts))
        if not choice.isdecimal() or int(choice) >= len(onward_places):
            break
        chain.append(onward_places[int(choice)])
    return [posts[place] for place in chain]


def _onward(place: int, count: int) -> list[int]:
    """Whom a node calls until one answers: those 1, 2, 4, 8, ... further on in the chain."""
    return [
        place + (1 << power) for power in range(count.bit_length()) if place + (1 << power) < count
    ]


def _ended(preparing: Preparing, tag: str, chain: Sequence[_Post]) -> None:
    """Wait until every node has done its part, or cannot."""
    source = chain[0].node

    def show(count: int) -> None:
        preparing.voice.working(f"{tag}: {count >> 20} MiB have left {source}")

    for place, post in enumerate(chain):
        if post.after("end", show if not place else None) != "handed":
            for behind in chain[place + 1 :]:  # they would wait for more
                behind.close()
            break
