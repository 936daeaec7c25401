"""init: an inventory written from what machines say of themselves."""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import disk, errors, nodeset, processes, words
from orchestrator.cli.command import Face, command, quote_command
from orchestrator.cli.options import Nodes, needs
from orchestrator.console import Voice
from orchestrator.files import yaml_reader
from orchestrator.fleet import Answer, folded
from orchestrator.inputs import host_lists, sites, user_files
from orchestrator.inputs.host_lists import HostList
from orchestrator.model.slurm import walltime
from orchestrator.model.text import ip, is_name
from orchestrator.planning import inventory_draft
from orchestrator.planning.inventory_draft import DraftNode, Jobs
from orchestrator.probes.discovery import Discovered
from orchestrator.provisioning import discovered
from orchestrator.schedulers import addresses, slurm_queue
from orchestrator.submitting import one_step

MOST_S = 4 * 3600  # of a job, unless the user writes more
_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@command("init", "init bench@10.0.0.11 bench@10.0.0.12 -o inventory/mine.yaml")
def init(
    face: Face,
    hosts: Annotated[
        list[str] | None, typer.Argument(metavar="[USER@]HOST...", help="Or localhost.")
    ] = None,
    hostfile: Annotated[Path | None, typer.Option(help="A hostfile of OpenMPI.")] = None,
    ansible: Annotated[
        Path | None, typer.Option(help="Output of `ansible-inventory --list`.")
    ] = None,
    scontrol: Annotated[
        Path | None, typer.Option(metavar="FILE|-", help="Output of `scontrol show nodes`.")
    ] = None,
    slurm: Annotated[
        str | None, typer.Option(metavar="PARTITION", help="Ask one node of it by srun.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="With --slurm: who is charged.")] = None,
    nodes: Nodes = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: print it.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace it; keep the old file.")] = False,
    name: Annotated[str | None, typer.Option(help="Of the cluster; default: the file's.")] = None,
    user: Annotated[str | None, typer.Option(help="Who logs in; default: you.")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, metavar="N", help="Where sshd listens.")
    ] = None,
    identity: Annotated[str | None, typer.Option(help="The SSH key to offer.")] = None,
    agent: Annotated[bool, typer.Option("--agent", help="Let ssh-agent sign.")] = False,
    known_hosts: Annotated[str | None, typer.Option(help="File of trusted host keys.")] = None,
    jump: Annotated[
        str | None, typer.Option(metavar="[USER@]HOST[:PORT]", help="Reach hosts through it.")
    ] = None,
) -> int:
    needs("--out", out is not None, force=force)
    needs("--slurm", slurm is not None, account=account)
    voice = face.voice
    name = name or (out.stem if out else "mine")
    if out is not None and out.exists() and not force:
        raise errors.UsageError(
            f"{out} is there already", code="EXISTS", fix="give another -o, or --force"
        )
    jobs, refused = None, list[errors.DlperfError]()
    if slurm:
        by_ssh = (hosts, hostfile, ansible, scontrol, nodes, user, port, identity, known_hosts)
        if any((*by_ssh, agent, jump)):
            raise errors.UsageError(
                "hosts, or options of SSH, beside --slurm; needed one of both",
                code="HOST",
                fix="leave out the hosts, whose names Slurm gives, and how they are reached by SSH",
            )
        asked, answers, jobs = _ask_by_slurm(slurm, account, voice)
    else:
        readers = (
            (host_lists.hostfile, hostfile),
            (host_lists.ansible, ansible),
            (host_lists.scontrol, scontrol),
        )
        lists = [read(path) for read, path in readers if path]
        listed, refused = _list_hosts(hosts or (), lists, nodes)
        keys = (key for key in _KEYS if Path(key).expanduser().exists())
        key = identity or (None if agent else next(keys, _KEYS[0]))
        asked = tuple(
            replace(
                one,
                user=one.user or user or processes.user(),
                port=one.port or port or 22,
                identity=one.identity or key,
                jump=one.jump or jump,
                agent=agent,
                known_hosts=known_hosts,
            )
            for one in listed
        )
        voice.line(
            f"asking {words.count(len(asked), 'host')}: {nodeset.fold(one.name for one in listed)}"
        )
        answers = discovered.hosts(name, asked)
    asked = _use_hostnames(
        tuple(
            replace(node, found=answer.value, why=answer.error.cause if answer.error else "")
            for node, answer in zip(asked, answers, strict=True)
        )
    )
    written_by = words.printable(quote_command())
    left_out = tuple(error.cause for error in refused)
    text = inventory_draft.text(name, written_by, asked, jobs, left_out)
    user_files.judged_cluster(yaml_reader.document(text, str(out or "inventory")))
    failures = [*refused, *folded(answer.error for answer in answers if answer.error)]
    if out is None:
        voice.result(text.rstrip())
    else:
        with disk.on_disk(out, fix="give another -o"):
            before = out.read_bytes() if out.is_file() else b""
            if before not in (b"", text.encode()):
                names = (out.with_name(f"{out.name}.before-{number}") for number in count(1))
                kept = next(path for path in names if not path.exists())
                with disk.replacing(kept) as file:
                    os.fchmod(file.fileno(), out.stat().st_mode & 0o777)
                    file.write(before)
                voice.result(f"{kept}: what {out} was before")
        with disk.replacing(out, fix="give another -o") as file:
            file.write(text.encode())
        known = sum(node.found is not None for node in asked)
        voice.result(f"{out}: {words.count(known, 'node')} of {len(asked)} answered")
        checked = f"dlperf-orch check {out}; dlperf-orch provision {out} --lock"
        again = "what the errors say, then the same command with --force"
        voice.result(f"next: {again if failures else checked}")
    answered = {node.name: node.found is not None for node in asked}
    document = {"file": str(out) if out else None, "inventory": text, "nodes": answered}
    return voice.finish(document, failures)


def _list_hosts(
    named: Sequence[str], lists: Sequence[HostList], pattern: str | None
) -> tuple[tuple[DraftNode, ...], list[errors.DlperfError]]:
    """Return the hosts to ask, and an error for each that a list has and no inventory can."""
    found = [host_lists.host(text) for text in named]
    imported = [listed for one in lists for listed in one.hosts]
    reasons = [reason for one in lists for reason in one.refused]
    if any(not one.is_here for one in (*found, *imported)):
        here = [one.name for one in imported if one.is_here]
        reasons += [f"{name} is this machine; needed its address in the network" for name in here]
        imported = [one for one in imported if not one.is_here]
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
    if pattern is None:
        return hosts, refused
    names = sites.match_names([one.name for one in hosts], pattern)
    return tuple(one for one in hosts if one.name in names), refused


def _ask_by_slurm(
    name: str, account: str | None, voice: Voice
) -> tuple[tuple[DraftNode, ...], list[Answer[Discovered]], Jobs]:
    """Return one node of a partition, and its answer to a step of Slurm's."""
    partition = one_step.partition(name)
    up = partition.up
    if not up:
        raise errors.UnfitError(
            f"no node of partition {name} is up (`sinfo -R` says why)",
            code="QUEUE-NEVER",
            fix="name another partition, or the same command once a node is up",
        )
    voice.line(f"asking one of {words.count(len(up), 'node')} of partition {name} by srun")
    found = discovered.of_partition(partition, account)
    host = found.facts.host.hostname
    known = next((node for node in up if host in (node.name, node.name.partition(".")[0])), None)
    node = DraftNode(
        host,
        addresses.look_up(known.address) if known else "",
        claimed_gpus=(known.gpus if known else partition.gpus) or None,
    )
    time = walltime(MOST_S if partition.limit_s is None else min(partition.limit_s, MOST_S))
    has_pyxis = "--container-image" in slurm_queue.call("srun", "--help")
    nodes = min(len(up), partition.most)
    jobs = Jobs(name, account, time, nodes, has_pyxis, partition.down)
    return (node,), [Answer(node.name, found, None, 0.0)], jobs


def _use_hostnames(nodes: tuple[DraftNode, ...]) -> tuple[DraftNode, ...]:
    """Return the nodes; those listed by IP address under their hostnames if these differ."""
    names: list[str] = []
    for node in nodes:
        label = node.found.facts.host.hostname.split(".")[0] if node.found else ""
        is_plain = ip(node.address) and node.name == host_lists.derive_name(node.address)
        names.append(label if is_plain and is_name(label) else node.name)
    if len({name.casefold() for name in names}) < len(nodes):
        return nodes
    return tuple(replace(node, name=name) for node, name in zip(nodes, names, strict=True))
