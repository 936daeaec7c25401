"""A machine as people write it: ``[user@]host[:port]``, its host a name or an IP address."""

import ipaddress
import re
from dataclasses import dataclass

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST = rf"(?!.{{254}}){_LABEL}(\.{_LABEL})*"
USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"
_BRACKETS = re.compile(r"\[([^\[\]]*)\](.*)")  # such as [fd00::1]:22


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host, who logs in and where its sshd listens; None is what the text leaves open."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if self.port and ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{user}{host}:{self.port}" if self.port else f"{user}{host}"


def parse_endpoint(text: str) -> Endpoint:
    """Return the parts of ``[user@]host[:port]``; an IPv6 address with a port needs brackets.

    Raises:
        ValueError: what was seen; what was needed.
    """
    user, at, place = text.rpartition("@")
    if at and not re.fullmatch(USER, user):
        raise ValueError(f"got {text!r}; needed [user@]host[:port]")
    host, port = split_port(place)
    return Endpoint(parse_host(host), user or None, port)


def split_port(place: str) -> tuple[str, int | None]:
    """Return a host, unchecked, and the port behind it.

    Raises:
        ValueError: what was seen; what was needed.
    """
    if ip(place):
        return place, None
    brackets = _BRACKETS.fullmatch(place)
    host = brackets[1] if brackets else place.partition(":")[0]
    rest = brackets[2] if brackets else place.removeprefix(host)
    if not rest:
        return host, None
    if not re.fullmatch(r":[0-9]{1,5}", rest) or not 1 <= int(rest[1:]) <= 65535:
        needed = "host:port, or [address]:port for IPv6, the port from 1 to 65535"
        raise ValueError(f"got {place!r}; needed {needed}")
    return host, int(rest[1:])


def parse_host(text: str) -> str:
    """Return an address in its shortest spelling, or a host name as DNS has it.

    A dot at the name's end is dropped, and letters beyond ASCII are encoded (IDNA).

    Raises:
        ValueError: what was seen; what was needed.
    """
    address = ip(text)
    if address is not None and not address.is_multicast:
        return str(address)
    name = text.removesuffix(".")
    try:
        name = name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not re.fullmatch(HOST, name) or re.fullmatch(r"[0-9.]+", name):
        without = ", in whose name is no '_'; give its IP address" if "_" in text else ""
        raise ValueError(f"got {text!r}; needed an IP address or a host name{without}")
    return name


def ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a text is, None for a name; IPv4 in the form of IPv6 is IPv4."""
    zone = text.partition("%")[2]  # such as fe80::1%eth0
    if zone and not re.fullmatch(r"[A-Za-z0-9_.-]+", zone):
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
