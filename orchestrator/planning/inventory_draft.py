"""An inventory's text, with comments, from what machines say of themselves."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import words
from orchestrator.model.facts import Gid, Topology
from orchestrator.probes.discovery import Discovered, Port

_SCALAR = re.compile(r"[A-Za-z~/][A-Za-z0-9 ._/~+-]*[A-Za-z0-9]|[A-Za-z]")
_IPV4 = re.compile(r"[0-9]+(\.[0-9]+){3}")
_NO_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})
_NEAR = frozenset({"PIX", "PXB", "PHB"})


@dataclass(frozen=True, slots=True)
class DraftNode:
    """A node of the inventory to be.

    Args:
        found: None where it did not answer; ``why`` then says why.
        claimed_gpus: what a list says that it has.
    """

    name: str
    address: str
    user: str
    port: int
    identity: str | None
    is_here: bool
    found: Discovered | None
    why: str = ""
    claimed_gpus: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that the inventory is written from.

    Args:
        command: the command line that asked, for the first comment.
        agent: whether ssh-agent signs.
        known_hosts: the file of trusted host keys, where it is not the usual one.
    """

    name: str
    command: str
    nodes: tuple[DraftNode, ...]
    agent: bool = False
    known_hosts: str | None = None


def text(draft: Draft) -> str:
    """The inventory, valid for ``check`` as it is; what is worth a look stands in comments."""
    settings = [_settings(node, draft) for node in draft.nodes]
    common = _common([said for said, node in zip(settings, draft.nodes, strict=True) if node.found])
    common = common or _common(settings)
    lines = [
        f"# Written by: {draft.command}",
        "# What is declared here is what provision demands; correct it where a node was not well.",
        *_notes(draft),
        f"name: {draft.name}",
        "defaults: # each may be overridden per node",
        *(f"  {key}: {value}" for key, value in common.items()),
        *_container(draft),
        "nodes: # in rank order",
    ]
    for node, own in zip(draft.nodes, settings, strict=True):
        differs = {key: value for key, value in own.items() if common.get(key) != value}
        more = "".join(f", {key}: {value}" for key, value in differs.items())
        lines.append(f"  - {{name: {scalar(node.name)}, address: {scalar(node.address)}{more}}}")
    return "\n".join(lines) + "\n"


def scalar(value: str) -> str:
    """A text as strict YAML takes it; quoted where it could mean anything else."""
    plain = _SCALAR.fullmatch(value) and value.casefold() not in _NO_WORDS
    return value if plain or _IPV4.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def adapters(found: Discovered) -> tuple[tuple[Port, ...], tuple[str, ...]]:
    """The ports that training should use, and why others are left out.

    Active ones; of those the ones near a GPU, where the topology tells near from far; of one link
    layer, that of the greater bandwidth.
    """
    active = [port for port in found.ports if port.active]
    out = [f"{port.hca} is not active" for port in found.ports if not port.active]
    near = [port for port in active if _is_near(port.hca, found.topology)]
    if near and len(near) < len(active):
        out += [f"{port.hca} is far from every GPU" for port in active if port not in near]
        active = near
    speeds: Counter[str] = Counter()
    for port in active:
        speeds[port.link_layer] += port.rate_gbps
    if len(speeds) > 1:
        layer = speeds.most_common(1)[0][0]
        out += [f"{p.hca} speaks {p.link_layer}" for p in active if p.link_layer != layer]
        active = [port for port in active if port.link_layer == layer]
    first = {port.hca: port for port in reversed(active)}
    return tuple(first[hca] for hca in sorted(first, key=_by_number)), tuple(out)


def gid_index(gids: Sequence[Gid], hcas: Sequence[str]) -> int | None:
    """The one index at which every adapter has a routable RoCE v2 address; None without one."""
    common: set[int] | None = None
    for hca in hcas:
        own = {
            gid.index
            for gid in gids
            if gid.hca == hca and gid.kind == "RoCE v2" and not gid.address.startswith("fe80:")
        }
        common = own if common is None else common & own
    return min(common) if common else None


def _is_near(hca: str, wires: Topology | None) -> bool:
    if wires is None:
        return False
    return any(wires.links.get(gpu, {}).get(hca) in _NEAR for gpu in wires.gpus)


def _by_number(name: str) -> tuple[str, int]:
    digits = re.search(r"(\d+)$", name)
    return (name[: digits.start()], int(digits[1])) if digits else (name, -1)


def _settings(node: DraftNode, draft: Draft) -> dict[str, str]:
    said = {"transport": "local"} if node.is_here else _login(node, draft)
    found = node.found
    if found is None:
        return {
            **said,
            **({"gpus": f"{{count: {node.claimed_gpus}}}"} if node.claimed_gpus else {}),
        }
    contained = found.docker is not None or found.sudo
    said["runtime"] = "docker" if contained else "process"
    if found.sudo:
        said["sudo"] = "true"
    if found.gpu:
        models = {gpu.model for gpu in found.gpu.gpus}
        model = (
            f", model: {scalar(str(*models))}" if len(models) == 1 and None not in models else ""
        )
        said["gpus"] = f"{{count: {len(found.gpu.gpus)}{model}}}"
    said |= _fabric(found)
    if interface := _interface(node, found):
        said["interface"] = scalar(interface)
    if found.data:
        pairs = (f"{name}: {scalar(path)}" for name, path in sorted(found.data.items()))
        said["data"] = f"{{{', '.join(pairs)}}}"
    return said


def _login(node: DraftNode, draft: Draft) -> dict[str, str]:
    said = {"user": scalar(node.user), "port": str(node.port)}
    if node.identity:
        said["identity"] = scalar(node.identity)
    if draft.known_hosts:
        said["known_hosts"] = scalar(draft.known_hosts)
    return {**said, **({"agent": "true"} if draft.agent else {})}


def _fabric(found: Discovered) -> dict[str, str]:
    used, _ = adapters(found)
    if not used:
        return {}
    rows = (
        f"{{name: {scalar(port.hca)}, rate_gbps: {port.rate_gbps}, link_layer: {port.link_layer}}}"
        for port in used
    )
    said = {"hcas": f"[{', '.join(rows)}]"}
    index = gid_index(found.gids, [port.hca for port in used])
    if used[0].link_layer == "Ethernet" and index is not None:
        said["roce"] = f"{{gid_index: {index}}}"
    return said


def _interface(node: DraftNode, found: Discovered) -> str:
    """The one that carries the address by which the node was reached; else the default route's."""
    for name, addresses in (found.host.addresses or {}).items():
        if not node.is_here and {node.address, found.server} & set(addresses):
            return name
    return "" if node.is_here else found.route


def _common(settings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What most nodes say, key by key, where it is said by all of them."""
    keys = dict.fromkeys(key for said in settings for key in said)
    return {
        key: Counter(said[key] for said in settings).most_common(1)[0][0]
        for key in keys
        if all(key in said for said in settings)
    }


def _notes(draft: Draft) -> Iterator[str]:
    for node in draft.nodes:
        notes = (
            [f"was not asked: {_line(node.why)}"] if node.found is None else _of_node(node.found)
        )
        yield from (f"# {node.name}: {note}" for note in notes)


def _of_node(found: Discovered) -> Iterator[str]:
    if found.docker is None and not found.sudo:
        why = _line(found.why_no_docker)
        yield f"no Docker ({why}): tasks run as plain processes there"
    if found.gpu is None:
        yield "nvidia-smi names no GPU; playbooks need `device: cpu` there"
    elif len({gpu.model for gpu in found.gpu.gpus}) > 1:
        yield "GPUs of several models; choose by gpus: {use: [...]}"
    if found.slurm:
        yield f"{_line(found.slurm)} is there; where it gives the nodes, write `scheduler: slurm`"
    yield from (f"adapter left out: {reason}" for reason in adapters(found)[1])


def _line(text: str) -> str:
    """The text as one line of a comment."""
    return words.cut(words.printable(" ".join(text.split())))


def _container(draft: Draft) -> Iterator[str]:
    found = [node.found for node in draft.nodes if node.found]
    if not any(answer.docker or answer.sudo for answer in found):
        return
    yield "container: # how containers are started; least privilege"
    yield "  shm_size: 16g"
    yield "  ulimits: {memlock: -1, stack: 67108864} # InfiniBand and RoCE need memlock"
    yield "images: [reference-rn50] # what provision prepares: the image of each of your playbooks"
