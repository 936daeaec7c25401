"""Tables of provisioning: nodes, images and findings, and the steps planned for images."""

from collections.abc import Iterator, Mapping, Sequence

from orchestrator import nodeset, words
from orchestrator.console import Voice
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import JSON
from orchestrator.model.site import Site
from orchestrator.planning.images import Action
from orchestrator.provisioning import observe
from orchestrator.state.store import Store

MOST_ROWS = 16  # of nodes; of more those that are alike are folded


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


def show_actions(voice: Voice, todo: Mapping[str, Sequence[Action]]) -> None:
    rows = list(_rows(todo))
    if rows:
        voice.table("Actions", ("image", "action", "where", "what", "why"), rows)
    elif todo:
        voice.result("Nothing to do: every node has every image.")


def actions_json(todo: Mapping[str, Sequence[Action]]) -> JSON:
    keys = ("image", "kind", "node", "what", "reason")
    return [dict(zip(keys, row, strict=True)) for row in _rows(todo)]


def _rows(actions: Mapping[str, Sequence[Action]]) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the rows of a table: image, kind, node, what, reason."""
    for name, of_image in actions.items():
        for action in of_image:
            yield name, action.kind, action.node or "this machine", action.subject, action.reason


def list_questions(store: Store, cluster: Cluster) -> Iterator[str]:
    """Yield the questions to the nodes, in a line for all that are asked the same."""
    alike: dict[str, list[str]] = {}
    for node in cluster.members:
        questions = observe.list_questions(cluster, node, store)
        names = ", ".join(question.name for question in questions)
        same = f"({node.transport}, {node.runtime}): {names}"
        alike.setdefault(same, []).append(node.name)
    for same, nodes in alike.items():
        yield f"questions to {nodeset.fold(nodes)} {same}"
