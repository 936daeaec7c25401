"""Hosts as a command line names them, and as OpenMPI's hostfile and Slurm's nodes list them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from orchestrator import errors, nodeset
from orchestrator.model import slurm
from orchestrator.model.node import NodeEntry
from orchestrator.model.text import ip, is_name, parse_endpoint, parse_host

MOST = 10_000  # hosts of one range
_SLOTS = frozenset({"slots", "count", "cpu"})
_LIMITS = frozenset({"max_slots", "max-slots"})  # of ranks, where mpirun places them


@dataclass(frozen=True, slots=True)
class Listed:
    """A host as a list or a command line names it; None is what it does not say.

    Args:
        gpus: how many the list claims; only shown where the node itself was not asked.
        jump: ``[user@]host[:port]`` through which it is reached.
        ignored: settings of the list that no inventory can hold.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    gpus: int | None = None
    jump: str | None = None
    ignored: tuple[str, ...] = ()


@dataclass(slots=True)
class HostList:
    """The hosts of a list, in its order, and why others are left out.

    Args:
        shown: where the list comes from, for messages.
    """

    shown: str
    hosts: list[Listed] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, where: str, hosts: Iterable[Listed]) -> None:
        """Take the hosts; a ``ValueError`` that comes out of them leaves the others out.

        Args:
            where: a line, or a host's name.
        """
        try:
            self.hosts.extend(map(_valid, hosts))
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


def host(word: str) -> Listed:
    """Return the host of ``[user@]host[:port]``, or of an IPv6 address without a port.

    Raises:
        UsageError: HOST; that is no host.
    """
    try:
        return _of_endpoint(word)
    except ValueError as error:
        needed = "a host such as gpu01, user@10.0.0.11:22, [fd00::11]:22 or localhost"
        raise errors.UsageError(str(error), code="HOST", fix=f"give {needed}") from error


def hostfile(path: Path) -> HostList:
    """Return the hosts of an OpenMPI hostfile.

    Source: Open MPI, ``man orte_hosts``: one host a line, ``slots=``, comments after ``#``.
    """
    found = HostList(str(path))
    for number, line in enumerate(text(path).splitlines(), 1):
        if words := re.sub(r"\s*=\s*", "=", line.partition("#")[0]).split():
            found.add(str(number), _of_line(*words))
    return found.checked()


def _of_line(word: str, *settings: str) -> Iterator[Listed]:
    """Yield the host of a line such as ``gpu01 slots=8``."""
    listed = _of_endpoint(word)
    said = {key: value for key, _, value in (setting.partition("=") for setting in settings)}
    if listed.port is not None and listed.port < 1024 and listed.port != 22:
        raise ValueError(
            f"got {word!r}; needed `{listed.address} slots={listed.port}`, or a port above 1023"
        )
    slots = next((value for key, value in said.items() if key in _SLOTS), "")
    yield replace(
        listed,
        user=listed.user or said.get("username"),
        gpus=int(slots) if slots.isdecimal() else None,
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
            found.add(node["nodename"], _of_slurm({**default, **node}))
    return found.checked()


def _of_slurm(node: dict[str, str]) -> Iterator[Listed]:
    names = nodeset.unfold_all(node["nodename"], MOST)
    at = node.get("nodeaddr") or node.get("nodehostname") or node["nodename"]
    addresses = nodeset.unfold_all(at, MOST)
    if len(addresses) != len(names):
        raise ValueError(f"{at} stands for {len(addresses)}; needed {len(names)}, one for each")
    gpus = slurm.gpus(node.get("gres", "")) or None
    for name, address in zip(names, addresses, strict=True):
        yield Listed(named(name), parse_host(address), gpus=gpus)


def distinct(found: Iterable[Listed]) -> tuple[Listed, ...]:
    """Return each host once, as it is listed first, by its first label where that is its own."""
    first: dict[str, Listed] = {}
    for listed in found:
        first.setdefault(listed.name.casefold(), listed)
    short = {name: _short(listed.name) for name, listed in first.items()}
    count = Counter(label.casefold() for label in short.values())
    return tuple(
        replace(listed, name=short[name]) if count[short[name].casefold()] == 1 else listed
        for name, listed in first.items()
    )


def _of_endpoint(word: str) -> Listed:
    at = parse_endpoint(word)
    return Listed(named(at.host), at.host, at.user, at.port)


def _valid(listed: Listed) -> Listed:
    """Return the host.

    Raises:
        ValueError: what of it no inventory takes.
    """
    said = {key: getattr(listed, key) for key in ("name", "address", "user", "identity", "jump")}
    try:
        NodeEntry.model_validate({key: value for key, value in said.items() if value is not None})
    except ValidationError as error:
        wrong = error.errors()[0]
        reason = wrong["msg"].removeprefix("Value error, ")
        raise ValueError(f"{wrong['loc'][0]}: {reason}") from error
    return listed


def named(address: str) -> str:
    """Return a node's name that is the whole of an address, as far as a name may be long."""
    name = re.sub("[:%]", "-", address)
    name = name if len(name) < 64 else name.partition(".")[0]
    return name if is_name(name) else f"node-{name}"[:63].rstrip("-.")


def _short(name: str) -> str:
    """Return the first label of a host's name, the whole of an IP address."""
    label = name.split(".")[0]
    return label if is_name(label) and not ip(name) else name


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
