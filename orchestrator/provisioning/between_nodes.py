"""Checks between nodes: whether they reach each other, and hold the same data sets."""

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator import checks, errors, words
from orchestrator.console import Voice
from orchestrator.deadlines import CALLED_S, DATA_COUNT_S, LISTEN_S
from orchestrator.fleet import MOST_AT_ONCE, Fleet, ask_all, settled
from orchestrator.inputs import probing
from orchestrator.model.site import DataDigest, Finding, Site
from orchestrator.probes import data, reach
from orchestrator.probes.reach import Heard
from orchestrator.transports import Stream

PORT = 22333  # where ranks of the shipped playbooks meet; later trials take others of its kind
LONGEST_LINE = 200
Pair = tuple[str, str]


def checked(fleet: Fleet, site: Site, voice: Voice, *, recount: bool) -> Site:
    """The site with data digests and with findings about connections and data sets.

    Args:
        recount: count the files of data sets anew, and use no count kept on nodes.

    Raises:
        NodeError: a node stopped answering.
    """
    findings: list[Finding] = []
    elsewhere = [node.name for node in fleet.cluster.members if not node.is_here]
    if len(elsewhere) > 1:
        findings += _reachable(fleet, elsewhere)
    digests, unreadable = _data(fleet, voice, fresh=recount)
    between = _judged(digests)
    if any(finding.severity == "error" for finding in between) and not recount:
        # The kept count may be from before the data set was repaired.
        digests, unreadable = _data(fleet, voice, fresh=True)
        between = _judged(digests)
    findings += [*between, *unreadable]
    return replace(
        site,
        data=digests,
        findings=(*site.findings, *findings),
        provisioned=(*site.provisioned, *findings),
    )


@dataclass(slots=True)
class _Listening:
    """A port that a node listens at, until its stream is closed."""

    heard: Heard
    token: str
    stream: Stream


def _reachable(fleet: Fleet, names: list[str]) -> list[Finding]:
    """Whether nodes reach each other where ranks will meet, by the calls of ``reach.peers``."""
    peers = reach.peers(names)
    calls_of_each = len(peers[names[0]])
    seconds = reach.listening_s(len(names), calls_of_each, at_once=MOST_AT_ONCE)
    answers = ask_all(names, lambda name: _listen(fleet, name, seconds))
    try:
        settled(answers)
        listening = {answer.node: answer.checked() for answer in answers}
        calls = _calls(fleet, listening, peers)
    finally:
        for answer in answers:
            if answer.value is not None:
                answer.value.stream.close()
    heard = {name: listener.heard for name, listener in listening.items()}
    return list(checks.reachable(PORT, heard, calls))


def _listen(fleet: Fleet, name: str, seconds: int) -> _Listening:
    token = secrets.token_hex(8)
    stream = fleet.transports[name].open(reach.listener(PORT, token, seconds=seconds))
    stream.settimeout(LISTEN_S)
    line = b""
    with contextlib.suppress(TimeoutError):
        while b"\n" not in line and (piece := stream.recv(LONGEST_LINE)):
            line += piece
    return _Listening(reach.listening(line.decode(errors="replace")), token, stream)


def _calls(
    fleet: Fleet, listening: Mapping[str, _Listening], peers: Mapping[str, Sequence[str]]
) -> dict[Pair, Heard]:
    addresses = {node.name: node.address for node in fleet.cluster.members}
    open_at = {name for name, listener in listening.items() if listener.heard.state == "open"}

    def call_all(caller: str) -> dict[str, Heard]:
        return {
            name: _call(fleet, caller, addresses[name], listening[name].token)
            for name in peers[caller]
            if name in open_at
        }

    answers = ask_all(list(listening), call_all)
    settled(answers)
    return {
        (answer.node, name): heard for answer in answers for name, heard in answer.checked().items()
    }


def _call(fleet: Fleet, caller: str, address: str, token: str) -> Heard:
    argv = reach.connector(address, PORT)
    done = fleet.transports[caller].run(argv, timeout_s=CALLED_S)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return reach.connected(done.exit_code, out, err, token=token)


def _data(
    fleet: Fleet, voice: Voice, *, fresh: bool
) -> tuple[dict[str, dict[str, DataDigest]], list[Finding]]:
    """By data set and node: what it holds; and findings for those that could not be read."""
    digests: dict[str, dict[str, DataDigest]] = {}
    unreadable: list[Finding] = []
    for name in dict.fromkeys(name for node in fleet.cluster.members for name in node.data):
        paths = {n.name: n.data[name] for n in fleet.cluster.members if name in n.data}
        voice.working(f"data set {name}: counting files on {words.count(len(paths), 'node')}")
        answers = ask_all(list(paths), _counting(fleet, paths, fresh=fresh))
        digests[name] = {answer.node: answer.value for answer in answers if answer.value}
        unreadable += [
            _unread(name, answer.node, answer.error) for answer in answers if answer.error
        ]
    voice.rested()
    return digests, unreadable


def _judged(digests: Mapping[str, Mapping[str, DataDigest]]) -> list[Finding]:
    return [digest for name, by_node in digests.items() for digest in checks.digests(name, by_node)]


def _counting(
    fleet: Fleet, paths: Mapping[str, str], *, fresh: bool
) -> Callable[[str], DataDigest]:
    folders = {node.name: node.folder for node in fleet.cluster.members}

    def count(name: str) -> DataDigest:
        question = data.probe(paths[name], folders[name], fresh=fresh)
        return probing.ask(fleet.transports[name], question, DATA_COUNT_S)

    return count


def _unread(name: str, node: str, error: errors.DlperfError) -> Finding:
    if isinstance(error, errors.NodeError) and not isinstance(error, errors.CommandTimedOut):
        raise error
    return Finding(
        "error",
        error.code,
        node,
        error.cause,
        f"data set {name}, readable",
        error.fix or "see there",
    )
