"""trust: the host keys of nodes, shown, and added to known_hosts after a yes."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import typer

from orchestrator import errors
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import Inventory
from orchestrator.console import Voice
from orchestrator.fleet import ask_all
from orchestrator.inputs import user_files
from orchestrator.model.node import Node
from orchestrator.transports import known_hosts
from orchestrator.transports.failures import check_open_files
from orchestrator.transports.known_hosts import HostKey
from orchestrator.transports.ssh import fetch_host_key, find_jump_host


@dataclass(frozen=True, slots=True)
class _Offer:
    """A host key that a machine offered, and whether it is trusted."""

    target: Node
    key: HostKey
    state: Literal["new", "known", "trusted", "not trusted"]

    @property
    def name(self) -> str:
        """The machine's name in known_hosts."""
        return known_hosts.format_name(self.target.address, self.target.port)

    def document(self) -> dict[str, str]:
        return {
            "node": self.target.name,
            "known_as": self.name,
            "kind": self.key.kind,
            "fingerprint": self.key.fingerprint,
            "known_hosts": self.target.known_hosts,
            "state": self.state,
        }


@command("trust", "trust mine")
def trust(
    face: Face,
    inventory: Inventory,
    fingerprint: Annotated[
        list[str] | None, typer.Option(help="Trust keys with this fingerprint, SHA256:...")
    ] = None,
) -> int:
    voice, fingerprints = face.voice, fingerprint or ()
    cluster, _ = user_files.cluster(inventory)
    check_open_files(len(cluster.members))
    targets = [node for node in cluster.members if node.transport == "ssh"]
    if not targets:
        voice.result(f"no node of {cluster.name} is reached by SSH")
    unpinned = [target for target in targets if not target.host_key]
    offers: list[_Offer] = []
    failures: list[errors.DlperfError] = []
    gates = [jump for target in targets if (jump := find_jump_host(target))]
    for group in (gates, unpinned):  # nobody behind a jump host can be asked before it is trusted
        by_name = {target.name: target for target in group}
        answers = ask_all(list(by_name), partial(_look, by_name))
        seen = [answer.value for answer in answers if answer.value]
        offers += _decide(seen, voice, fingerprints)
        failures += [answer.error for answer in answers if answer.error]
    failures += [
        errors.NodeError(
            f"{offer.key.kind} {offer.key.fingerprint} of {offer.name} is not trusted;"
            " nothing was written",
            code="SSH-HOSTKEY-UNKNOWN",
            node=offer.target.name,
            fix="answer yes, or give --fingerprint with what the node itself says",
        )
        for offer in offers
        if offer.state == "not trusted"
    ]
    for target in targets:
        if target.host_key:
            voice.result(f"{target.name}: the inventory gives its host key, {target.host_key}")
    return voice.finish({"keys": [offer.document() for offer in offers]}, failures)


def _look(targets: Mapping[str, Node], name: str) -> _Offer:
    target = targets[name]
    offer = _Offer(target, fetch_host_key(target), "known")
    entries = known_hosts.find_entries(target.known_hosts, offer.name)
    try:
        known_hosts.check_key(target.name, offer.name, entries, offer.key)
    except errors.NodeError as error:
        if error.code not in ("SSH-HOSTKEY-UNKNOWN", "SSH-HOSTKEY-TYPE"):
            raise
        return replace(offer, state="new")
    return offer


def _decide(offers: Sequence[_Offer], voice: Voice, fingerprints: Sequence[str]) -> list[_Offer]:
    """Show the keys, and add the new ones to known_hosts that are vouched for."""
    voice.listing("Host keys", [offer.document() for offer in offers], spare=("known_hosts",))
    new = [offer for offer in offers if offer.state == "new"]
    vouched = set(fingerprints)
    if new and not fingerprints:
        keys = "this key" if len(new) == 1 else f"these {len(new)} keys"
        voice.line(f"Compare with `ssh-keygen -lf` on the nodes themselves. Trust {keys}? (yes/no)")
        if sys.stdin.readline().strip() == "yes":
            vouched = {offer.key.fingerprint for offer in new}
    decided = [offer for offer in offers if offer.state != "new"]
    for offer in new:
        is_vouched = offer.key.fingerprint in vouched
        decided.append(replace(offer, state="trusted" if is_vouched else "not trusted"))
        if is_vouched:
            known_hosts.trust(offer.target.known_hosts, offer.name, offer.key)
            voice.line(
                f"{offer.target.name}: {offer.key.kind} {offer.key.fingerprint} of {offer.name}"
                f" added to {offer.target.known_hosts}"
            )
    return decided
