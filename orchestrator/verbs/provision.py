"""provision: are these nodes fit to measure what the inventory says they can?"""

import hashlib
import sys
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import __version__, checks, errors
from orchestrator.console import Voice
from orchestrator.model.cluster import Cluster, Node
from orchestrator.model.facts import DriverFacts
from orchestrator.model.image import Image
from orchestrator.model.site import Finding, GpuSummary, HostFacts, NodeFacts, Site
from orchestrator.probes import gpu, host
from orchestrator.store import Store, now
from orchestrator.transports import Transport
from orchestrator.verbs import _files, _nodes

SITE_VERSION = 1
HOST_TIMEOUT_S, GPU_TIMEOUT_S = 30.0, 60.0
SITE = TypeAdapter(Site)


def provision(store: Store, inventory: str, voice: Voice, *, dry_run: bool) -> int:
    """Ask every node, check the answers, write the site file, show the findings; exit code."""
    cluster, path = _files.cluster(inventory)
    names = [node.name for node in cluster.members]
    voice.line(f"cluster {cluster.name}: {len(names)} nodes, {', '.join(names)}")
    if dry_run:
        for node in cluster.members:
            questions = "host, gpu" if node.gpus else "host"
            voice.result(f"{node.name} ({node.transport}, {node.runtime}): would ask {questions}")
        voice.document({"exit_code": 0, "cluster": cluster.name, "nodes": names})
        return 0
    site, failures = observe(store, cluster, path, None)
    kept = store.keep_site(cluster.name, SITE.dump_json(site, indent=1))
    _show(voice, site)
    for failure in failures:
        voice.line(str(failure))
    code = _exit_code(site, failures)
    voice.document({"exit_code": code, "site": SITE.dump_python(site, mode="json")})
    if code == 0:
        voice.result(f"All {len(names)} nodes are fit. Facts and findings: {kept}")
    else:
        voice.line(f"Not fit to measure; facts and findings: {kept}")
    return code


def observe(
    store: Store, cluster: Cluster, inventory: Path, image: Image | None
) -> tuple[Site, list[errors.DlperfError]]:
    """What the nodes say now, checked; and the errors of those that said nothing.

    Args:
        image: whose needs are checked too, where its program runs as a plain process.
    """
    reached = _nodes.transports(cluster)
    members = {node.name: node for node in cluster.members}
    modules = image.requires if image else ()
    folder = str(store.root.resolve())

    def ask(name: str) -> tuple[HostFacts, DriverFacts | None]:
        return _ask(reached[name], members[name], folder, modules)

    answers = _nodes.each(list(members), ask)
    hosts = {each.node: each.value[0] for each in answers if each.value}
    findings: list[Finding] = []
    for each in answers:
        if each.value:
            findings += checks.host(
                members[each.node], each.value[0], image.extra if image else None
            )
            if each.value[1] is not None:
                findings += checks.gpus(members[each.node], each.value[1])
    findings += checks.together(cluster, hosts, {each.node: each.at_s for each in answers})
    site = Site(
        version=SITE_VERSION,
        cluster=cluster.name,
        cluster_digest=digest(cluster),
        inventory=str(inventory.resolve()),
        observed_at=now(),
        nodes={
            each.node: NodeFacts(each.value[0], _summary(each.value[1]))
            for each in answers
            if each.value
        },
        findings=tuple(findings),
    )
    return site, [each.error for each in answers if each.error]


def digest(cluster: Cluster) -> str:
    """Equal for inventories that say the same."""
    return hashlib.sha256(cluster.model_dump_json().encode()).hexdigest()


def read_site(content: bytes, fix: str) -> Site:
    """A site file.

    Raises:
        StoreError: it is damaged or of another version.
    """
    try:
        site = SITE.validate_json(content)
    except ValueError as error:
        raise errors.StoreError(
            f"the site file does not read: {str(error).splitlines()[0]}",
            code="STORE-DAMAGED",
            fix=fix,
        ) from error
    if site.version != SITE_VERSION:
        raise errors.StoreError(
            f"the site file has version {site.version}; dlperf-orch {__version__} writes"
            f" {SITE_VERSION}",
            code="STORE-VERSION",
            fix=fix,
        )
    return site


def _ask(
    transport: Transport, node: Node, folder: str, modules: tuple[str, ...]
) -> tuple[HostFacts, DriverFacts | None]:
    question = host.probe(sys.executable, folder, modules)
    facts = _nodes.ask(transport, question, HOST_TIMEOUT_S)
    if node.gpus is None:
        return facts, None
    return facts, _nodes.ask(transport, gpu.PROBE, GPU_TIMEOUT_S)


def _summary(facts: DriverFacts | None) -> GpuSummary | None:
    if facts is None:
        return None
    return GpuSummary(facts.driver, facts.cuda, tuple(gpu.model or "?" for gpu in facts.gpus))


def _show(voice: Voice, site: Site) -> None:
    head = ("node", "hostname", "kernel", "CPUs", "memory MiB", "GPUs", "driver")
    rows = [
        (
            name,
            facts.host.hostname,
            facts.host.kernel,
            str(facts.host.cpus),
            str(facts.host.memory_mib),
            str(len(facts.gpu.models)) if facts.gpu else "-",
            (facts.gpu.driver or "?") if facts.gpu else "-",
        )
        for name, facts in site.nodes.items()
    ]
    voice.table(f"Cluster {site.cluster}", head, rows)
    if site.findings:
        voice.findings(site.findings)
    else:
        voice.result("No findings.")


def _exit_code(site: Site, failures: list[errors.DlperfError]) -> int:
    if failures:
        return min(failure.exit_code for failure in failures)  # 4 before 5
    return 5 if any(finding.severity == "error" for finding in site.findings) else 0
