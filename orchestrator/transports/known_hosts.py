"""Trusted host keys: the known_hosts file of OpenSSH, and the check of a key against it."""

import base64
import binascii
import fcntl
import fnmatch
import hashlib
import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from orchestrator import errors


@dataclass(frozen=True, slots=True)
class HostKey:
    """The public key that an sshd shows; ``kind`` is its type, such as ssh-ed25519."""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """Fingerprint as ``ssh-keygen -l`` prints it: ``SHA256:`` and 43 characters."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the file.

    Args:
        where: ``FILE:LINE``, for messages.
        marker: ``@revoked``, ``@cert-authority`` or empty.
        hosts: patterns in lower case, or one hashed name.
    """

    where: str
    marker: str
    hosts: tuple[str, ...]
    key: HostKey

    def speaks_of(self, name: str) -> bool:
        """Return whether the line is about a host.

        Args:
            name: as ``called`` gives it.

        Source: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
        """
        if self.hosts[0].startswith("|1|"):
            return _matches_hash(self.hosts[0], name)
        return _match(self.hosts, name) and not _match(
            [host[1:] for host in self.hosts if host.startswith("!")], name
        )


def called(address: str, port: int) -> str:
    """Return an sshd's name in the file: its address, or ``[address]:port`` if that is not 22."""
    return address.casefold() if port == 22 else f"[{address.casefold()}]:{port}"


def about(path: str, name: str) -> tuple[Entry, ...]:
    """Return the lines about a host; empty if there is no file.

    Raises:
        LocalError: it cannot be read.
    """
    try:
        file = Path(path).expanduser()
        seen = file.stat()
        entries = _read(file, path, (seen.st_mtime_ns, seen.st_size))
    except FileNotFoundError:
        return ()
    except (OSError, RuntimeError) as error:
        raise errors.LocalError(f"cannot read {path}: {error}", code="KNOWN-HOSTS") from error
    return tuple(entry for entry in entries if entry.speaks_of(name))


def judge(node: str, name: str, key: HostKey, entries: Sequence[Entry]) -> None:
    """Accept a host key that the file trusts.

    Args:
        entries: the lines about the host.

    Raises:
        NodeError: the key is unknown, revoked, or not the one trusted before.
    """
    revoked = [entry for entry in entries if entry.marker == "@revoked" and entry.key == key]
    trusted = [entry for entry in entries if not entry.marker]
    if revoked:
        raise errors.NodeError(
            f"{revoked[0].where} revokes the host key {_format_key(key)} of {name}",
            code="SSH-HOSTKEY-REVOKED",
            node=node,
            fix="give the node a new host key",
        )
    if any(entry.key == key for entry in trusted):
        return
    if not trusted:
        raise errors.NodeError(
            f"{name} is not in known_hosts yet; it shows the host key {_format_key(key)}",
            code="SSH-HOSTKEY-UNKNOWN",
            node=node,
            fix="compare the fingerprint with the node's own, then: dlperf-orch trust INVENTORY",
        )
    alike = [entry for entry in trusted if entry.key.kind == key.kind]
    if alike:
        before = ", ".join(f"{entry.key.fingerprint} ({entry.where})" for entry in alike)
        raise errors.NodeError(
            f"the host key of {name} has changed: it shows {_format_key(key)}; trusted is {before}",
            code="SSH-HOSTKEY-CHANGED",
            node=node,
            fix="find out why; only then remove that line and run: dlperf-orch trust INVENTORY",
        )
    kinds = ", ".join(f"{entry.key.kind} ({entry.where})" for entry in trusted)
    raise errors.NodeError(
        f"{name} is trusted by {kinds} only and no longer offers that; it shows {_format_key(key)}",
        code="SSH-HOSTKEY-TYPE",
        node=node,
        fix="compare the fingerprint with the node's own, then: dlperf-orch trust INVENTORY",
    )


def changed(node: str, name: str, seen: Sequence[HostKey], fingerprint: str) -> errors.NodeError:
    """Return the error for a node whose host keys do not have the inventory's fingerprint.

    Args:
        seen: the keys that it shows.
        fingerprint: of the inventory.
    """
    shown = ", ".join(map(_format_key, seen))
    return errors.NodeError(
        f"{name} shows the host key {shown}; the inventory says host_key: {fingerprint}",
        code="SSH-HOSTKEY-CHANGED",
        node=node,
        fix="find out why it changed; only then correct host_key in the inventory",
    )


def trust(path: str, name: str, key: HostKey) -> None:
    """Add a key to the end of the file, which is created if it does not exist.

    Raises:
        LocalError: it cannot be written.
    """
    target = Path(path).expanduser()
    line = f"{name} {key.kind} {base64.b64encode(key.blob).decode()}\n".encode()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(number, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # two of us would share a last line without an end
            size = file.seek(0, os.SEEK_END)
            whole = not size or os.pread(number, 1, size - 1) == b"\n"
            file.write(line if whole else b"\n" + line)
            os.fsync(number)
    except OSError as error:
        raise errors.LocalError(
            f"cannot add to {path}: {error.strerror}", code="KNOWN-HOSTS"
        ) from error


@lru_cache(maxsize=8)
def _read(file: Path, path: str, _state: tuple[int, int]) -> tuple[Entry, ...]:
    """Read the file's entries; a changed file is read again."""
    entries: list[Entry] = []
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#"):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
        except binascii.Error:
            continue  # as ssh does: a broken line trusts no key
        is_hashed = words[0].startswith("|1|")
        hosts = (words[0],) if is_hashed else tuple(words[0].casefold().split(","))
        entries.append(Entry(f"{path}:{number}", marker, hosts, HostKey(words[1], blob)))
    return tuple(entries)


def _matches_hash(hosts: str, name: str) -> bool:
    _, _, salt, digest = [*hosts.split("|"), "", "", ""][:4]
    try:
        key = base64.b64decode(salt, validate=True)
        expected = base64.b64decode(digest, validate=True)
    except binascii.Error:
        return False
    # SHA-1 is the file's own format; it hides names there and secures nothing.
    return hmac.compare_digest(hmac.digest(key, name.encode(), "sha1"), expected)


def _match(patterns: Sequence[str], name: str) -> bool:
    if name in patterns:
        return True
    # Square brackets stand for themselves here: they set a port apart.
    return any(
        fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))
        for pattern in patterns
        if "*" in pattern or "?" in pattern
    )


def _format_key(key: HostKey) -> str:
    return f"{key.kind} {key.fingerprint}"
