"""Hosts as a command line names them, and as OpenMPI's hostfile and Slurm's nodes list them."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors, nodeset
from orchestrator.model import slurm
from orchestrator.model.text import is_name

_PLAIN = re.compile(r"[A-Za-z0-9_.:@%+-]+")
_PORT = re.compile(r"[^:]+:([0-9]{1,5})")
_PAIR = re.compile(r"(\w+)=(\S*)")


@dataclass(frozen=True, slots=True)
class Listed:
    """A host as a list or a command line names it; None is what it does not say.

    Args:
        gpus: how many the list claims; only shown where the node itself was not asked.
        jump: ``[user@]host[:port]`` through which it is reached.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    gpus: int | None = None
    jump: str | None = None


def host(word: str) -> Listed:
    """The host of ``[user@]host[:port]``, or of an IPv6 address without a port.

    Raises:
        UsageError: HOST; that is no host.
    """
    user, at, place = word.rpartition("@")
    port = int(match[1]) if (match := _PORT.fullmatch(place)) else None
    address = place.partition(":")[0] if port else place
    if not _PLAIN.fullmatch(address) or address.startswith("-") or (at and not user):
        raise unread(word, "a host such as gpu01, user@10.0.0.11:22 or localhost")
    return Listed(named(address), address, user or None, port)


def hostfile(path: Path) -> tuple[Listed, ...]:
    """The hosts of an OpenMPI hostfile, in its order.

    Source: Open MPI, ``man orte_hosts``: one host a line, ``slots=``, comments after ``#``.
    """
    found = []
    for number, line in enumerate(text(path).splitlines(), 1):
        if words := line.partition("#")[0].split():
            first = words[0].partition(":")[0]
            if not _PLAIN.fullmatch(first):
                raise unread(
                    f"{path}:{number}: {words[0]}", "one host a line, as in `gpu01 slots=8`"
                )
            found.append(_with_slots(host(first), words[1:]))
    return some(found, path)


def scontrol(output: str, shown: str) -> tuple[Listed, ...]:
    """The nodes in the output of ``scontrol show nodes``, with or without ``-o``.

    Args:
        shown: where the text comes from, for messages.
    """
    found: list[Listed] = []
    for key, value in _PAIR.findall(output):
        if key == "NodeName":
            found.append(Listed(value, value))
        elif found and key == "NodeAddr" and found[-1].address == found[-1].name:
            found[-1] = replace(found[-1], address=value)  # the first: a Reason is free text
        elif found and key == "Gres" and (gpus := slurm.gpus(value)):
            found[-1] = replace(found[-1], gpus=gpus)
    return some(found, Path(shown))


def distinct(found: Iterable[Listed]) -> tuple[Listed, ...]:
    """Each host once, as it is listed first; by its first label where no other has that one."""
    first: dict[str, Listed] = {}
    for listed in found:
        first.setdefault(listed.name.casefold(), listed)
    short = {name: _short(listed.name) for name, listed in first.items()}
    count = Counter(label.casefold() for label in short.values())
    return tuple(
        replace(listed, name=short[name]) if count[short[name].casefold()] == 1 else listed
        for name, listed in first.items()
    )


def _with_slots(listed: Listed, words: list[str]) -> Listed:
    slots = next((word[6:] for word in words if word.startswith("slots=")), "")
    return replace(listed, gpus=int(slots)) if slots.isdecimal() else listed


def named(address: str) -> str:
    """A node's name that is the whole of an address."""
    name = address.replace(":", "-")
    return name if is_name(name) else f"node-{name}".rstrip("-.")


def _short(name: str) -> str:
    """The first label of a host's name, the whole of an IP address."""
    label = name.split(".")[0]
    is_number = re.fullmatch(r"[0-9.-]+", name)
    return label if is_name(label) and not is_number else name


def some(found: Iterable[Listed], path: Path) -> tuple[Listed, ...]:
    """The hosts of a list.

    Raises:
        UsageError: HOST; there is none.
    """
    if not (hosts := tuple(found)):
        raise unread(str(path), "a list with at least one host")
    return hosts


def text(path: Path) -> str:
    """The text of a list.

    Raises:
        UsageError: NO-FILE.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise errors.UsageError(
            f"cannot read {path}: {error.strerror}", code="NO-FILE", fix="give the path of a list"
        ) from error


def unread(seen: str, needed: str) -> errors.UsageError:
    """The error of what names no host."""
    return errors.UsageError(f"no host in {seen}", code="HOST", fix=f"needed {needed}")


def folded(listed: Iterable[Listed]) -> str:
    """The names, such as ``gpu[01-04]``."""
    return nodeset.fold(one.name for one in listed)
