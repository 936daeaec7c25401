"""Hosts that other tools' files list: OpenMPI's hostfile, Ansible's inventories, Slurm's nodes."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors, nodeset
from orchestrator.files import foreign_yaml
from orchestrator.model.text import is_name

_SECTION = re.compile(r"\[([^\]:]+)(?::(vars|children))?\]")
_RANGE = re.compile(r"(.*)\[(\w+):(\w+)\](.*)")
_PLAIN = re.compile(r"[A-Za-z0-9_.:@%+-]+")
_PAIR = re.compile(r"(\w+)=(\S*)")


@dataclass(frozen=True, slots=True)
class Listed:
    """A host as a list or a command line names it; None is what it does not say.

    Args:
        gpus: how many the list claims; only shown where the node itself was not asked.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    gpus: int | None = None


def host(word: str) -> Listed:
    """The host of ``[user@]host``, named by its first label.

    Raises:
        UsageError: HOST; that is no host.
    """
    user, at, address = word.rpartition("@")
    if not _PLAIN.fullmatch(address) or address.startswith("-") or (at and not user):
        raise _unread(word, "a host such as gpu01, user@10.0.0.11 or localhost")
    return Listed(_named(address), address, user or None)


def hostfile(path: Path) -> tuple[Listed, ...]:
    """The hosts of an OpenMPI hostfile, each once, in its order.

    Source: Open MPI, ``man orte_hosts``: one host a line, ``slots=``, comments after ``#``.
    """
    lines = (line.partition("#")[0].split() for line in text(path).splitlines())
    found = [_with_slots(host(words[0].partition(":")[0]), words[1:]) for words in lines if words]
    return _once(found, path)


def ansible(path: Path) -> tuple[Listed, ...]:
    """The hosts of an Ansible inventory, INI or YAML, with what their variables say of SSH.

    Source: Ansible documentation, "How to build your inventory".
    """
    if path.suffix in (".yaml", ".yml", ".json"):
        return _once(list(_of_group(foreign_yaml.read(path), {})), path)
    return _once(_of_ini(text(path)), path)


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
        elif found and key == "Gres" and (gpus := re.search(r"\bgpu:(?:[^:,()]+:)?(\d+)", value)):
            found[-1] = replace(found[-1], gpus=int(gpus[1]))
    return _once(found, Path(shown))


def _with_slots(listed: Listed, words: list[str]) -> Listed:
    slots = next((word[6:] for word in words if word.startswith("slots=")), "")
    return replace(listed, gpus=int(slots)) if slots.isdecimal() else listed


def _of_ini(lines: str) -> list[Listed]:
    hosts: dict[str, dict[str, str]] = {}
    groups: dict[str, dict[str, str]] = {}
    members: dict[str, set[str]] = {}
    section, kind = "ungrouped", ""
    for line in filter(None, (line.strip() for line in lines.splitlines())):
        if line[0] in "#;":
            continue
        if head := _SECTION.fullmatch(line):
            section, kind = head[1], head[2] or ""
        elif kind == "vars":
            key, _, value = line.partition("=")
            groups.setdefault(section, {})[key.strip()] = value.strip().strip("'\"")
        elif kind == "children":
            members.setdefault(section, set()).add(line)
        else:
            name, *pairs = shlex.split(line, comments=True)
            for one in _expanded(name):
                said = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
                hosts.setdefault(one, {}).update(said)
                members.setdefault(section, set()).add(one)
    return [
        _of_vars(name, {**_group_vars(name, groups, members), **own}) for name, own in hosts.items()
    ]


def _group_vars(
    host_name: str, groups: Mapping[str, dict[str, str]], members: Mapping[str, set[str]]
) -> dict[str, str]:
    """The variables of a host's groups, those of the wider ones first."""
    own = [group for group, names in members.items() if host_name in names]
    ways = [own]
    while ways[-1] and len(ways) < len(members) + 2:
        ways.append([group for group, names in members.items() if names & set(ways[-1])])
    found = dict(groups.get("all", {}))
    for level in reversed(ways):
        for group in level:
            found |= groups.get(group, {})
    return found


def _of_group(group: object, above: Mapping[str, object]) -> Iterator[Listed]:
    """The hosts of one group of a YAML inventory and of those below it."""
    if not isinstance(group, Mapping):
        return
    own = {**above, **_mapping(group.get("vars"))}
    for pattern, said in _mapping(group.get("hosts")).items():
        for one in _expanded(str(pattern)):
            yield _of_vars(one, {**own, **_mapping(said)})
    is_group = {"hosts", "children", "vars"} & set(group)
    below_it = _mapping(group.get("children")) if is_group else _mapping(group)
    for inner in below_it.values():
        yield from _of_group(inner, own)


def _mapping(tree: object) -> Mapping[str, object]:
    return tree if isinstance(tree, Mapping) else {}


def _of_vars(name: str, said: Mapping[str, object]) -> Listed:
    port = str(said.get("ansible_port", said.get("ansible_ssh_port", "")))
    user = said.get("ansible_user", said.get("ansible_ssh_user"))
    key = said.get("ansible_ssh_private_key_file", said.get("ansible_private_key_file"))
    address = str(said.get("ansible_host", said.get("ansible_ssh_host", name)))
    return Listed(
        _named(name),
        address,
        str(user) if user else None,
        int(port) if port.isdecimal() else None,
        str(key) if key else None,
    )


def _expanded(pattern: str) -> Iterator[str]:
    """``gpu[01:04]`` as Ansible means it, widths kept; letters too."""
    match = _RANGE.fullmatch(pattern)
    if match is None:
        yield pattern
        return
    head, first, last, tail = match.groups()
    if first.isdecimal() and last.isdecimal():
        words = [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    else:
        words = [chr(n) for n in range(ord(first[0]), ord(last[0]) + 1)]
    for word in words:
        yield from _expanded(f"{head}{word}{tail}")


def _named(address: str) -> str:
    """A node's name: the first label of a host's, the whole of an IP address."""
    whole = address.replace(":", "-")
    name = (
        whole
        if re.fullmatch(r"[0-9.-]+|[0-9a-fA-F-]*-[0-9a-fA-F-]*", whole)
        else whole.split(".")[0]
    )
    return name if is_name(name) else f"node-{name}".rstrip("-.")


def _once(found: list[Listed], path: Path) -> tuple[Listed, ...]:
    first: dict[str, Listed] = {}
    for listed in found:
        first.setdefault(listed.name.casefold(), listed)
    if not first:
        raise _unread(str(path), "a list with at least one host")
    return tuple(first.values())


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


def _unread(seen: str, needed: str) -> errors.UsageError:
    return errors.UsageError(f"no host in {seen}", code="HOST", fix=f"needed {needed}")


def folded(listed: tuple[Listed, ...]) -> str:
    """The names, such as ``gpu[01-04]``."""
    return nodeset.fold(one.name for one in listed)
