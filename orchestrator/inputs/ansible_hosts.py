"""Hosts of an Ansible inventory, with what its variables say of SSH."""

import getopt
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from orchestrator import errors, nodeset
from orchestrator.inputs import host_lists
from orchestrator.inputs.host_lists import HostList, Listed
from orchestrator.model.text import Endpoint, parse_endpoint, split_port

_SECTION = re.compile(r"\[([^\]:]+)(?::(vars|children))?\](?:\s*[#;].*)?")
_RANGE = re.compile(r"\[(\d+):(\d+)\]")  # as in gpu[01:04]
_YAML = re.compile(r"---.*|[\w.-]+:(\s.*)?")  # a first line such as `all:`
_OPTIONS = ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")
_TAKEN = {
    "user": ("ansible_user", "ansible_ssh_user"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "identity": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
}
_HOST = ("ansible_host", "ansible_ssh_host")
_UNHELD = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password")
_BY_SSH = frozenset({"ssh", "smart", "paramiko", "local"})  # local: such as localhost
# Options of OpenSSH's ssh; those before the colons have no value. Source: ssh(1).
_FLAGS = "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:"
_LONG = {"-J": "ProxyJump", "-p": "Port", "-l": "User", "-i": "IdentityFile"}
_QUIET = frozenset({"-q", "-T", "-n"})  # which change nothing of what is reached
_NETCATS = (["nc", "%h", "%p"], ["netcat", "%h", "%p"])


def hosts(path: Path) -> HostList:
    """Return the hosts of what ``ansible-inventory --list`` prints, or of an inventory in INI.

    Source: Ansible documentation, "How to build your inventory".

    Raises:
        UsageError: NO-FILE, HOST; it cannot be read, or names no host.
    """
    text, found = host_lists.text(path), HostList(str(path))
    lines = (line.partition(" #")[0].strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    if first.startswith("{"):
        _read_json(text, found)
    elif _YAML.fullmatch(first):
        raise _unread(found.shown, "an inventory in YAML")
    else:
        _read_ini(text, found)
    return found.checked()


def _unread(path: str, seen: str) -> errors.UsageError:
    return errors.UsageError(
        f"{path}: {seen}; needed INI, or what `ansible-inventory --list` prints",
        code="HOST",
        fix=f"ansible-inventory -i {path} --list >hosts.json, then --ansible hosts.json",
    )


def _read_json(text: str, found: HostList) -> None:
    try:
        tree = _mapping(json.loads(text))
    except ValueError as error:
        raise _unread(found.shown, f"no JSON ({error})") from error
    variables = _mapping(_mapping(tree.get("_meta")).get("hostvars"))
    listed = (_mapping(group).get("hosts") for group in tree.values())
    names = dict.fromkeys(name for some in listed if isinstance(some, list) for name in some)
    for name in map(str, names):
        found.add(name, _of_vars(name, _mapping(variables.get(name))))


def _mapping(tree: object) -> Mapping[str, object]:
    return tree if isinstance(tree, Mapping) else {}


def _read_ini(text: str, found: HostList) -> None:
    hosts: dict[str, dict[str, object]] = {}
    groups: dict[str, dict[str, object]] = {}
    members: dict[str, set[str]] = {}
    section, kind = "ungrouped", ""
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    for number, line in (
        (number, line) for number, line in lines if line[:1] not in ("", "#", ";")
    ):
        if head := _SECTION.fullmatch(line):
            section, kind = head[1], head[2] or ""
        elif kind == "vars":
            groups.setdefault(section, {}).update(_variables([line]))
        elif kind == "children":
            members.setdefault(section, set()).add(line.split()[0])
        else:
            try:
                pattern, *words = shlex.split(line, comments=True)
                names = list(_expand(pattern))
            except ValueError as error:
                found.refused.append(f"{found.shown}:{number}: {error}")
                continue
            for name, port in names:
                hosts.setdefault(name, {}).update({**port, **_variables(words)})
                members.setdefault(section, set()).add(name)
    for name, own in hosts.items():
        found.add(name, _of_vars(name, {**_group_vars(name, groups, members), **own}))


def _expand(pattern: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each name of ``gpu[01:04]:2222`` or ``[fd00::1]:22``, with its port as a variable."""
    ranged = _RANGE.sub(r"[\1-\2]", pattern)
    if re.search(r".\[[^\]]*:", ranged):
        raise ValueError(f"got {pattern}; needed a range of numbers, or each name written out")
    for place in [pattern] if pattern.startswith("[") else nodeset.unfold(ranged, host_lists.MOST):
        name, port = split_port(place)
        yield name, {"ansible_port": port} if port else {}


def _variables(words: Iterable[str]) -> dict[str, object]:
    """Return the variables of ``key=value``, quotes around a whole value taken off."""
    found: dict[str, object] = {}
    for key, equals, value in (word.partition("=") for word in words):
        quoted = re.fullmatch(r"\s*(['\"])(.*)\1\s*", value)
        if equals:
            found[key.strip()] = quoted[2] if quoted else value.partition(" #")[0].strip()
    return found


def _group_vars(
    name: str, groups: Mapping[str, dict[str, object]], members: Mapping[str, set[str]]
) -> dict[str, object]:
    """Return the variables of a host's groups; those of nearer groups replace wider ones."""
    ways = [[group for group, names in members.items() if name in names]]
    while ways[-1] and len(ways) < len(members) + 2:
        ways.append([group for group, names in members.items() if names & set(ways[-1])])
    found = dict(groups.get("all", {}))
    for level in reversed(ways):
        for group in level:
            found |= groups.get(group, {})
    return found


def _of_vars(name: str, said: Mapping[str, object]) -> Iterator[Listed]:
    """Yield the host of these variables.

    Raises:
        ValueError: what of it cannot be taken.
    """
    given, ignored = _ssh_options(said)
    for field, keys in _TAKEN.items():
        if value := _value(said, *keys):
            given[field] = value
    at = parse_endpoint(_value(said, *_HOST) or name)
    port = at.port or split_port(f"port:{given['port']}")[1] if "port" in given else at.port
    unheld = [key for key in _UNHELD if said.get(key)]
    if said.get("ansible_connection", "ssh") not in _BY_SSH:
        unheld.append("ansible_connection")
    yield Listed(
        host_lists.named(name),
        at.host,
        given.get("user") or at.user,
        port,
        given.get("identity"),
        jump=given.get("jump"),
        ignored=(*unheld, *ignored),
    )


def _value(said: Mapping[str, object], *keys: str) -> str | None:
    """Return the value of the first of the keys that is there.

    Raises:
        ValueError: it is a template, or encrypted.
    """
    key = next((key for key in keys if said.get(key)), None)
    if key is None:
        return None
    value = said[key]
    if "{{" in str(value) or isinstance(value, Mapping):
        raise ValueError(f"{key} is a template or encrypted; needed the value itself")
    return str(value)


def _ssh_options(said: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """Return what options of ssh say of a host, by fields, and the names of other options.

    The first of an option counts, as in ssh; values that are not taken are not repeated, since a
    command may contain a password.
    """
    found: dict[str, str] = {}
    ignored: list[str] = []
    for variable in _OPTIONS:
        try:
            flags, _ = getopt.gnu_getopt(shlex.split(str(said.get(variable, ""))), _FLAGS)
        except (ValueError, getopt.GetoptError):
            ignored.append(variable)
            continue
        for flag, value in flags:
            taken, without = _meaning(flag, value)
            found = {**taken, **found}
            ignored += [f"{variable}: {name}" for name in without]
    return {field: value for field, value in found.items() if value}, ignored


def _meaning(flag: str, value: str) -> tuple[dict[str, str], list[str]]:
    """Return the fields that an option gives, and the names of what no inventory can hold."""
    option = _LONG.get(flag, flag)
    if flag == "-o":
        option, *rest = re.split(r"\s*=\s*|\s+", value.strip(), maxsplit=1)
        value = " ".join(rest)
    try:
        match option.casefold():
            case "user" | "port" as field:
                return {field: value}, []
            case "identityfile":
                return {"identity": value}, []
            case "proxyjump" | "proxycommand" if value == "none":
                return {"jump": ""}, []
            case "proxyjump":
                return {"jump": str(parse_endpoint(value.removeprefix("ssh://")))}, []
            case "proxycommand":
                return _through(value)
    except (ValueError, getopt.GetoptError):
        pass
    return {}, [] if option in _QUIET else [option]


def _through(command: str) -> tuple[dict[str, str], list[str]]:
    """Return the jump host of a command such as ``ssh -W %h:%p -q user@host``."""
    program, *words = shlex.split(command.removeprefix("exec "))
    flags, (place, *remote) = getopt.gnu_getopt(words, _FLAGS)
    said = dict(flags)
    forwards = remote in _NETCATS or (said.pop("-W", "") in ("%h:%p", "[%h]:%p") and not remote)
    if PurePosixPath(program).name != "ssh" or not forwards:
        raise ValueError("not a way through one machine")
    at = parse_endpoint(place)
    port = at.port or split_port(f"port:{said.get('-p', 22)}")[1]
    jump = Endpoint(at.host, at.user or said.get("-l"), port if port != 22 else None)
    parse_endpoint(str(jump))
    left = [f"ProxyCommand's {flag}" for flag in said if flag not in {*_QUIET, "-p", "-l"}]
    return {"jump": str(jump)}, left
