"""Hosts of an Ansible inventory, with what its variables say of SSH."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator import errors
from orchestrator.files import foreign_yaml
from orchestrator.inputs import host_lists
from orchestrator.inputs.host_lists import Listed

_MOST = 10_000  # hosts of one range
_SECTION = re.compile(r"\[([^\]:]+)(?::(vars|children))?\](?:\s*[#;].*)?")
_RANGE = re.compile(r"(.*?)\[(?:(\d+):(\d+)|([a-z]):([a-z])|([A-Z]):([A-Z]))(?::(\d+))?\](.*)")
_JUMP = re.compile(r"(?:-J\s*|-o\s*ProxyJump[= ])([A-Za-z0-9_.@:-]+)")
_SSH_OPTIONS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_FIX = "correct it, or let Ansible read it: ansible-inventory -i FILE --list --yaml"


def hosts(path: Path) -> tuple[Listed, ...]:
    """The hosts of an inventory in INI or YAML, or of what ``ansible-inventory --list`` prints.

    Source: Ansible documentation, "How to build your inventory".

    Raises:
        UsageError: NO-FILE, HOST; it cannot be read, or names no host.
    """
    text = host_lists.text(path)
    try:
        found = _of_tree(foreign_yaml.read(path)) if _is_yaml(path, text) else _of_ini(text)
    except ValueError as error:
        raise errors.UsageError(f"{path}: {error}", code="HOST", fix=_FIX) from error
    return host_lists.some(found, path)


def _is_yaml(path: Path, text: str) -> bool:
    """By its ending, else by its first line: Ansible's own /etc/ansible/hosts has no ending."""
    lines = (line.partition(" #")[0].strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    by_first = first == "---" or first[:1] == "{" or first[-1:] == ":"
    return by_first or path.suffix in (".yaml", ".yml", ".json")


def _of_ini(text: str) -> list[Listed]:
    """
    Raises:
        ValueError: why a line cannot be read.
    """
    hosts: dict[str, dict[str, str]] = {}
    groups: dict[str, dict[str, str]] = {}
    members: dict[str, set[str]] = {}
    section, kind = "ungrouped", ""
    for number, line in enumerate((line.strip() for line in text.splitlines()), 1):
        if not line or line[0] in "#;":
            continue
        if head := _SECTION.fullmatch(line):
            section, kind = head[1], head[2] or ""
        elif kind == "vars":
            key, _, value = line.partition("=")
            groups.setdefault(section, {})[key.strip()] = value.strip().strip("'\"")
        elif kind == "children":
            members.setdefault(section, set()).add(line.split()[0])
        else:
            name, said = _of_line(line, number)
            for one in _expanded(name):
                hosts.setdefault(one, {}).update(said)
                members.setdefault(section, set()).add(one)
    return [
        _of_vars(name, {**_group_vars(name, groups, members), **own}) for name, own in hosts.items()
    ]


def _of_line(line: str, number: int) -> tuple[str, dict[str, str]]:
    """The host's name and variables."""
    try:
        name, *pairs = shlex.split(line, comments=True)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}: {line}") from error
    return name, dict(pair.split("=", 1) for pair in pairs if "=" in pair)


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


def _of_tree(tree: object) -> list[Listed]:
    if isinstance(tree, Mapping) and "_meta" in tree:
        said = _mapping(_mapping(tree["_meta"]).get("hostvars"))
        groups = (group.get("hosts") for group in tree.values() if isinstance(group, Mapping))
        names = dict.fromkeys(str(name) for hosts in groups for name in hosts or ())
        return [_of_vars(name, _mapping(said.get(name))) for name in names]
    return list(_of_group(tree, {}))


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
    port = _said(name, said, "ansible_port", "ansible_ssh_port") or ""
    options = " ".join(_said(name, said, key) or "" for key in _SSH_OPTIONS)
    jump = _JUMP.search(options)
    return Listed(
        host_lists.named(name),
        _said(name, said, "ansible_host", "ansible_ssh_host") or name,
        _said(name, said, "ansible_user", "ansible_ssh_user"),
        int(port) if port.isdecimal() else None,
        _said(name, said, "ansible_ssh_private_key_file", "ansible_private_key_file"),
        jump=jump[1] if jump else None,
    )


def _said(name: str, said: Mapping[str, object], *keys: str) -> str | None:
    """The value of the first of the keys that is there.

    Raises:
        ValueError: it is a template, which only Ansible can fill in.
    """
    value = next((str(said[key]) for key in keys if said.get(key)), None)
    if value and "{{" in value:
        raise ValueError(f"{name}: {value} is a template, which only Ansible can fill in")
    return value


def _expanded(pattern: str) -> Iterator[str]:
    """``gpu[01:04]`` or ``gpu[1:9:2]`` as Ansible means it, widths kept; letters too."""
    match = _RANGE.fullmatch(pattern)
    if match is None:
        yield pattern
        return
    head, *ends, stride, tail = match.groups()
    first, last = (end for end in ends if end)
    step = int(stride or 1) or 1
    if first.isdecimal():
        numbers = range(int(first), int(last) + 1, step)
        words = [str(number).zfill(len(first)) for number in numbers[:_MOST]]
    else:
        numbers = range(ord(first), ord(last) + 1, step)
        words = [chr(number) for number in numbers]
    if len(numbers) > _MOST:
        raise ValueError(f"{pattern}: {len(numbers)} hosts; needed at most {_MOST}")
    for word in words:
        yield from _expanded(f"{head}{word}{tail}")
