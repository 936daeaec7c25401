"""An inventory's text, with comments, from what machines say of themselves."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import words
from orchestrator.model.site import HcaPort
from orchestrator.probes.discovery import Discovered

_SCALAR = re.compile(r"[A-Za-z~/][A-Za-z0-9 ._/~+-]*[A-Za-z0-9]|[A-Za-z]")
_IPV4 = re.compile(r"[0-9]+(\.[0-9]+){3}")
_NO_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})
_NEAR = frozenset({"PIX", "PXB", "PHB"})
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_A_NODE = frozenset({"name", "address", "jump"})  # an inventory takes them for each node alone


@dataclass(frozen=True, slots=True)
class DraftNode:
    """A node of the inventory to be: how a list or the user names it, and what it answered.

    Args:
        user: None where nothing says it, as the settings of SSH below it.
        claimed_gpus: what a list says that it has.
        found: None where it did not answer; ``why`` then says why.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    claimed_gpus: int | None = None
    jump: str | None = None
    agent: bool = False
    known_hosts: str | None = None
    found: Discovered | None = None
    why: str = ""

    @property
    def is_here(self) -> bool:
        return self.address in _HERE

    @property
    def entry(self) -> dict[str, object]:
        """Return how it is reached, by an inventory's keys."""
        if self.is_here:
            return {"name": self.name, "address": "127.0.0.1", "transport": "local"}
        keys = ("name", "address", "user", "port", "identity", "known_hosts", "jump", "agent")
        return {key: value for key in keys if (value := getattr(self, key))}


@dataclass(frozen=True, slots=True)
class Jobs:
    """The Slurm partition to take nodes from, as one of its nodes describes it.

    Args:
        has_pyxis: whether its srun starts containers.
        down: the nodes of the partition that no job gets, folded.
    """

    partition: str
    account: str | None
    time: str
    nodes: int
    has_pyxis: bool
    down: str = ""


def text(
    name: str,
    command: str,
    nodes: Sequence[DraftNode],
    jobs: Jobs | None = None,
    left_out: Sequence[str] = (),
) -> str:
    """Return an inventory that ``check`` accepts; comments name what needs a look.

    Args:
        command: the command line that asked, for the first comment.
        jobs: None where nodes are reached by SSH.
        left_out: why hosts of a list are not among the nodes.
    """
    has_docker = any(it.found and (it.found.facts.docker or it.found.sudo) for it in nodes)
    runtime = "docker" if has_docker else "process"  # of all nodes: containers where any has Docker
    if jobs and jobs.has_pyxis:
        runtime = "pyxis"
    settings = [_settings(node, jobs, runtime) for node in nodes]
    answered = [said for said, node in zip(settings, nodes, strict=True) if node.found]
    common = _common(answered) or _common(settings)
    lines = [
        f"# Written by: {command}",
        "# What is declared here is what provision demands; correct it where a node was not well.",
        *(f"# {words.printable(note)}" for note in (*left_out, *_notes(nodes, jobs, runtime))),
        f"name: {name}",
    ]
    if jobs:
        account = f", account: {scalar(jobs.account)}" if jobs.account else ""
        lines += [
            "scheduler: slurm",
            f"slurm: {{partition: {scalar(jobs.partition)}{account}, time: {json.dumps(jobs.time)},"
            f" nodes: {jobs.nodes}}} # a job gets so many whole nodes for so long",
        ]
    lines.append("defaults: # of all nodes" + ("" if jobs else "; each may be overridden per node"))
    lines += [f"  {key}: {value}" for key, value in common.items()]
    if runtime == "docker":
        lines += [
            "container: # how containers are started; least privilege",
            "  shm_size: 16g",
            "  ulimits: {memlock: -1, stack: 67108864} # InfiniBand and RoCE need memlock",
        ]
    if runtime != "process":
        lines.append("images: [reference-rn50] # what provision prepares: those of your playbooks")
    if not jobs:
        lines.append("nodes: # in rank order")
        for own in settings:
            differs = {key: value for key, value in own.items() if common.get(key) != value}
            lines.append(f"  - {{{', '.join(f'{key}: {said}' for key, said in differs.items())}}}")
    return "\n".join(lines) + "\n"


def _common(settings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what most nodes say, key by key, where it is said by all of them."""
    keys = dict.fromkeys(key for said in settings for key in said if key not in _OF_A_NODE)
    return {
        key: Counter(said[key] for said in settings).most_common(1)[0][0]
        for key in keys
        if all(key in said for said in settings)
    }


def _settings(node: DraftNode, jobs: Jobs | None, runtime: str) -> dict[str, str]:
    found = node.found
    said = {
        key: scalar(value) if isinstance(value, str) else json.dumps(value)
        for key, value in node.entry.items()
        if not jobs
    }
    claimed = {"gpus": f"{{count: {node.claimed_gpus}}}"} if node.claimed_gpus else {}
    if found is None:
        return said | claimed
    said["runtime"] = runtime
    if found.sudo and runtime == "docker":
        said["sudo"] = "true"
    if models := found.models:
        is_one = len({*models}) == 1 and "?" not in models
        model = f", model: {scalar(models[0])}" if is_one else ""
        said["gpus"] = f"{{count: {len(models)}{model}}}"
    elif jobs:
        said |= claimed
    said |= _fabric(found)
    # The interface with the address that was reached, else that of the default route.
    own = {node.address, found.server}
    addresses = (found.facts.host.addresses or {}).items()
    reached = next((name for name, at in addresses if own & set(at)), found.route)
    if reached and (jobs or not node.is_here):
        said["interface"] = scalar(reached)
    return said


def _fabric(found: Discovered) -> dict[str, str]:
    used, _ = adapters(found)
    if not used:
        return {}
    rows = (
        f"{{name: {scalar(port.name)}, rate_gbps: {port.rate_gbps}, link_layer: {port.link_layer}}}"
        for port in used
    )
    said = {"hcas": f"[{', '.join(rows)}]"}
    # The lowest index at which each adapter has a routable RoCE v2 address.
    usable = [
        (gid.hca, gid.index)
        for gid in found.gids
        if gid.kind == "RoCE v2" and not gid.address.startswith("fe80:")
    ]
    indices = [{index for hca, index in usable if hca == port.name} for port in used]
    if used[0].link_layer == "Ethernet" and (common := set.intersection(*indices)):
        said["roce"] = f"{{gid_index: {min(common)}}}"
    return said


def adapters(found: Discovered) -> tuple[tuple[HcaPort, ...], tuple[str, ...]]:
    """Return the ports that training should use, and why others are left out.

    Active ones; of those the ones near a GPU, where the topology tells near from far; of one link
    layer, that of the greater bandwidth.
    """
    ports = found.facts.infiniband or ()
    active = [port for port in ports if port.state == "Active"]
    out = [f"{port.name} is not active" for port in ports if port.state != "Active"]
    if wires := found.facts.topology:
        links = [wires.links.get(gpu, {}) for gpu in wires.gpus]
        near = [port for port in active if any(link.get(port.name) in _NEAR for link in links)]
        near = near or active
        out += [f"{port.name} is far from every GPU" for port in active if port not in near]
        active = near
    speeds: Counter[str | None] = Counter()
    for port in active:
        speeds[port.link_layer] += int(port.rate_gbps or 0)
    if len(speeds) > 1:
        layer = speeds.most_common(1)[0][0]
        out += [f"{p.name} speaks {p.link_layer}" for p in active if p.link_layer != layer]
        active = [port for port in active if port.link_layer == layer]
    first = {port.name: port for port in reversed(active)}
    return tuple(sorted(first.values(), key=lambda port: (len(port.name), port.name))), tuple(out)


def _notes(nodes: Sequence[DraftNode], jobs: Jobs | None, runtime: str) -> Iterator[str]:
    """Yield the comments, each a line that may have characters of any kind."""
    if jobs:
        yield f"{nodes[0].name} was asked, and stands for all nodes of the partition."
        if jobs.down:
            yield f"Not counted in `nodes`: {jobs.down} (`sinfo -R` says why)"
    for node in nodes:
        notes: Iterable[str] = (f"was not asked: {_line(node.why)}",)
        if node.found:
            notes = _of_node(node.found, jobs, runtime)
        yield from (f"{node.name}: {note}" for note in notes)


def _of_node(found: Discovered, jobs: Jobs | None, runtime: str) -> Iterator[str]:
    if found.facts.docker is None and not found.sudo and runtime != "pyxis":
        why = _line(found.why_no_docker)
        yield f"no Docker ({why}): mend it and ask again, or write `runtime: process` for all nodes"
    if not found.models:
        yield "nvidia-smi names no GPU; playbooks need `device: cpu` there"
    elif len({*found.models}) > 1:
        yield "GPUs of several models; choose by gpus: {use: [...]}"
    if found.slurm and not jobs:
        yield f"{_line(found.slurm)} is there; where it gives the nodes, write `scheduler: slurm`"
    yield from (f"adapter left out: {reason}" for reason in adapters(found)[1])


def _line(text: str) -> str:
    return words.cut(words.printable(" ".join(text.split())))


def scalar(value: str) -> str:
    """Return a text as strict YAML, quoted where it could mean anything else."""
    plain = _SCALAR.fullmatch(value) and value.casefold() not in _NO_WORDS
    return value if plain or _IPV4.fullmatch(value) else json.dumps(value, ensure_ascii=False)
