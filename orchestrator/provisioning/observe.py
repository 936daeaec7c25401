"""Facts of all nodes, asked in one round trip each, the findings about them, and their table."""

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator import checks, errors, nodeset, words
from orchestrator.checks.machine import Demands
from orchestrator.checks.nodes import alike, since, together
from orchestrator.console import Voice
from orchestrator.inputs import probing
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import Image
from orchestrator.model.node import Node
from orchestrator.model.site import Finding, Site
from orchestrator.probes import node as node_probe
from orchestrator.probes import sections
from orchestrator.state.files import now
from orchestrator.state.store import Store

MOST_ROWS = 16  # of nodes; in longer tables nodes that are alike are folded


def observe(
    cluster: Cluster,
    ask: probing.Ask,
    store: Store,
    inventory: Path,
    cluster_digest: str,
    previous: Site | None,
    images: Sequence[Image],
    *,
    is_certain: bool,
) -> tuple[Site, list[errors.DlperfError]]:
    """Return the site as the nodes report it now, with findings, and the errors of silent nodes.

    Args:
        ask: runs a command on all nodes at once.
        cluster_digest: of the whole inventory, before nodes were left out.
        previous: the site of the last provisioning.
        images: to start containers from; else the image whose program runs as a plain process.
        is_certain: True if that program will run, so that missing modules are errors.
    """
    members = {node.name: node for node in cluster.members}
    plain = None if cluster.in_containers or not images else images[0]
    questions = {
        name: _list_questions(cluster, node, store, plain) for name, node in members.items()
    }
    probes = {
        name: sections.probe("facts", of_node, node_probe.read_answers, nonce=secrets.token_hex(8))
        for name, of_node in questions.items()
    }
    longest_s = max(sections.timeout_s(of_node) for of_node in questions.values())
    answers = probing.ask_nodes(ask, probes, longest_s)
    reported = {answer.node: answer.value for answer in answers if answer.value}
    facts = {name: node_probe.facts(answer) for name, answer in reported.items()}
    drivers = [image.driver for image in images if cluster.in_containers and image.driver]
    demands = Demands(
        extra=plain.extra if plain else None,
        is_certain=is_certain,
        driver=max(drivers, key=words.version_key, default=None),
    )
    findings: list[Finding] = []
    for name, answer in reported.items():
        findings += checks.alone(cluster, members[name], answer, demands)
    findings += together(facts, {answer.node: answer.at_s for answer in answers})
    findings += alike(cluster, facts)
    if previous is not None:
        findings += since(previous, facts)
    site = Site(
        version=2,
        cluster=cluster.name,
        cluster_digest=cluster_digest,
        inventory=str(inventory.resolve()),
        observed_at=now(),
        nodes=facts,
        findings=tuple(findings),
        images=previous.images if previous else {},
        data=previous.data if previous else {},
    )
    return site, [answer.error for answer in answers if answer.error]


def _list_questions(
    cluster: Cluster, node: Node, store: Store, image: Image | None
) -> tuple[sections.Section, ...]:
    """Return the questions to a node, for a program of the image if it runs plain processes."""
    if node.shares_files:
        folder, python = str(store.root.resolve()), sys.executable
    else:
        folder, python = node.folder, image.python if image else "python3"
    return node_probe.questions(
        node,
        python=python,
        folder=folder,
        modules=image.requires if image else (),
        contained=cluster.confines(node),
    )


def show_site(voice: Voice, site: Site) -> None:
    head = ("node", "hostname", "kernel", "CPUs", "memory", "GPUs", "driver", "Docker")
    rows = [
        (
            name,
            facts.host.hostname,
            facts.host.kernel,
            str(facts.host.cpus),
            words.size(facts.host.memory_mib << 20),
            str(len(facts.gpu.models)) if facts.gpu else "-",
            (facts.gpu.driver or "?") if facts.gpu else "-",
            facts.docker.server_version if facts.docker else "",
        )
        for name, facts in site.nodes.items()
    ]
    voice.table(f"Cluster {site.cluster}", head, _fold(rows) if len(rows) > MOST_ROWS else rows)
    records = [
        (name, image.tag, image.id[:19], "locked" if image.locked else "UNLOCKED")
        for name, image in site.images.items()
    ]
    if records:
        voice.table("Images", ("image", "tag", "id", "base"), records)
    if site.findings:
        voice.findings(site.findings)
    elif site.nodes:
        voice.result("No findings.")


def _fold(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Fold the rows of nodes that differ in name and hostname only."""
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for row in rows:
        alike.setdefault(row[2:], []).append(row[:2])
    return [
        (*(nodeset.fold(names) for names in zip(*pairs, strict=True)), *facts)
        for facts, pairs in alike.items()
    ]
