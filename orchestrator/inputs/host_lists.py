"""Hosts as a command line names them, and as lists of OpenMPI, Slurm and Ansible do."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from orchestrator import errors
from orchestrator.model import slurm
from orchestrator.model.node import NodeEntry
from orchestrator.model.text import ip, is_name, parse_endpoint
from orchestrator.planning.inventory_draft import DraftNode

_OPTIONS = ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")
# Options of ssh that name a jump host: `-J me@login`, `-o ProxyJump=me@login`, and
# `-o ProxyCommand="ssh -W %h:%p -q me@login"`, as Ansible's manual has it.
_JUMP = re.compile(
    r"(?:-J\s*|-o\s*proxyjump=)(?!none\b)([^\s,]+)(?!\S)"
    r"|-o\s*proxycommand=([\"'])ssh(?: -q)? -W %h:%p(?: -q)? ([^\s-]\S*)\2",
    re.IGNORECASE,
)


@dataclass(slots=True)
class HostList:
    """The hosts of a list, in its order, and why others are left out."""

    path: Path
    hosts: list[DraftNode] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, where: str, parse: Callable[[], DraftNode]) -> None:
        """Add a host; leave out one that no inventory can hold, with its place in the list."""
        try:
            host = parse()
            NodeEntry.model_validate(host.entry)
            self.hosts.append(host)
        except ValidationError as error:
            wrong = error.errors()[0]
            reason = f"{wrong['loc'][0]}: {wrong['msg'].removeprefix('Value error, ')}"
            self.refused.append(f"{self.path}:{where}: {reason}")
        except ValueError as error:
            self.refused.append(f"{self.path}:{where}: {error}")


def host(word: str) -> DraftNode:
    """Return the host of ``[user@]host[:port]``, or of an IPv6 address without a port.

    Raises:
        UsageError: HOST; that is no host.
    """
    try:
        return _parse_endpoint(word)
    except ValueError as error:
        needed = "a host such as gpu01, user@10.0.0.11:22, [fd00::11]:22 or localhost"
        raise errors.UsageError(str(error), code="HOST", fix=f"give {needed}") from error


def _parse_endpoint(word: str, gpus: int | None = None) -> DraftNode:
    at = parse_endpoint(word)
    return DraftNode(derive_name(at.host), at.host, at.user, at.port, claimed_gpus=gpus)


def hostfile(path: Path) -> HostList:
    """Return the hosts of an OpenMPI hostfile.

    Source: Open MPI, ``man orte_hosts``: one host a line, ``slots=``, comments after ``#``.
    """
    found = HostList(path)
    for number, line in enumerate(_read(path).splitlines(), 1):
        said = line.partition("#")[0]
        slots = re.search(r"\sslots\s*=\s*([0-9]+)(?!\S)", said)
        for word in said.split()[:1]:
            gpus = int(slots[1]) if slots else None
            found.add(str(number), partial(_parse_endpoint, word, gpus))
    return found


def scontrol(path: Path) -> HostList:
    """Return the nodes in the output of ``scontrol show nodes``, with or without ``-o``."""
    found = HostList(path)
    for node in map(slurm.SlurmNode.of, slurm.records(_read(path), "nodename")):
        name, gpus = derive_name(node.name), node.gpus or None
        found.add(node.name, partial(DraftNode, name, node.address, claimed_gpus=gpus))
    return found


class _Group(BaseModel):
    """A group in the output of ``ansible-inventory --list``, or its ``_meta``."""

    hosts: tuple[str, ...] = ()
    hostvars: dict[str, dict[str, object]] = {}


def ansible(path: Path) -> HostList:
    """Return the hosts of what ``ansible-inventory --list`` prints.

    Raises:
        UsageError: NO-FILE, HOST; it cannot be read.
    """
    found = HostList(path)
    try:
        groups = TypeAdapter(dict[str, _Group]).validate_json(_read(path))
    except ValidationError as error:
        raise errors.UsageError(
            f"{path}: no JSON of Ansible's; needed what `ansible-inventory --list` prints",
            code="HOST",
            fix=f"ansible-inventory -i {path} --list >hosts.json, then --ansible hosts.json",
        ) from error
    known = groups.get("_meta", _Group()).hostvars
    for name in dict.fromkeys(name for group in groups.values() for name in group.hosts):
        found.add(name, partial(_parse_variables, name, known.get(name, {})))
    return found


def _parse_variables(name: str, said: Mapping[str, object]) -> DraftNode:
    known = {key: str(value) for key, value in said.items() if value}
    hop = _JUMP.search(" ".join(known.get(key, "") for key in _OPTIONS))
    at = parse_endpoint(known.get("ansible_host", name))
    port = known.get("ansible_port", "")
    if port and not port.isdecimal():
        raise ValueError(f"ansible_port is {port}; needed a number")
    return DraftNode(
        derive_name(name),
        at.host,
        known.get("ansible_user", at.user),
        at.port or (int(port) if port else None),
        known.get("ansible_ssh_private_key_file", known.get("ansible_private_key_file")),
        jump=(hop[1] or hop[3]) if hop else None,
    )


def distinct(found: Iterable[DraftNode]) -> tuple[DraftNode, ...]:
    """Return each host once, as it is listed first, by its first label where that is its own."""
    first: dict[str, DraftNode] = {}
    for host in found:
        first.setdefault(host.name.casefold(), host)
    short = {}
    for key, host in first.items():
        label = host.name.split(".")[0]
        short[key] = label if is_name(label) and not ip(host.name) else host.name
    count = Counter(label.casefold() for label in short.values())
    return tuple(
        replace(host, name=short[key]) if count[short[key].casefold()] == 1 else host
        for key, host in first.items()
    )


def derive_name(address: str) -> str:
    """Return an address as a node's name; one that is too long is cut at its first dot."""
    name = re.sub("[:%]", "-", address)
    name = name if len(name) < 64 else name.partition(".")[0]
    return name if is_name(name) else f"node-{name}"[:63].rstrip("-.")


def _read(path: Path) -> str:
    """Return the text of a list, of standard input for ``-``.

    Raises:
        UsageError: NO-FILE.
    """
    try:
        source = 0 if path == Path("-") else path
        with open(source, encoding="utf-8-sig", errors="replace", closefd=source == path) as file:
            return file.read()
    except OSError as error:
        raise errors.UsageError(
            f"cannot read {path}: {error.strerror}", code="NO-FILE", fix="give the path of a list"
        ) from error
