"""Everything that is asked of a node in one round trip, as far as its inventory declares it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from orchestrator import errors
from orchestrator.model.cluster import Node
from orchestrator.model.facts import (
    DriverFacts,
    InfinibandFacts,
    NodeAnswer,
    Silent,
    Topology,
)
from orchestrator.model.problem import Problem
from orchestrator.model.site import (
    DataState,
    GpuSummary,
    HcaSummary,
    NodeFacts,
    TopologySummary,
)
from orchestrator.probes import (
    Probe,
    docker,
    gpu,
    host,
    ibverbs,
    infiniband,
    ofed,
    sections,
    topology,
)
from orchestrator.probes.sections import Said, Section

Doubted = TypeVar("Doubted", bound=DriverFacts | Topology | InfinibandFacts)
HOST, GPU, TOPOLOGY, IBSTAT, VERBS, OFED = "host", "gpu", "topology", "ibstat", "verbs", "ofed"
DATA = "data."
# A folder counts as readable if it can be listed in ten seconds: a stale mount never answers.
LOOK = r"""
[ -e "$1" ] || { echo missing; exit 0; }
[ -r "$1" ] || { echo unreadable; exit 0; }
[ -d "$1" ] || { echo present; exit 0; }
names=$(ls -AU -- "$1" 2>/dev/null) || { echo unreadable; exit 0; }
[ -n "$names" ] && echo present || echo empty
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a node must have that its inventory does not say.

    Args:
        python: the interpreter whose modules are looked for.
        folder: where attempts will lie; its disk counts.
        modules: Python modules that must be importable, where tasks run as plain processes.
    """

    python: str
    folder: str
    modules: tuple[str, ...] = ()


def probe(asked: Sequence[Section], *, nonce: str) -> Probe[NodeAnswer]:
    """All ``questions`` to one node in one; ``sections.timeout_s`` says how long it may take.

    Args:
        nonce: a random word, new for every call.
    """

    def parse(text: str) -> NodeAnswer:
        return _answer(sections.split(text, asked, nonce=nonce))

    return Probe("facts", sections.argv(asked, nonce=nonce), parse)


def questions(node: Node, wanted: Wanted) -> tuple[Section, ...]:
    """What the node is asked; ``--dry-run`` shows their names."""
    asked = [
        Section(HOST, host.probe(wanted.python, wanted.folder, wanted.modules).argv, limit_s=25)
    ]
    if node.gpus is not None:
        asked.append(Section(GPU, gpu.PROBE.argv, limit_s=20))
        asked.append(Section(TOPOLOGY, topology.PROBE.argv, limit_s=20))
    if node.hcas:
        asked.append(Section(IBSTAT, infiniband.PROBE.argv))
        asked.append(Section(VERBS, ("sh", "-c", "ibv_devinfo 2>&1")))
        asked.append(Section(OFED, ("ofed_info", "-s")))
    if node.in_container:
        asked += docker.sections(sudo=node.sudo)
    for name, path in sorted(node.data.items()):
        asked.append(Section(f"{DATA}{name}", ("sh", "-c", LOOK, "sh", path)))
    return tuple(asked)


def facts(answer: NodeAnswer) -> NodeFacts:
    """What the site file keeps of an answer."""
    gpus, wires, hcas = answer.gpu, answer.topology, answer.infiniband
    return NodeFacts(
        host=answer.host,
        gpu=_gpu_summary(gpus) if isinstance(gpus, DriverFacts) else None,
        topology=_topology_summary(wires) if isinstance(wires, Topology) else None,
        infiniband=_hca_summaries(hcas) if isinstance(hcas, InfinibandFacts) else None,
        ofed=answer.ofed,
        docker=None if isinstance(answer.docker, Silent) else answer.docker,
        data=answer.data,
    )


def doubted(fact: Doubted | Silent | None, said: Said | None) -> Doubted | Silent | None:
    """The fact with a problem more if its command did not end well."""
    if fact is None or isinstance(fact, Silent) or said is None or said.exit_code == 0:
        return fact
    message = f"the command ended with {said.exit_code}: {said.err.strip()[:200] or 'no word'}"
    return replace(fact, problems=(*fact.problems, Problem("EXIT-STATUS", message)))


def _answer(answers: sections.Answers) -> NodeAnswer:
    said = answers.said
    if said[HOST].exit_code is None:
        raise errors.LogError(
            f"the node did not say in time what it is: {said[HOST].words}",
            code="HOST-HUNG",
            fix="look for a file system there that does not answer",
        )
    machine = host.parse(said[HOST].out)
    return NodeAnswer(
        # Other questions take their time; the clock is the one that was read last.
        host=replace(machine, clock_s=answers.clock_s),
        gpu=doubted(sections.read(said.get(GPU), gpu.parse), said.get(GPU)),
        topology=doubted(sections.read(said.get(TOPOLOGY), topology.parse), said.get(TOPOLOGY)),
        infiniband=doubted(sections.read(said.get(IBSTAT), infiniband.parse), said.get(IBSTAT)),
        verbs=sections.read(said.get(VERBS), ibverbs.parse),
        ofed=ofed.version(said[OFED].out) if OFED in said else None,
        docker=docker.parse(said),
        data={name[len(DATA) :]: _data(text) for name, text in said.items() if name[:5] == DATA},
    )


def _data(said: Said) -> DataState:
    if said.exit_code is None:
        return "hung"
    known: tuple[DataState, ...] = ("present", "empty", "missing")
    return next((state for state in known if said.out.strip() == state), "unreadable")


def _gpu_summary(fact: DriverFacts) -> GpuSummary:
    return GpuSummary(
        driver=fact.driver,
        cuda=fact.cuda,
        models=tuple(gpu.model or "?" for gpu in fact.gpus),
        bus_ids=tuple(gpu.bus_id for gpu in fact.gpus),
        memory_mib=tuple(gpu.memory_mib for gpu in fact.gpus),
        power_limits_w=tuple(gpu.power_limit_w for gpu in fact.gpus),
    )


def _topology_summary(fact: Topology) -> TopologySummary:
    wires = {"gpus": fact.gpus, "hcas": fact.hcas, "links": fact.links}
    content = json.dumps(wires, sort_keys=True).encode()
    digest = None if fact.problems else hashlib.sha256(content).hexdigest()
    return TopologySummary(fact.links, digest, fact.cpu_affinity)


def _hca_summaries(fact: InfinibandFacts) -> tuple[HcaSummary, ...]:
    return tuple(
        HcaSummary(
            name=hca.name,
            port=port.port,
            type=hca.type,
            firmware=hca.firmware,
            state=port.state,
            rate_gbps=port.rate_gbps,
            link_layer=port.link_layer,
        )
        for hca in fact.hcas
        for port in hca.ports
    )
