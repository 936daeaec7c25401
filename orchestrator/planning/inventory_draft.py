"""An inventory's text, with comments, from what machines say of themselves."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import words
from orchestrator.planning import fabric_draft
from orchestrator.planning.fabric_draft import scalar
from orchestrator.probes.discovery import Discovered

_OF_A_NODE = frozenset({"jump"})  # which an inventory takes for each node alone
_WITHOUT_DOCKER = {
    "docker": "other nodes have it; mend it, or write `runtime: process` for all",
    "process": "tasks run as plain processes there; mend it and ask again for containers",
}


@dataclass(frozen=True, slots=True)
class DraftNode:
    """A node of the inventory to be.

    Args:
        found: None where it did not answer; ``why`` then says why.
        claimed_gpus: what a list says that it has.
        ignored: settings of the list that no inventory can hold.
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
    jump: str | None = None
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Jobs:
    """The Slurm partition to take nodes from, as one of its nodes describes it.

    Args:
        has_pyxis: whether its srun starts containers.
        down: the nodes of the partition that no job gets, with what Slurm says of them.
    """

    partition: str
    account: str | None
    time: str
    nodes: int
    has_pyxis: bool
    down: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that the inventory is written from.

    Args:
        command: the command line that asked, for the first comment.
        agent: whether ssh-agent signs.
        known_hosts: the file of trusted host keys, where it is not the usual one.
        jobs: None where nodes are reached by SSH.
        left_out: why hosts of a list are not among the nodes.
    """

    name: str
    command: str
    nodes: tuple[DraftNode, ...]
    agent: bool = False
    known_hosts: str | None = None
    jobs: Jobs | None = None
    left_out: tuple[str, ...] = ()


def text(draft: Draft) -> str:
    """Return an inventory that ``check`` accepts; comments name what needs a look."""
    settings = [_settings(node, draft) for node in draft.nodes]
    common = _common([said for said, node in zip(settings, draft.nodes, strict=True) if node.found])
    common = common or _common(settings)
    lines = [
        f"# Written by: {draft.command}",
        "# What is declared here is what provision demands; correct it where a node was not well.",
        *_notes(draft),
        f"name: {draft.name}",
        *_jobs(draft.jobs),
        "defaults: # of all nodes" if draft.jobs else "defaults: # each may be overridden per node",
        *(f"  {key}: {value}" for key, value in common.items()),
        *_container(draft),
    ]
    if draft.jobs:
        return "\n".join(lines) + "\n"
    lines.append("nodes: # in rank order")
    for node, own in zip(draft.nodes, settings, strict=True):
        differs = {key: value for key, value in own.items() if common.get(key) != value}
        more = "".join(f", {key}: {value}" for key, value in differs.items())
        lines.append(f"  - {{name: {scalar(node.name)}, address: {scalar(node.address)}{more}}}")
    return "\n".join(lines) + "\n"


def _settings(node: DraftNode, draft: Draft) -> dict[str, str]:
    found, said = node.found, _reached(node, draft)
    if found is None:
        return {
            **said,
            **({"gpus": f"{{count: {node.claimed_gpus}}}"} if node.claimed_gpus else {}),
        }
    said["runtime"] = _runtime(draft)
    if found.sudo and said["runtime"] == "docker":
        said["sudo"] = "true"
    if found.gpu:
        models = {gpu.model for gpu in found.gpu.gpus}
        model = (
            f", model: {scalar(str(*models))}" if len(models) == 1 and None not in models else ""
        )
        said["gpus"] = f"{{count: {len(found.gpu.gpus)}{model}}}"
    elif draft.jobs and node.claimed_gpus:
        said["gpus"] = f"{{count: {node.claimed_gpus}}}"
    said |= fabric_draft.settings(found)
    if interface := _interface(node, found):
        said["interface"] = scalar(interface)
    if found.data:
        pairs = (f"{name}: {scalar(path)}" for name, path in sorted(found.data.items()))
        said["data"] = f"{{{', '.join(pairs)}}}"
    return said


def _runtime(draft: Draft) -> str:
    """Return the runtime of all nodes: containers where any node has Docker."""
    if draft.jobs and draft.jobs.has_pyxis:
        return "pyxis"
    found = [node.found for node in draft.nodes if node.found]
    return "docker" if any(answer.docker or answer.sudo for answer in found) else "process"


def _jobs(jobs: Jobs | None) -> Iterator[str]:
    if jobs is None:
        return
    account = f", account: {scalar(jobs.account)}" if jobs.account else ""
    yield "scheduler: slurm"
    yield (
        f"slurm: {{partition: {scalar(jobs.partition)}{account}, time: {json.dumps(jobs.time)},"
        f" nodes: {jobs.nodes}}} # a job gets so many whole nodes for so long"
    )


def _reached(node: DraftNode, draft: Draft) -> dict[str, str]:
    if draft.jobs:
        return {}
    return {"transport": "local"} if node.is_here else _login(node, draft)


def _login(node: DraftNode, draft: Draft) -> dict[str, str]:
    said = {"user": scalar(node.user), "port": str(node.port)}
    if node.identity:
        said["identity"] = scalar(node.identity)
    if draft.known_hosts:
        said["known_hosts"] = scalar(draft.known_hosts)
    if node.jump:
        said["jump"] = scalar(node.jump)
    return {**said, **({"agent": "true"} if draft.agent else {})}


def _interface(node: DraftNode, found: Discovered) -> str:
    """Return the interface with the address that was reached, else that of the default route."""
    for name, addresses in (found.host.addresses or {}).items():
        if not node.is_here and {node.address, found.server} & set(addresses):
            return name
    return "" if node.is_here else found.route


def _common(settings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what most nodes say, key by key, where it is said by all of them."""
    keys = dict.fromkeys(key for said in settings for key in said if key not in _OF_A_NODE)
    return {
        key: Counter(said[key] for said in settings).most_common(1)[0][0]
        for key in keys
        if all(key in said for said in settings)
    }


def _notes(draft: Draft) -> Iterator[str]:
    if draft.jobs:
        yield f"# {draft.nodes[0].name} was asked, and stands for all nodes of the partition."
        if draft.jobs.down:
            yield f"# Not counted in `nodes`: {words.printable(draft.jobs.down)}"
    yield from (f"# {words.printable(reason)}" for reason in draft.left_out)
    for node in draft.nodes:
        notes = [f"not taken from the list: {_line(setting)}" for setting in node.ignored]
        if node.found is None:
            notes.append(f"was not asked: {_line(node.why)}")
        else:
            notes += _of_node(node, node.found, draft)
        yield from (f"# {node.name}: {note}" for note in notes)


def _of_node(node: DraftNode, found: Discovered, draft: Draft) -> Iterator[str]:
    runtime = _runtime(draft)
    if found.docker is None and not found.sudo and runtime != "pyxis":
        yield f"no Docker ({_line(found.why_no_docker)}): {_WITHOUT_DOCKER[runtime]}"
    if found.gpu is None and node.claimed_gpus and draft.jobs:
        yield (
            f"Slurm gives {node.claimed_gpus} GPUs, and nvidia-smi names none: see whether the"
            " driver runs there; without GPUs remove `gpus`"
        )
    elif found.gpu is None:
        yield "nvidia-smi names no GPU; playbooks need `device: cpu` there"
    elif len({gpu.model for gpu in found.gpu.gpus}) > 1:
        yield "GPUs of several models; choose by gpus: {use: [...]}"
    if found.slurm and not draft.jobs:
        yield f"{_line(found.slurm)} is there; where it gives the nodes, write `scheduler: slurm`"
    yield from (f"adapter left out: {reason}" for reason in fabric_draft.adapters(found)[1])


def _line(text: str) -> str:
    return words.cut(words.printable(" ".join(text.split())))


def _container(draft: Draft) -> Iterator[str]:
    runtime = _runtime(draft)
    if runtime == "pyxis":
        yield "images: [reference-rn50] # what provision prepares; see `dlperf-orch list images`"
    if runtime != "docker":
        return
    yield "container: # how containers are started; least privilege"
    yield "  shm_size: 16g"
    yield "  ulimits: {memlock: -1, stack: 67108864} # InfiniBand and RoCE need memlock"
    yield "images: [reference-rn50] # what provision prepares: the image of each of your playbooks"
