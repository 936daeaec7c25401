"""Check what containers see of their nodes, in one container per image and node."""

import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from functools import partial

from orchestrator import checks, errors
from orchestrator.deadlines import INSIDE_LEFT_S, INSIDE_S
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.inputs import probing
from orchestrator.model.facts import ContainerFacts
from orchestrator.model.site import Finding, ImageRecord, NodeFacts
from orchestrator.probes import container, sections

LABEL = "dlperf.probe"
LOOK_S = 0.1


def findings(
    fleet: Fleet,
    records: Mapping[str, ImageRecord],
    facts: Mapping[str, NodeFacts],
    names: Iterable[str],
) -> list[Finding]:
    """Return findings from one probe container of each image on every node, removed afterwards.

    Args:
        records: images by name, as provisioned; ``names`` are the ones to start.
        facts: of the nodes themselves, by node name, to compare with.

    Raises:
        UnfitError, NodeError: on some node no container ran and answered.
    """
    _forget(fleet)
    found: list[Finding] = []
    members = {member.name: member for member in fleet.cluster.members}
    running: set[str] = set()  # nodes whose probe container is being created or runs
    is_over = threading.Event()  # nobody waits for them

    def look(record: ImageRecord, node: str) -> ContainerFacts:
        runtime = fleet.containers_on(node, image=record.on(node))
        states = facts[node].data if node in facts else {}
        present = [key for key in states if states[key] == "present"]
        mounts = container.data_mounts(members[node], present)
        questions = container.questions(members[node], mounts)
        question = container.probe(questions, nonce=secrets.token_hex(8))
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
                found += checks.container(members[answer.node], seen, settings, host_ofed=ofed)
    except BaseException:  # also when interrupted, while threads still create containers
        is_over.set()
        _forget(fleet)
        deadline = time.monotonic() + INSIDE_LEFT_S
        while running and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            _forget(fleet)
        raise
    return found


def _forget(fleet: Fleet) -> None:
    """Remove probe containers, of this provisioning or of one that was killed."""

    def remove(node: str) -> None:
        for leftover in fleet.containers[node].labelled(LABEL):
            fleet.containers[node].remove(leftover.name)

    ask_all(list(fleet.engines), remove)
