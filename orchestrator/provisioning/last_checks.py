"""Checks once nodes have their images: inside containers, and between nodes."""

import contextlib
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from orchestrator import errors, words
from orchestrator.checks import data as data_checks
from orchestrator.checks.machine import container as check_container
from orchestrator.checks.network import reachable
from orchestrator.console import Voice
from orchestrator.deadlines import CALLED_S, DATA_COUNT_S, INSIDE_LEFT_S, INSIDE_S, LISTEN_S
from orchestrator.fleet import MOST_AT_ONCE, Fleet, ask_all, settled
from orchestrator.inputs import probing
from orchestrator.model.facts import ContainerFacts
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import DataDigest, Finding, ImageRecord, NodeFacts
from orchestrator.probes import container, data, reach, sections
from orchestrator.probes.reach import Heard
from orchestrator.probes.sections import Section
from orchestrator.transports import Completed, Stream

LABEL = "dlperf.probe"
LOOK_S = 0.1
PORT = 22333  # where ranks of the shipped playbooks meet; later trials take others of its kind
LONGEST_LINE = 200


def check_containers(
    fleet: Fleet,
    records: Mapping[str, ImageRecord],
    facts: Mapping[str, NodeFacts],
    names: Iterable[str],
) -> list[Finding]:
    """Return findings from one probe container of each image on every node, removed afterwards.

    Args:
        names: of the images to start containers from.
        facts: of the nodes themselves, by node name, to compare with.

    Raises:
        UnfitError, NodeError: on some node no container ran and answered.
    """
    _forget(fleet)
    seen_wrong: list[Finding] = []
    members = {member.name: member for member in fleet.cluster.members}
    running: set[str] = set()  # nodes whose probe container is being created or runs
    is_over = threading.Event()  # set once nobody waits for these containers

    def look(record: ImageRecord, node: str) -> ContainerFacts:
        runtime = fleet.containers_on(node, image=record.on(node))
        states = facts[node].data if node in facts else {}
        present = [key for key in states if states[key] == "present"]
        mounts = container.data_mounts(members[node], present)
        questions = container.questions(members[node], mounts)
        nonce = secrets.token_hex(8)
        question = sections.probe("container", questions, container.read_answers, nonce=nonce)
        limit_s = INSIDE_S + sections.timeout_s(questions)
        running.add(node)
        try:
            if is_over.is_set():
                raise errors.NodeError("nobody waits for it any more", code="STOPPED", node=node)
            gpus = members[node].gpus is not None
            done = runtime.run_once(question.argv, gpus=gpus, timeout_s=limit_s, mounts=mounts)
        finally:
            running.discard(node)
        return probing.parse_output(question, done, node)

    try:
        for name in names:
            answers = ask_all(list(fleet.engines), partial(look, records[name]))
            settled(answers)
            for answer in answers:
                seen, outside = answer.checked(), facts.get(answer.node)
                ofed, settings = outside.ofed if outside else None, fleet.cluster.container
                seen_wrong += check_container(members[answer.node], seen, settings, ofed)
    except BaseException:  # also when interrupted, while threads still create containers
        is_over.set()
        _forget(fleet)
        deadline = time.monotonic() + INSIDE_LEFT_S
        while running and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            _forget(fleet)
        raise
    return seen_wrong


def _forget(fleet: Fleet) -> None:
    """Remove probe containers, of this provisioning or of one that was killed."""

    def remove(node: str) -> None:
        for leftover in fleet.containers[node].labelled(LABEL):
            fleet.containers[node].remove(leftover.name)

    ask_all(list(fleet.engines), remove)


def check_nodes(
    fleet: Fleet, voice: Voice, facts: Mapping[str, NodeFacts], *, recount: bool
) -> tuple[tuple[Finding, ...], Mapping[str, Mapping[str, DataDigest]]]:
    """Return findings about connections between nodes and their data sets, and these digests.

    Args:
        facts: by node; only data sets that they report as present are counted, lest a mount hang.
        recount: ignore counts of files that nodes keep.

    Raises:
        NodeError: a node stopped answering.
    """
    unreachable = _check_reach(fleet)
    nodes: list[Node] = []
    for node in fleet.cluster.members:
        states = facts[node.name].data
        present = {it: path for it, path in node.data.items() if states.get(it) == "present"}
        nodes.append(node.model_copy(update={"data": present}))
    # A kept count may be from before the data set was repaired.
    for fresh in (True,) if recount else (False, True):
        digests, unreadable = _check_data(fleet, voice, nodes, fresh=fresh)
        between = [odd for name in digests for odd in data_checks.digests(name, digests[name])]
        if all(finding.severity != "error" for finding in between):
            break
    return (*unreachable, *between, *unreadable), digests


def _check_reach(fleet: Fleet) -> tuple[Finding, ...]:
    """Check that nodes reach each other where ranks will connect, by calls of ``reach.peers``."""
    addresses = {node.name: node.address for node in fleet.cluster.members if not node.is_here}
    names = list(addresses)
    if len(names) < 2:
        return ()
    peers = reach.peers(names)
    seconds = reach.listening_s(len(names), len(peers[names[0]]), at_once=MOST_AT_ONCE)

    def listen(name: str) -> tuple[Heard, str, Stream]:
        """Have a node listen at the port until the stream is closed."""
        token = secrets.token_hex(8)
        stream = fleet.transports[name].open(reach.listener(PORT, token, seconds=seconds))
        stream.settimeout(LISTEN_S)
        line = b""
        with contextlib.suppress(TimeoutError):
            while b"\n" not in line and (piece := stream.recv(LONGEST_LINE)):
                line += piece
        return reach.listening(line.decode(errors="replace")), token, stream

    def call(caller: str) -> dict[str, Heard]:
        asked = [
            Section(name, reach.connector(addresses[name], PORT), limit_s=int(CALLED_S))
            for name in peers[caller]
            if listening[name][0].state == "open"
        ]
        outputs = probing.outputs(fleet.transports[caller], "between", asked)
        return {
            name: reach.connected(said, token=listening[name][1]) for name, said in outputs.items()
        }

    answers = ask_all(names, listen)
    try:
        settled(answers)
        listening = {answer.node: answer.checked() for answer in answers}
        called = ask_all(names, call)
        settled(called)
    finally:
        for answer in answers:
            if answer.value is not None:
                answer.value[2].close()
    heard = {name: state for name, (state, _, _) in listening.items()}
    calls = {(of.node, name): call for of in called for name, call in of.checked().items()}
    return tuple(reachable(PORT, heard, calls))


def _check_data(
    fleet: Fleet, voice: Voice, members: Sequence[Node], *, fresh: bool
) -> tuple[dict[str, dict[str, DataDigest]], list[Finding]]:
    nodes = {node.name: node for node in members if node.data}
    digests: dict[str, dict[str, DataDigest]] = {
        name: {} for node in nodes.values() for name in node.data
    }
    unreadable: list[Finding] = []
    voice.working(f"data sets: counting files on {words.count(len(nodes), 'node')}")
    for answer in ask_all(list(nodes), lambda name: _count_data(fleet, nodes[name], fresh=fresh)):
        for name in nodes[answer.node].data:
            digest = answer.value[name] if answer.value else answer.error
            if isinstance(digest, DataDigest):
                digests[name][answer.node] = digest
            elif isinstance(digest, errors.NodeError) and not isinstance(
                digest, errors.CommandTimedOut
            ):
                raise digest
            elif digest is not None:
                needed, fix = f"data set {name}, readable", digest.fix or "see there"
                unreadable.append(
                    found(digest.code, answer.node, digest.cause, needed, fix, severity="error")
                )
    return digests, unreadable


def _count_data(
    fleet: Fleet, node: Node, *, fresh: bool
) -> Mapping[str, DataDigest | errors.DlperfError]:
    probes = {name: data.probe(path, node.folder, fresh=fresh) for name, path in node.data.items()}
    asked = [Section(name, probe.argv, int(DATA_COUNT_S)) for name, probe in probes.items()]
    counts: dict[str, DataDigest | errors.DlperfError] = {}
    for name, said in probing.outputs(fleet.transports[node.name], "between", asked).items():
        if said.exit_code is None:
            cause = f"it was not counted in {words.limit(DATA_COUNT_S)}"
            counts[name] = errors.CommandTimedOut(cause, code="TIMEOUT", node=node.name)
            continue
        done = Completed(said.exit_code, said.out.encode(), said.err.encode())
        try:
            counts[name] = probing.parse_output(probes[name], done, node.name)
        except errors.DlperfError as error:
            counts[name] = error
    return counts
