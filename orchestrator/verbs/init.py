"""init: an inventory written from what machines say of themselves."""

import os
import sys
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from orchestrator import disk, errors, nodeset, processes, words
from orchestrator.console import Voice
from orchestrator.files import yaml_reader
from orchestrator.fleet import Answer, folded
from orchestrator.inputs import host_lists, sites, user_files
from orchestrator.inputs.host_lists import HostList
from orchestrator.model.slurm import walltime
from orchestrator.model.text import ip, is_name
from orchestrator.planning import inventory_draft
from orchestrator.planning.inventory_draft import Draft, DraftNode, Jobs
from orchestrator.probes.discovery import Discovered
from orchestrator.provisioning import discovered
from orchestrator.schedulers import addresses, slurm_queue
from orchestrator.submitting import one_step

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
MOST_S = 4 * 3600  # of a job, unless the user writes more
_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of hosts: the command line and other tools' lists.

    Args:
        scontrol: a file, or ``-`` for standard input.
        pattern: of names, for those hosts alone.
        partition: of Slurm, one node of which is asked by a step; then nothing else is given.
        account: that the step is charged to.
    """

    hosts: tuple[str, ...] = ()
    hostfile: Path | None = None
    ansible: Path | None = None
    scontrol: str | None = None
    partition: str | None = None
    account: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """The default login of nodes that do not give their own."""

    user: str | None = None
    port: int | None = None
    identity: str | None = None
    agent: bool = False
    known_hosts: str | None = None
    jump: str | None = None


def init(
    sources: Sources, login: Login, voice: Voice, out: Path | None, cluster: str | None, force: bool
) -> int:
    """Ask every host, and write or print an inventory that ``check`` accepts; exit code.

    Hosts that did not answer are in it too, with the reason in a comment.
    """
    name = _choose_name(cluster, out)
    if out is not None and out.exists() and not force:
        raise errors.UsageError(
            f"{out} is there already", code="EXISTS", fix="give another -o, or --force"
        )
    jobs, refused = None, list[errors.DlperfError]()
    if sources.partition:
        if login != Login():
            raise errors.UsageError(
                "--slurm, and how hosts are reached by SSH; needed one of both",
                code="HOST",
                fix="leave out --user, --port, --identity, --agent, --known-hosts and --jump",
            )
        nodes, answers, jobs = _ask_by_slurm(sources, sources.partition, voice)
    else:
        listed, refused = _list_hosts(sources)
        nodes = tuple(_complete_login(one, login) for one in listed)
        voice.line(
            f"asking {words.count(len(nodes), 'host')}: {nodeset.fold(one.name for one in listed)}"
        )
        for setting in dict.fromkeys(setting for one in listed for setting in one.ignored):
            hosts = nodeset.fold(one.name for one in listed if setting in one.ignored)
            voice.line(f"{hosts}: not taken from the list: {words.printable(setting)}")
        answers = discovered.hosts(name, nodes, agent=login.agent, known_hosts=login.known_hosts)
    nodes = _use_hostnames(
        tuple(
            replace(node, found=answer.value, why=answer.error.cause if answer.error else "")
            for node, answer in zip(nodes, answers, strict=True)
        )
    )
    command = " ".join(["dlperf-orch", *(words.printable(word) for word in sys.argv[1:])])
    left_out = tuple(error.cause for error in refused)
    draft = Draft(name, command, nodes, login.agent, login.known_hosts, jobs, left_out)
    text = inventory_draft.text(draft)
    user_files.judged_cluster(yaml_reader.document(text, str(out or "inventory")))
    failures = [*refused, *folded(answer.error for answer in answers if answer.error)]
    if out is None:
        voice.result(text.rstrip())
    else:
        kept = _keep_replaced(text, out)
        with disk.on_disk(out, fix="give another -o"), disk.replacing(out) as file:
            file.write(text.encode())
        if kept:
            voice.result(f"{kept}: what {out} was before")
        known = sum(node.found is not None for node in nodes)
        voice.result(f"{out}: {words.count(known, 'node')} of {len(nodes)} answered")
        voice.result(f"next: {_advise({failure.code for failure in failures}, out)}")
    answered = {node.name: node.found is not None for node in nodes}
    document = {"file": str(out) if out else None, "inventory": text, "nodes": answered}
    return voice.finish(document, failures)


def _choose_name(cluster: str | None, out: Path | None) -> str:
    name = cluster or (out.stem if out else "mine")
    if not is_name(name):
        raise errors.UsageError(
            f"{words.shown(name)} is no name of a cluster",
            code="HOST",
            fix="give --name with 2 to 63 letters, digits, '_', '.' or '-'",
        )
    return name


def _list_hosts(sources: Sources) -> tuple[tuple[DraftNode, ...], list[errors.DlperfError]]:
    """Return the hosts to ask, and an error for each that a list has and no inventory can."""
    if sources.account:
        raise errors.UsageError(
            "--account without --slurm; nobody is charged for hosts that are asked by SSH",
            code="HOST",
            fix="name a partition with --slurm, or leave it out",
        )
    lists = tuple(_read_lists(sources))
    found = [host_lists.host(text) for text in sources.hosts]
    imported = [listed for one in lists for listed in one.hosts]
    reasons = [reason for one in lists for reason in one.refused]
    if any(one.address not in _HERE for one in (*found, *imported)):
        here = [one for one in imported if one.address in _HERE]
        imported = [one for one in imported if one not in here]
        reasons += [
            f"{one.name} is this machine; needed its address in the network" for one in here
        ]
    found += imported
    refused: list[errors.DlperfError] = [
        errors.UsageError(
            f"left out: {reason}", code="HOST", fix="correct the list, or name the host beside it"
        )
        for reason in reasons
    ]
    if not found:
        raise errors.UsageError(
            "; ".join(reasons) or "no host is named",
            code="HOST",
            fix="name hosts, or give --hostfile, --ansible, --scontrol or --slurm PARTITION",
        )
    hosts = host_lists.distinct(found)
    if sources.pattern is None:
        return hosts, refused
    names = sites.match_names([one.name for one in hosts], sources.pattern)
    return tuple(one for one in hosts if one.name in names), refused


def _read_lists(sources: Sources) -> Iterator[HostList]:
    if sources.hostfile:
        yield host_lists.hostfile(sources.hostfile)
    if sources.ansible:
        yield host_lists.ansible(sources.ansible)
    if sources.scontrol == "-":
        yield host_lists.scontrol(sys.stdin.read(), "standard input")
    elif sources.scontrol:
        yield host_lists.scontrol(host_lists.text(Path(sources.scontrol)), sources.scontrol)


def _ask_by_slurm(
    sources: Sources, name: str, voice: Voice
) -> tuple[tuple[DraftNode, ...], list[Answer[Discovered]], Jobs]:
    """Return one node of a partition, and its answer to a step of Slurm's."""
    lists = (sources.hosts, sources.hostfile, sources.ansible, sources.scontrol, sources.pattern)
    if any(lists):
        raise errors.UsageError(
            "hosts are named beside --slurm; needed one of both",
            code="HOST",
            fix="leave out the hosts, whose names Slurm gives, or --slurm",
        )
    partition = one_step.partition(name)
    up = partition.up
    if not up:
        raise errors.UnfitError(
            f"no node of partition {name} is up: {partition.down}",
            code="QUEUE-NEVER",
            fix="name another partition, or the same command once a node is up",
        )
    voice.line(f"asking one of {words.count(len(up), 'node')} of partition {name} by srun")
    found = discovered.of_partition(partition, sources.account)
    host = found.host.hostname
    known = next((node for node in up if host in (node.name, node.name.partition(".")[0])), None)
    node = DraftNode(
        host,
        addresses.look_up(known.address) if known else "",
        claimed_gpus=(known.gpus if known else partition.gpus) or None,
    )
    time = walltime(MOST_S if partition.limit_s is None else min(partition.limit_s, MOST_S))
    has_pyxis = "--container-image" in slurm_queue.call("srun", "--help")
    nodes = min(len(up), partition.most)
    jobs = Jobs(name, sources.account, time, nodes, has_pyxis, partition.down)
    return (node,), [Answer(node.name, found, None, 0.0)], jobs


def _complete_login(listed: DraftNode, login: Login) -> DraftNode:
    is_here = listed.address in _HERE
    return replace(
        listed,
        address="127.0.0.1" if is_here else listed.address,
        user=listed.user or login.user or processes.user(),
        port=listed.port or login.port or 22,
        identity=listed.identity or login.identity or _choose_key(login),
        jump=None if is_here else listed.jump or login.jump,
        is_here=is_here,
    )


def _choose_key(login: Login) -> str | None:
    if login.agent:
        return None
    return next((key for key in _KEYS if Path(key).expanduser().exists()), _KEYS[0])


def _use_hostnames(nodes: tuple[DraftNode, ...]) -> tuple[DraftNode, ...]:
    """Return the nodes; those listed by IP address under their hostnames if these differ."""
    names: list[str] = []
    for node in nodes:
        label = node.found.host.hostname.split(".")[0] if node.found else ""
        is_plain = ip(node.address) and node.name == host_lists.derive_name(node.address)
        names.append(label if is_plain and is_name(label) else node.name)
    if len({name.casefold() for name in names}) < len(nodes):
        return nodes
    return tuple(replace(node, name=name) for node, name in zip(nodes, names, strict=True))


def _keep_replaced(text: str, out: Path) -> Path | None:
    """Keep the file that is replaced, with all edits, and return where; None without one."""
    if not out.is_file():
        return None
    with disk.on_disk(out, fix="give another -o"):
        before = out.read_bytes()
        if before == text.encode():
            return None
        names = (out.with_name(f"{out.name}.before-{number}") for number in count(1))
        kept = next(path for path in names if not path.exists())
        with disk.replacing(kept) as file:
            os.fchmod(file.fileno(), out.stat().st_mode & 0o777)
            file.write(before)
    return kept


def _advise(codes: Set[str], out: Path) -> str:
    """Return what to do after hosts failed with these codes, or with none."""
    if not codes:
        return f"dlperf-orch check {out}; dlperf-orch provision {out} --lock"
    if "SSH-HOSTKEY-UNKNOWN" in codes:
        return f"dlperf-orch trust {out}; then the same command with --force"
    if codes & {"SSH-KEY", "SSH-AGENT"}:
        return "the same command with --force and --identity KEY, or with --agent"
    return "once the others answer, the same command with --force"
