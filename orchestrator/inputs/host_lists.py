"""Hosts as a command line names them, and as lists of OpenMPI, Slurm and Ansible do."""

import getopt
import re
import shlex
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, TypeAdapter, ValidationError

from orchestrator import errors, nodeset
from orchestrator.model import slurm
from orchestrator.model.node import NodeEntry
from orchestrator.model.text import Endpoint, ip, is_name, parse_endpoint, parse_host, split_port
from orchestrator.planning.inventory_draft import DraftNode

MOST = 10_000  # hosts of one range
_SLOTS = frozenset({"slots", "count", "cpu"})
_LIMITS = frozenset({"max_slots", "max-slots"})  # of ranks, where mpirun places them

_SECTION = re.compile(r"\[([^\]:]+)(?::(vars|children))?\](?:\s*[#;].*)?")
_RANGE = re.compile(r"\[(\d+):(\d+)\]")  # as in gpu[01:04]
_YAML = re.compile(r"---.*|[\w.-]+:(\s.*)?")  # a first line such as `all:`
_UNHELD = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password")
_BY_SSH = frozenset({"ssh", "smart", "paramiko", "local"})  # local: such as localhost
# Options of OpenSSH's ssh; those before the colons have no value. Source: ssh(1).
_FLAGS = "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:"


@dataclass(slots=True)
class HostList:
    """The hosts of a list, in its order, and why others are left out.

    Args:
        shown: where the list comes from, for messages.
    """

    shown: str
    hosts: list[DraftNode] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, where: str, hosts: Iterable[DraftNode]) -> None:
        """Take the hosts; a ``ValueError`` that comes out of them leaves the others out.

        Args:
            where: a line, or a host's name.
        """
        try:
            for host in hosts:
                keys = ("name", "address", "user", "identity", "jump")
                said = {key: value for key in keys if (value := getattr(host, key)) is not None}
                NodeEntry.model_validate(said)
                self.hosts.append(host)
        except ValidationError as error:
            wrong = error.errors()[0]
            reason = wrong["msg"].removeprefix("Value error, ")
            self.refused.append(f"{self.shown}:{where}: {wrong['loc'][0]}: {reason}")
        except ValueError as error:
            self.refused.append(f"{self.shown}:{where}: {error}")

    def checked(self) -> "HostList":
        """Return itself.

        Raises:
            UsageError: HOST; there is no host, or none that can be taken.
        """
        if self.hosts:
            return self
        raise errors.UsageError(
            "; ".join(self.refused) or f"no host in {self.shown}",
            code="HOST",
            fix="give a list with at least one host, such as `gpu01` or `10.0.0.11`",
        )


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
        if words := re.sub(r"\s*=\s*", "=", line.partition("#")[0]).split():
            found.add(str(number), _parse_line(*words))
    return found.checked()


def _parse_line(word: str, *settings: str) -> Iterator[DraftNode]:
    """Yield the host of a line such as ``gpu01 slots=8``."""
    host = _parse_endpoint(word)
    said = {key: value for key, _, value in (setting.partition("=") for setting in settings)}
    if host.port is not None and host.port < 1024 and host.port != 22:
        raise ValueError(
            f"got {word!r}; needed `{host.address} slots={host.port}`, or a port above 1023"
        )
    slots = next((value for key, value in said.items() if key in _SLOTS), "")
    yield replace(
        host,
        user=host.user or said.get("username"),
        claimed_gpus=int(slots) if slots.isdecimal() else None,
        ignored=tuple(key for key in said if key not in {*_SLOTS, *_LIMITS, "username"}),
    )


def scontrol(output: str, shown: str) -> HostList:
    """Return the nodes in the output of ``scontrol show nodes``, with or without ``-o``.

    Lines of slurm.conf say the same of ranges: ``NodeName=ip-10-0-1-[6-12] NodeAddr=...``.

    Args:
        shown: where the text comes from, for messages.
    """
    found, default = HostList(shown), dict[str, str]()
    for node in slurm.records(output, "nodename"):
        if node["nodename"].casefold() == "default":
            default |= node
        else:
            found.add(node["nodename"], _parse_slurm({**default, **node}))
    return found.checked()


def _parse_slurm(node: Mapping[str, str]) -> Iterator[DraftNode]:
    names = nodeset.unfold_all(node["nodename"], MOST)
    at = node.get("nodeaddr") or node.get("nodehostname") or node["nodename"]
    addresses = nodeset.unfold_all(at, MOST)
    if len(addresses) != len(names):
        raise ValueError(f"{at} stands for {len(addresses)}; needed {len(names)}, one for each")
    gpus = slurm.gpus(node.get("gres", "")) or None
    for name, address in zip(names, addresses, strict=True):
        yield DraftNode(derive_name(name), parse_host(address), claimed_gpus=gpus)


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
        UsageError: NO-FILE, HOST; it cannot be read, or names no host.
    """
    content, found = text(path), HostList(str(path))
    lines = (line.partition(" #")[0].strip() for line in content.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    try:
        if _YAML.fullmatch(first):
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
        found.add(name, _parse_variables(name, said))
    return found.checked()


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
        elif kind == "vars":
            key, _, value = line.partition("=")
            quoted = re.fullmatch(r"\s*(['\"])(.*)\1\s*", value)
            plain = quoted[2] if quoted else value.partition(" #")[0].strip()
            groups[section][key.strip()] = plain
        else:
            try:
                for name, own in _read_line(line):
                    hosts.setdefault(name, {}).update(own)
                    members[name].append(section)
            except ValueError as error:
                found.refused.append(f"{found.shown}:{number}: {error}")
    return {
        # Of groups of equal depth the last by the alphabet counts.
        name: ChainMap(
            own, *(groups[group] for group in sorted(members[name], reverse=True)), groups["all"]
        )
        for name, own in hosts.items()
    }


def _read_line(line: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield each host of a line such as ``gpu[01:04]:2222 ansible_user=me``, and its variables."""
    pattern, *words = shlex.split(line, comments=True)
    own: Mapping[str, object] = dict(word.split("=", 1) for word in words if "=" in word)
    ranged = _RANGE.sub(r"[\1-\2]", pattern)
    if re.search(r".\[[^\]]*:", ranged):
        raise ValueError(f"got {pattern}; needed a range of numbers, or each name written out")
    for place in [pattern] if pattern.startswith("[") else nodeset.unfold(ranged, MOST):
        name, port = split_port(place)
        yield name, {"ansible_port": port, **own} if port else own


def _parse_variables(name: str, said: Mapping[str, object]) -> Iterator[DraftNode]:
    """Yield the host of these variables of Ansible's.

    Options of ssh that are not taken are named without their values, since a command may contain
    a password.

    Raises:
        ValueError: a variable that cannot be taken.
    """

    def value(*keys: str) -> str | None:
        key = next((key for key in keys if said.get(key)), "")
        if "{{" in str(said.get(key)) or isinstance(said.get(key), Mapping):
            raise ValueError(f"{key} is a template or encrypted; needed the value itself")
        return str(said[key]) if key else None

    jump: str | None = None
    ignored = [key for key in _UNHELD if said.get(key)]
    if said.get("ansible_connection", "ssh") not in _BY_SSH:
        ignored.append("ansible_connection")
    for variable in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args"):
        try:
            flags, _ = getopt.gnu_getopt(shlex.split(str(said.get(variable, ""))), _FLAGS)
        except (ValueError, getopt.GetoptError):
            ignored.append(variable)
            continue
        for flag, setting in flags:
            hop, left = _parse_jump(flag, setting)
            jump = jump or hop  # the first of an option counts, as in ssh
            ignored += [f"{variable}: {option}" for option in left]
    at = parse_endpoint(value("ansible_host", "ansible_ssh_host") or name)
    port = value("ansible_port", "ansible_ssh_port")
    yield DraftNode(
        derive_name(name),
        at.host,
        value("ansible_user", "ansible_ssh_user") or at.user,
        at.port or (split_port(f"port:{port}")[1] if port else None),
        value("ansible_ssh_private_key_file", "ansible_private_key_file"),
        jump=jump,
        ignored=tuple(ignored),
    )


def _parse_jump(option: str, value: str) -> tuple[str | None, list[str]]:
    """Return the jump host that an option of ssh names, and the options that are not taken."""
    if option == "-o":
        option, _, value = re.sub(r"\s*=\s*|\s+", "=", value.strip(), count=1).partition("=")
    if value == "none":
        return None, []
    try:
        if option.casefold() in ("-j", "proxyjump"):
            return str(parse_endpoint(value.removeprefix("ssh://"))), []
        if option.casefold() == "proxycommand":  # such as `ssh -W %h:%p -q user@host`
            program, *words = shlex.split(value.removeprefix("exec "))
            flags, (place,) = getopt.gnu_getopt(words, _FLAGS)
            said, at = dict(flags), parse_endpoint(place)
            port = split_port(f"port:{said['-p']}")[1] if "-p" in said else at.port
            jump = Endpoint(at.host, at.user or said.get("-l"), port)
            if PurePosixPath(program).name == "ssh" and said.get("-W") in ("%h:%p", "[%h]:%p"):
                left = [flag for flag in said if flag not in ("-W", "-q", "-p", "-l")]
                return str(parse_endpoint(str(jump))), [f"ProxyCommand's {flag}" for flag in left]
    except (ValueError, getopt.GetoptError):
        pass
    return None, [option]


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
