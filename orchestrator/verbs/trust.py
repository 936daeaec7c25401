"""trust: the host keys of nodes, shown, and added to known_hosts after a yes."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.fleet import ask_all
from orchestrator.inputs import user_files
from orchestrator.transports import known_hosts, open_files
from orchestrator.transports.known_hosts import HostKey
from orchestrator.transports.ssh import SshTarget, offered_key

State = Literal["new", "known", "trusted", "not trusted"]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A host key that a machine offered, and whether it is trusted."""

    target: SshTarget
    key: HostKey
    state: State

    @property
    def name(self) -> str:
        """The machine's name in known_hosts."""
        return known_hosts.called(self.target.address, self.target.port)


def trust(inventory: str, voice: Voice, fingerprints: Sequence[str]) -> int:
    """Show every host key, add the confirmed ones to known_hosts; exit code.

    A key that has changed is never added: its old line has to be removed by hand.

    Args:
        fingerprints: keys that are confirmed without a question; else the answer is read from
            standard input.
    """
    cluster, _ = user_files.cluster(inventory)
    open_files.suffice(len(cluster.members))
    targets = [SshTarget.of(node) for node in cluster.members if node.transport == "ssh"]
    if not targets:
        voice.result(f"no node of {cluster.name} is reached by SSH")
    pinned = [target for target in targets if target.host_key]
    unpinned = [target for target in targets if not target.host_key]
    shown: list[_Shown] = []
    failures: list[errors.DlperfError] = []
    gates = list(dict.fromkeys(target.gate for target in targets if target.gate))
    for group in (gates, unpinned):  # nobody behind a jump host can be asked before it is trusted
        seen, failed = _read_keys(group)
        shown += _decide(seen, voice, fingerprints)
        failures += failed
    failures += [_unknown(host_key) for host_key in shown if host_key.state == "not trusted"]
    for target in pinned:
        voice.result(f"{target.name}: the inventory gives its host key, {target.host_key}")
    for failure in failures:
        voice.line(str(failure))
    code = errors.joined(failure.exit_code for failure in failures)
    documents = [
        {"code": failure.code, "message": failure.cause, **failure.where} for failure in failures
    ]
    keys = [_document(host_key) for host_key in shown]
    voice.document({"exit_code": code, "keys": keys, "errors": documents})
    return code


def _read_keys(targets: Sequence[SshTarget]) -> tuple[list[_Shown], list[errors.DlperfError]]:
    by_name = {target.name: target for target in targets}
    answers = ask_all(list(by_name), lambda name: _look(by_name[name]))
    shown = [answer.value for answer in answers if answer.value]
    return shown, [answer.error for answer in answers if answer.error]


def _look(target: SshTarget) -> _Shown:
    key = offered_key(target)
    name = known_hosts.called(target.address, target.port)
    entries = known_hosts.about(target.known_hosts, name)
    try:
        known_hosts.judge(target.name, name, key, entries)
    except errors.NodeError as error:
        if error.code not in ("SSH-HOSTKEY-UNKNOWN", "SSH-HOSTKEY-TYPE"):
            raise
        return _Shown(target, key, "new")
    return _Shown(target, key, "known")


def _decide(shown: Sequence[_Shown], voice: Voice, fingerprints: Sequence[str]) -> list[_Shown]:
    rows = [
        (
            host_key.target.name,
            host_key.name,
            host_key.key.kind,
            host_key.key.fingerprint,
            host_key.state,
        )
        for host_key in shown
    ]
    if rows:
        voice.table("Host keys", ("node", "known as", "kind", "fingerprint", "state"), rows)
    new = [host_key for host_key in shown if host_key.state == "new"]
    vouched = {host_key.key.fingerprint for host_key in new} & set(fingerprints)
    if new and not fingerprints and _yes(voice, len(new)):
        vouched = {host_key.key.fingerprint for host_key in new}
    return [
        _confirm(host_key, vouched, voice) if host_key.state == "new" else host_key
        for host_key in shown
    ]


def _yes(voice: Voice, count: int) -> bool:
    keys = "this key" if count == 1 else f"these {count} keys"
    voice.line(f"Compare with `ssh-keygen -lf` on the nodes themselves. Trust {keys}? (yes/no)")
    return sys.stdin.readline().strip() == "yes"


def _confirm(shown: _Shown, vouched: set[str], voice: Voice) -> _Shown:
    if shown.key.fingerprint not in vouched:
        return _Shown(shown.target, shown.key, "not trusted")
    known_hosts.trust(shown.target.known_hosts, shown.name, shown.key)
    voice.line(
        f"{shown.target.name}: {shown.key.kind} {shown.key.fingerprint} of {shown.name}"
        f" added to {shown.target.known_hosts}"
    )
    return _Shown(shown.target, shown.key, "trusted")


def _unknown(shown: _Shown) -> errors.NodeError:
    return errors.NodeError(
        f"{shown.key.kind} {shown.key.fingerprint} of {shown.name} is not trusted;"
        " nothing was written",
        code="SSH-HOSTKEY-UNKNOWN",
        node=shown.target.name,
        fix="answer yes, or give --fingerprint with what the node itself says",
    )


def _document(shown: _Shown) -> dict[str, str]:
    return {
        "node": shown.target.name,
        "known_as": shown.name,
        "kind": shown.key.kind,
        "fingerprint": shown.key.fingerprint,
        "known_hosts": shown.target.known_hosts,
        "state": shown.state,
    }
