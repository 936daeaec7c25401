"""What the nodes of a cluster say of themselves, asked in one round trip each, and judged."""

import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator import checks, errors
from orchestrator.fleet import Answer
from orchestrator.inputs import probing, sites
from orchestrator.model.cluster import Cluster, Node
from orchestrator.model.facts import NodeAnswer
from orchestrator.model.image import Image
from orchestrator.model.site import Finding, Site
from orchestrator.probes import Probe, sections
from orchestrator.probes import node as node_probe
from orchestrator.state.store import Store, now
from orchestrator.transports import Completed

Ask = Callable[[Mapping[str, tuple[str, ...]], float], list[Answer[Completed]]]
"""What a command comes to on each node, by name, within so many seconds."""


@dataclass(frozen=True, slots=True)
class Asking:
    """What asking the nodes works with.

    Args:
        cluster_digest: of the whole inventory, before nodes were left out.
        image: whose needs are checked too, where its program runs as a plain process.
        images: that containers are to be started from.
        known: what was found out the last time.
    """

    store: Store
    inventory: Path
    cluster_digest: str
    image: Image | None
    known: Site | None
    images: tuple[Image, ...] = ()


def observe(cluster: Cluster, ask: Ask, asking: Asking) -> tuple[Site, list[errors.DlperfError]]:
    """What the nodes say now, checked; and the errors of those that said nothing."""
    members = {node.name: node for node in cluster.members}
    answers = _answers(cluster, ask, asking)
    said = {answer.node: answer.value for answer in answers if answer.value}
    facts = {name: node_probe.facts(answer) for name, answer in said.items()}
    demands = checks.Demands(
        extra=asking.image.extra if asking.image else None, driver=_driver(asking.images)
    )
    findings: list[Finding] = []
    for name, answer in said.items():
        findings += checks.alone(cluster, members[name], answer, demands)
    hosts = {name: node.host for name, node in facts.items()}
    findings += checks.together(cluster, hosts, {answer.node: answer.at_s for answer in answers})
    findings += checks.alike(cluster, facts)
    if asking.known is not None:
        findings += checks.since(asking.known, facts)
    site = Site(
        version=sites.VERSION,
        cluster=cluster.name,
        cluster_digest=asking.cluster_digest,
        inventory=str(asking.inventory.resolve()),
        observed_at=now(),
        nodes=facts,
        findings=tuple(findings),
        images=asking.known.images if asking.known else {},
        data=asking.known.data if asking.known else {},
    )
    return site, [answer.error for answer in answers if answer.error]


def _driver(images: Iterable[Image]) -> str | None:
    """The newest of the oldest drivers that these images run on."""
    drivers = [image.driver for image in images if image.driver is not None]
    return max(
        drivers, key=lambda version: [int(part) for part in version.split(".")], default=None
    )


def wanted(node: Node, store: Store, image: Image | None = None) -> node_probe.Wanted:
    """What a node must have that its inventory does not say."""
    if node.is_here:
        folder, python = str(store.root.resolve()), sys.executable
    else:
        folder, python = node.folder, image.python if image else "python3"
    return node_probe.Wanted(python, folder, image.requires if image else ())


def _answers(cluster: Cluster, ask: Ask, asking: Asking) -> list[Answer[NodeAnswer]]:
    """Every node's answer to its own questions, all nodes asked at once."""
    asked = {
        node.name: node_probe.questions(node, wanted(node, asking.store, asking.image))
        for node in cluster.members
    }
    probes = {
        name: node_probe.probe(questions, nonce=secrets.token_hex(8))
        for name, questions in asked.items()
    }
    longest_s = max(sections.timeout_s(questions) for questions in asked.values())
    done = ask({name: probe.argv for name, probe in probes.items()}, longest_s)
    return [_understood(probes[answer.node], answer) for answer in done]


def _understood(probe: Probe[NodeAnswer], answer: Answer[Completed]) -> Answer[NodeAnswer]:
    node, at_s = answer.node, answer.at_s
    if answer.value is None:
        return Answer(node, None, answer.error, at_s)
    try:
        return Answer(node, probing.understood(probe, answer.value, node), None, at_s)
    except errors.DlperfError as error:
        return Answer(node, None, error, at_s)
