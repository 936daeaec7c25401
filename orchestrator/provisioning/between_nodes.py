"""Checks between nodes: whether they reach each other, and hold the same data sets."""

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import checks, errors, words
from orchestrator.console import Voice
from orchestrator.deadlines import CALLED_S, DATA_COUNT_S, LISTEN_S
from orchestrator.fleet import MOST_AT_ONCE, Fleet, ask_all, settled
from orchestrator.inputs import probing
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import DataDigest, Finding, NodeFacts
from orchestrator.probes import Probe, data, reach
from orchestrator.probes.reach import Heard
from orchestrator.probes.sections import Output, Section
from orchestrator.transports import Completed, Stream

PORT = 22333  # where ranks of the shipped playbooks meet; later trials take others of its kind
LONGEST_LINE = 200
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Between:
    """The findings between nodes, and the digests of data sets by name and node."""

    findings: tuple[Finding, ...]
    data: Mapping[str, Mapping[str, DataDigest]]


def looked(fleet: Fleet, voice: Voice, facts: Mapping[str, NodeFacts], *, recount: bool) -> Between:
    """Check that nodes reach each other and that their data sets match.

    Args:
        facts: by node; what they do not show as present is no more looked at, lest it hang again.
        recount: count the files of data sets anew, and use no count kept on nodes.

    Raises:
        NodeError: a node stopped answering.
    """
    unreached = _unreached(fleet)
    nodes = [
        probing.with_present_data(node, facts[node.name].data) for node in fleet.cluster.members
    ]
    digests, unreadable = _data(fleet, voice, nodes, fresh=recount)
    between = _compare_digests(digests)
    if any(finding.severity == "error" for finding in between) and not recount:
        # The kept count may be from before the data set was repaired.
        digests, unreadable = _data(fleet, voice, nodes, fresh=True)
        between = _compare_digests(digests)
    return Between((*unreached, *between, *unreadable), digests)


@dataclass(slots=True)
class _Listening:
    """A port that a node listens at, until its stream is closed."""

    heard: Heard
    token: str
    stream: Stream


def _unreached(fleet: Fleet) -> list[Finding]:
    """Check that nodes reach each other where ranks will connect, by calls of ``reach.peers``."""
    names = [node.name for node in fleet.cluster.members if not node.is_here]
    if len(names) < 2:
        return []
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
        called = [name for name in peers[caller] if name in open_at]
        asked = [
            Section(name, reach.connector(addresses[name], PORT), limit_s=int(CALLED_S))
            for name in called
        ]
        outputs = probing.outputs(fleet.transports[caller], "between", asked)
        return {
            name: reach.connected(
                output.exit_code, output.out, output.err, token=listening[name].token
            )
            for name, output in outputs.items()
        }

    answers = ask_all(list(listening), call_all)
    settled(answers)
    return {
        (answer.node, name): heard for answer in answers for name, heard in answer.checked().items()
    }


def _data(
    fleet: Fleet, voice: Voice, members: Sequence[Node], *, fresh: bool
) -> tuple[dict[str, dict[str, DataDigest]], list[Finding]]:
    """By data set and node: what it holds; and findings for those that could not be read."""
    nodes = {node.name: node for node in members if node.data}
    names = dict.fromkeys(name for node in nodes.values() for name in node.data)
    digests: dict[str, dict[str, DataDigest]] = {name: {} for name in names}
    unreadable: list[Finding] = []
    voice.working(f"data sets: counting files on {words.count(len(nodes), 'node')}")
    answers = ask_all(list(nodes), lambda node: _counts(fleet, nodes[node], fresh=fresh))
    voice.rested()
    for name in names:
        for answer in answers:
            if name not in nodes[answer.node].data:
                continue
            digest = (answer.value or {}).get(name) or answer.error
            if isinstance(digest, DataDigest):
                digests[name][answer.node] = digest
            elif digest is not None:
                unreadable.append(_unread(name, answer.node, digest))
    return digests, unreadable


def _compare_digests(digests: Mapping[str, Mapping[str, DataDigest]]) -> list[Finding]:
    return [digest for name, by_node in digests.items() for digest in checks.digests(name, by_node)]


def _counts(
    fleet: Fleet, node: Node, *, fresh: bool
) -> Mapping[str, DataDigest | errors.DlperfError]:
    """By name, what the data sets of a node hold, or why that is not known; counted at once."""
    probes = {name: data.probe(path, node.folder, fresh=fresh) for name, path in node.data.items()}
    asked = [Section(name, probe.argv, int(DATA_COUNT_S)) for name, probe in probes.items()]
    outputs = probing.outputs(fleet.transports[node.name], "between", asked)
    return {name: _counted(probe, outputs[name], node.name) for name, probe in probes.items()}


def _counted(
    probe: Probe[DataDigest], output: Output, node: str
) -> DataDigest | errors.DlperfError:
    if output.exit_code is None:
        cause = f"it was not counted in {words.limit(DATA_COUNT_S)}"
        return errors.CommandTimedOut(cause, code="TIMEOUT", node=node)
    done = Completed(output.exit_code, output.out.encode(), output.err.encode())
    try:
        return probing.understood(probe, done, node)
    except errors.DlperfError as error:
        return error


def _unread(name: str, node: str, error: errors.DlperfError) -> Finding:
    if isinstance(error, errors.NodeError) and not isinstance(error, errors.CommandTimedOut):
        raise error
    return found(
        error.code,
        node,
        error.cause,
        f"data set {name}, readable",
        error.fix or "see there",
        severity="error",
    )
