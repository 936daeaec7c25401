"""Machines of which no inventory tells yet, and what they say that they have."""

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
    """Return the answer of each host, or the error in its place.

    Args:
        name: of the cluster that they are going to be.
    """
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
    """Return an inventory with the least that reaching the nodes needs.

    Raises:
        UsageError: HOST; an address, a user or a jump host that cannot be one.
    """

    def called(text: str) -> str:
        return _ENTRY.sub(lambda match: nodes[int(match[1])].name, text)

    entries = []
    for node in nodes:
        entry: dict[str, object] = {"name": node.name, "address": node.address}
        login = {"user": node.user, "port": node.port, "identity": node.identity}
        login |= {"agent": node.agent, "known_hosts": node.known_hosts, "jump": node.jump}
        entry |= {} if node.is_here else {key: value for key, value in login.items() if value}
        entries.append({**entry, "transport": "local" if node.is_here else "ssh"})
    document = {"name": name, "defaults": {"runtime": "process"}, "nodes": entries}
    text = json.dumps(document)  # which is YAML, too
    try:
        return user_files.judged_cluster(yaml_reader.document(text, "the hosts"))
    except errors.ConfigError as error:
        # No user wrote this document, so errors name hosts instead of lines of a file.
        alike: dict[tuple[str, str], list[str]] = {}
        for mistake in error.mistakes:
            place, _, key = mistake.path.partition(".")
            alike.setdefault((key, mistake.text), []).append(place)
        told = "; ".join(
            ": ".join(filter(None, (nodeset.fold(map(called, hosts)), key, text)))
            for (key, text), hosts in alike.items()
        )
        raise errors.UsageError(
            called(told), code="HOST", fix="correct the command line or the list"
        ) from error
