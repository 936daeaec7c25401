"""Machines that no inventory lists yet: their hardware and software, as they report it."""

import json
import re
import secrets
from collections.abc import Sequence

from orchestrator import errors, nodeset
from orchestrator.files import yaml_reader
from orchestrator.fleet import Answer, Fleet
from orchestrator.inputs import probing, user_files
from orchestrator.model.cluster import Cluster
from orchestrator.planning.inventory_draft import DraftNode
from orchestrator.probes import discovery, sections
from orchestrator.probes.discovery import Discovered
from orchestrator.submitting import one_step
from orchestrator.submitting.one_step import Partition

_ENTRY = re.compile(r"nodes\[(\d+)\]")
ELSEWHERE = "/var/tmp"  # where attempts would lie


def hosts(name: str, nodes: Sequence[DraftNode]) -> list[Answer[Discovered]]:
    """Return the answer of each host of the cluster to be, or the error in its place."""
    probes = {
        node.name: discovery.probe(
            "/tmp" if node.is_here else ELSEWHERE, nonce=secrets.token_hex(8)
        )
        for node in nodes
    }
    limit_s = sections.timeout_s(discovery.questions(ELSEWHERE))
    with Fleet.of(_build_cluster(name, nodes)) as fleet:
        return probing.ask_nodes(fleet.ask, probes, limit_s)


def of_partition(partition: Partition, account: str | None) -> Discovered:
    """Return the answer of one node that Slurm chose.

    Raises:
        UnfitError: it gave no step, or an answer that cannot be parsed.
    """
    probe = discovery.probe(ELSEWHERE, nonce=secrets.token_hex(8))
    done = one_step.run(partition, account, probe.argv)
    return probing.parse_output(probe, done, partition.name)


def _build_cluster(name: str, nodes: Sequence[DraftNode]) -> Cluster:
    """Return an inventory that has just enough to reach the nodes.

    Raises:
        UsageError: HOST; an address, a user or a jump host that cannot be one.
    """

    def called(text: str) -> str:
        return _ENTRY.sub(lambda match: nodes[int(match[1])].name, text)

    entries = [node.entry for node in nodes]
    document = {"name": name, "defaults": {"runtime": "process"}, "nodes": entries}
    text = json.dumps(document)  # JSON is YAML
    try:
        return user_files.judged_cluster(yaml_reader.document(text, "the hosts"))
    except errors.ConfigError as error:
        # No user wrote this document, so errors name hosts instead of lines of a file.
        alike: dict[str, list[str]] = {}
        for mistake in error.mistakes:
            place, _, key = mistake.path.partition(".")
            text = called(": ".join(filter(None, (key, mistake.text))))
            alike.setdefault(text, []).append(called(place))
        told = "; ".join(f"{nodeset.fold(hosts)}: {text}" for text, hosts in alike.items())
        fix = "correct the command line or the list"
        raise errors.UsageError(told, code="HOST", fix=fix) from error
