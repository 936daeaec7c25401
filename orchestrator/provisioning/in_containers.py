"""What containers see of their nodes, asked in one container per image and node."""

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from orchestrator import checks, errors
from orchestrator.deadlines import INSIDE_LEFT_S, INSIDE_S
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.inputs import probing
from orchestrator.model.facts import ContainerFacts
from orchestrator.model.site import Finding, ImageRecord, NodeFacts
from orchestrator.probes import container, sections
from orchestrator.runtimes.grants import ContainerSettings

LABEL = "dlperf.probe"
LOOK_S = 0.1


@dataclass
class _Looks:
    """Nodes whose probe container is being created or runs, and if nobody waits for them."""

    running: set[str] = field(default_factory=set)
    ended: bool = False


def findings(
    fleet: Fleet,
    records: Mapping[str, ImageRecord],
    facts: Mapping[str, NodeFacts],
    names: Iterable[str],
) -> list[Finding]:
    """Findings from one probe container of each image on every node, removed afterwards.

    Args:
        records: images by name, as provisioned; ``names`` are the ones to start.
        facts: of the nodes themselves, by node name, to compare with.

    Raises:
        UnfitError, NodeError: on some node no container ran and answered.
    """
    _forget(fleet)
    looks = _Looks()
    found: list[Finding] = []
    members = {member.name: member for member in fleet.cluster.members}
    try:
        for name in names:
            answers = ask_all(
                list(fleet.engines), partial(_look, fleet, records[name], facts, looks)
            )
            settled(answers)
            for answer in answers:
                seen, outside = answer.checked(), facts.get(answer.node)
                ofed, settings = outside.ofed if outside else None, fleet.cluster.container
                found += checks.container(members[answer.node], seen, settings, host_ofed=ofed)
    except BaseException:  # also when interrupted, while threads still create containers
        looks.ended = True
        _forget(fleet)
        deadline = time.monotonic() + INSIDE_LEFT_S
        while looks.running and time.monotonic() < deadline:
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


def _look(
    fleet: Fleet,
    record: ImageRecord,
    facts: Mapping[str, NodeFacts],
    looks: _Looks,
    name: str,
) -> ContainerFacts:
    node = next(member for member in fleet.cluster.members if member.name == name)
    runtime = fleet.containers_on(name, ContainerSettings.of(fleet.cluster, record.on(name)))
    states = facts[name].data if name in facts else {}
    mounts = container.data_mounts(node, [key for key in states if states[key] == "present"])
    questions = container.questions(node, mounts)
    question = container.probe(questions, nonce=secrets.token_hex(8))
    limit_s = INSIDE_S + sections.timeout_s(questions)
    looks.running.add(name)
    try:
        if looks.ended:
            raise errors.NodeError("nobody waits for it any more", code="STOPPED", node=name)
        gpus = node.gpus is not None
        done = runtime.run_once(question.argv, gpus=gpus, timeout_s=limit_s, mounts=mounts)
    finally:
        looks.running.discard(name)
    return probing.understood(question, done, name)
