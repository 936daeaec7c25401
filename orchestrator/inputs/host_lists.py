"""Hosts as a command line names them, and as lists of OpenMPI, Slurm and Ansible do."""

import re
import shlex
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from orchestrator import errors
from orchestrator.model import slurm
from orchestrator.model.node import NodeEntry
from orchestrator.model.text import ip, is_name, parse_endpoint, split_port
from orchestrator.planning.inventory_draft import DraftNode

_SECTION = re.compile(r"\[([^\]:]+)(?::(vars|children))?\](?:\s*[#;].*)?")
_UNHELD = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password")
_BY_SSH = ("ssh", "smart", "paramiko", "local")  # local: such as localhost
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
    """The hosts of a list, in its order, and why others are left out.

    Args:
        shown: where the list comes from, for messages.
    """

    shown: str
    hosts: list[DraftNode] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, where: str, host: DraftNode) -> None:
        """Take the host, or say why no inventory can hold it.

        Args:
            where: a line, or the host's name.
        """
        keys = ("name", "address", "user", "port", "identity", "jump")
        said = {key: value for key in keys if (value := getattr(host, key)) is not None}
        try:
            NodeEntry.model_validate(said)
            self.hosts.append(host)
        except ValidationError as error:
            wrong = error.errors()[0]
            reason = wrong["msg"].removeprefix("Value error, ")
            self.refuse(where, f"{wrong['loc'][0]}: {reason}")

    def refuse(self, where: str, reason: object) -> None:
        """Leave out what stands at a place of the list."""
        self.refused.append(f"{self.shown}:{where}: {reason}")


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


def _parse_endpoint(word: str) -> DraftNode:
    at = parse_endpoint(word)
    return DraftNode(derive_name(at.host), at.host, at.user, at.port)


def hostfile(path: Path) -> HostList:
    """Return the hosts of an OpenMPI hostfile.

    Source: Open MPI, ``man orte_hosts``: one host a line, ``slots=``, comments after ``#``.
    """
    found = HostList(str(path))
    for number, line in enumerate(text(path).splitlines(), 1):
        word, *settings = re.sub(r"\s*=\s*", "=", line.partition("#")[0]).split() or [""]
        if not word:
            continue
        said = {key: value for key, _, value in (setting.partition("=") for setting in settings)}
        try:
            listed = _parse_endpoint(word)
        except ValueError as error:
            found.refuse(str(number), error)
            continue
        slots = said.get("slots", "")
        listed = replace(
            listed,
            claimed_gpus=int(slots) if slots.isdecimal() else None,
            # max-slots limits ranks where mpirun places them
            ignored=tuple(key for key in said if "slots" not in key),
        )
        found.add(str(number), listed)
    return found


def scontrol(output: str, shown: str) -> HostList:
    """Return the nodes in the output of ``scontrol show nodes``, with or without ``-o``.

    Args:
        shown: where the text comes from, for messages.
    """
    found = HostList(shown)
    for node in map(slurm.SlurmNode.of, slurm.records(output, "nodename")):
        listed = DraftNode(derive_name(node.name), node.address, claimed_gpus=node.gpus or None)
        found.add(node.name, listed)
    return found


class _Group(BaseModel):
    """A group in the output of ``ansible-inventory --list``, or its ``_meta``."""

    hosts: tuple[str, ...] = ()
    hostvars: dict[str, dict[str, object]] = {}


def ansible(path: Path) -> HostList:
    """Return the hosts of what ``ansible-inventory --list`` prints, or of a plain INI inventory.

    Of an INI inventory host, port, user, key and jump host are read, also from variables of a
    group; Ansible itself knows what else it means.

    Source: Ansible documentation, "How to build your inventory".

    Raises:
        UsageError: NO-FILE, HOST; it cannot be read.
    """
    content, found = text(path), HostList(str(path))
    lines = (line.partition(" #")[0].strip() for line in content.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    try:
        if re.match(r"---|[\w.-]+:(\s|$)", first):  # such as `all:`
            raise ValueError("an inventory in YAML")
        if first.startswith("{"):
            groups = TypeAdapter(dict[str, _Group]).validate_json(content)
            known = groups.get("_meta", _Group()).hostvars
            names = dict.fromkeys(name for group in groups.values() for name in group.hosts)
            variables: Mapping[str, Mapping[str, object]] = {
                name: known.get(name, {}) for name in names
            }
        else:
            variables = _read_ini(content, found)
    except ValueError as error:
        seen = "no JSON of Ansible's" if isinstance(error, ValidationError) else error
        raise errors.UsageError(
            f"{path}: {seen}; needed what `ansible-inventory --list` prints, or a plain INI",
            code="HOST",
            fix=f"ansible-inventory -i {path} --list >hosts.json, then --ansible hosts.json",
        ) from error
    for name, said in variables.items():
        try:
            found.add(name, _parse_variables(name, said))
        except ValueError as error:
            found.refuse(name, error)
    return found


def _read_ini(content: str, found: HostList) -> Mapping[str, Mapping[str, object]]:
    """Return the variables of each host; its own replace its groups', these those of all.

    Raises:
        ValueError: groups of groups.
    """
    hosts: dict[str, dict[str, object]] = {}
    groups: dict[str, dict[str, object]] = defaultdict(dict)
    members: dict[str, list[str]] = defaultdict(list)
    section, kind = "ungrouped", None
    for number, line in enumerate((line.strip() for line in content.splitlines()), 1):
        if line[:1] in ("", "#", ";"):
            continue
        if head := _SECTION.fullmatch(line):
            section, kind = head[1], head[2]
            if kind == "children":
                raise ValueError(f"line {number} has {line}, a group of groups")
            continue
        try:
            if kind == "vars":
                key, _, value = line.partition("=")
                groups[section][key.strip()] = " ".join(shlex.split(value, comments=True))
                continue
            place, *words = shlex.split(line, comments=True)
            if "[" in place[1:]:
                raise ValueError(f"got {place}; needed each name written out")
            name, port = split_port(place)
            own = dict(word.split("=", 1) for word in words if "=" in word)
            hosts.setdefault(name, {}).update({"ansible_port": port, **own} if port else own)
            members[name].append(section)
        except ValueError as error:
            found.refuse(str(number), error)
    return {
        # Of groups of equal depth the last by the alphabet counts.
        name: ChainMap(
            own, *(groups[group] for group in sorted(members[name], reverse=True)), groups["all"]
        )
        for name, own in hosts.items()
    }


def _parse_variables(name: str, said: Mapping[str, object]) -> DraftNode:
    """Return the host of these variables of Ansible's.

    Options of ssh beside a jump host are named without their values, which may contain a password.

    Raises:
        ValueError: a variable that cannot be taken.
    """
    known = {key: str(value) for key, value in said.items() if value}
    jump: str | None = None
    ignored = [key for key in _UNHELD if key in known]
    if known.get("ansible_connection", "ssh") not in _BY_SSH:
        ignored.append("ansible_connection")
    for key in _OPTIONS:
        options = known.get(key, "")
        if hop := _JUMP.search(options):
            jump = jump or hop[1] or hop[3]
            options = options.replace(hop[0], "")
        if options.strip():
            ignored.append(key)
    at = parse_endpoint(known.get("ansible_host", name))
    port = known.get("ansible_port")
    if port and not port.isdecimal():
        raise ValueError(f"ansible_port is {port}; needed a number")
    return DraftNode(
        derive_name(name),
        at.host,
        known.get("ansible_user", at.user),
        at.port or (int(port) if port else None),
        known.get("ansible_ssh_private_key_file", known.get("ansible_private_key_file")),
        jump=jump,
        ignored=tuple(ignored),
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
    """Return a node's name that is the whole of an address, as far as a name may be long."""
    name = re.sub("[:%]", "-", address)
    name = name if len(name) < 64 else name.partition(".")[0]
    return name if is_name(name) else f"node-{name}"[:63].rstrip("-.")


def text(path: Path) -> str:
    """Return the text of a list.

    Raises:
        UsageError: NO-FILE.
    """
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise errors.UsageError(
            f"cannot read {path}: {error.strerror}", code="NO-FILE", fix="give the path of a list"
        ) from error
