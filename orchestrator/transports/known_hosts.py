"""Trusted host keys: the known_hosts file of OpenSSH, and the check of a key against it."""

import base64
import binascii
import fcntl
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import paramiko

from orchestrator.transports.failures import make_error

HASHED = re.compile(r"\|1\|[A-Za-z0-9+/]{27}=\|[A-Za-z0-9+/]{27}=")  # |1|SALT|HMAC-SHA1 of a name


@dataclass(frozen=True, slots=True)
class HostKey:
    """The public key that an sshd shows; ``kind`` is its type, such as ssh-ed25519."""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint as ``ssh-keygen -l`` prints it: ``SHA256:`` and 43 characters."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the file; ``where`` is FILE:LINE, ``hosts`` are lower-case names or one hash."""

    where: str
    is_revoked: bool
    hosts: tuple[str, ...]
    key: HostKey

    def applies_to(self, name: str) -> bool:
        """Return whether the line trusts a key of a host, or revokes the key wherever it is used.

        Patterns are not matched: their lines trust nothing.
        """
        first = self.hosts[0]
        if self.is_revoked or name in self.hosts:
            return True
        return bool(HASHED.fullmatch(first)) and paramiko.HostKeys.hash_host(name, first) == first


def format_name(address: str, port: int) -> str:
    """Return an sshd's name in the file: its address, or ``[address]:port`` if that is not 22."""
    return address.casefold() if port == 22 else f"[{address.casefold()}]:{port}"


def find_entries(path: str, name: str) -> tuple[Entry, ...]:
    """Return the lines about a host, and all that revoke keys; none if there is no file."""
    try:
        file = Path(path).expanduser()
        seen = file.stat()
        entries = _read(file, path, (seen.st_mtime_ns, seen.st_size))
    except FileNotFoundError:
        return ()
    except (OSError, RuntimeError) as error:
        raise make_error("KNOWN-HOSTS", f"cannot read {path}: {error}") from error
    return tuple(entry for entry in entries if entry.applies_to(name))


def check_key(node: str, name: str, entries: Sequence[Entry], key: HostKey) -> None:
    """Refuse a host key that is unknown, revoked, or not the one trusted before."""
    revoked = [entry.where for entry in entries if entry.is_revoked and entry.key == key]
    trusted = [entry for entry in entries if not entry.is_revoked]
    alike = [entry for entry in trusted if entry.key.kind == key.kind]
    if not revoked and any(entry.key == key for entry in trusted):
        return
    known = ", ".join(f"{entry.key} ({entry.where})" for entry in alike or trusted)
    if revoked:
        code, why = "SSH-HOSTKEY-REVOKED", f"{revoked[0]} revokes it"
    elif alike:
        code, why = "SSH-HOSTKEY-CHANGED", f"it has changed: trusted is {known}"
    elif trusted:
        code, why = "SSH-HOSTKEY-TYPE", f"only keys of another kind are trusted: {known}"
    else:
        code, why = "SSH-HOSTKEY-UNKNOWN", "no line of known_hosts names it (patterns do not count)"
    raise make_error(code, f"{name} shows the host key {key}; {why}", node=node)


def trust(path: str, name: str, key: HostKey) -> None:
    """Add a key to the end of the file, which is created if it does not exist."""
    target = Path(path).expanduser()
    line = f"{name} {key.kind} {base64.b64encode(key.blob).decode()}\n".encode()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(target, "a+b", opener=partial(os.open, mode=0o600)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # two of us would share a last line without an end
            file.seek(0)
            is_whole = file.read()[-1:] in (b"", b"\n")
            file.write(line if is_whole else b"\n" + line)
    except OSError as error:
        raise make_error("KNOWN-HOSTS", f"cannot add to {path}: {error.strerror}") from error


@lru_cache(maxsize=8)
def _read(file: Path, path: str, _state: tuple[int, int]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        is_known = marker in ("", "@revoked") and len(words) >= 3 and words[0][0] != "#"
        if not is_known or ("!" in words[0] and not marker):
            continue
        try:
            key = HostKey(words[1], base64.b64decode(words[2], validate=True))
        except binascii.Error:
            continue  # as ssh does: a broken line trusts no key
        hosts = (words[0],) if HASHED.fullmatch(words[0]) else (*words[0].casefold().split(","),)
        entries.append(Entry(f"{path}:{number}", marker == "@revoked", hosts, key))
    return tuple(entries)
