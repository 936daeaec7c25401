"""What containers see of their nodes, asked in one container per image and node."""

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
from orchestrator.runtimes.settings import ContainerSettings

LABEL = "dlperf.probe"
LOOK_S = 0.1


class _Looks:
    """Counts threads that may still create or run a probe container."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1

    @property
    def running(self) -> bool:
        """Whether any such thread is left."""
        return self._running > 0


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
    try:
        return _findings(fleet, records, facts, names, looks)
    except BaseException:  # also when interrupted, while threads still create containers
        looks.ended.set()
        _forget(fleet)
        deadline = time.monotonic() + INSIDE_LEFT_S
        while looks.running and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            _forget(fleet)
        raise


def _forget(fleet: Fleet) -> None:
    """Remove probe containers, of this provisioning or of one that was killed."""

    def remove(node: str) -> None:
        for leftover in fleet.containers[node].labelled(LABEL):
            fleet.containers[node].remove(leftover.name)

    ask_all(list(fleet.engines), remove)


def _findings(
    fleet: Fleet,
    records: Mapping[str, ImageRecord],
    facts: Mapping[str, NodeFacts],
    names: Iterable[str],
    looks: _Looks,
) -> list[Finding]:
    findings: list[Finding] = []
    for name in names:
        answers = ask_all(list(fleet.engines), partial(_look, fleet, records[name], facts, looks))
        settled(answers)
        for answer in answers:
            node = next(member for member in fleet.cluster.members if member.name == answer.node)
            outside = facts.get(answer.node)
            findings += checks.container(
                node,
                answer.checked(),
                fleet.cluster.container,
                host_ofed=outside.ofed if outside else None,
            )
    return findings


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
    with looks:
        if looks.ended.is_set():
            raise errors.NodeError("nobody waits for it any more", code="STOPPED", node=name)
        gpus = node.gpus is not None
        done = runtime.run_once(question.argv, gpus=gpus, timeout_s=limit_s, mounts=mounts)
    return probing.understood(question, done, name)
