"""Types of text and numbers that files may hold, each with the message for what was needed."""

import ipaddress
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST = rf"(?!.{{254}}){_LABEL}(\.{_LABEL})*"
USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"
_PLACE = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]*))(?::([0-9]{1,5}))?")  # gpu01:22, [fd00::1]:22


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
    """Return the parts of ``[user@]host[:port]``; an IPv6 address with a port needs brackets."""
    user, at, place = text.rpartition("@")
    if at and not re.fullmatch(USER, user):
        raise ValueError(f"got {text!r}; needed [user@]host[:port]")
    if ip(place):
        return Endpoint(parse_host(place), user or None)
    parts = _PLACE.fullmatch(place)
    if parts is None or not 1 <= int(parts[3] or 1) <= 65535:
        needed = "host:port, or [address]:port for IPv6, the port from 1 to 65535"
        raise ValueError(f"got {place!r}; needed {needed}")
    port = int(parts[3]) if parts[3] else None
    return Endpoint(parse_host(parts[1] or parts[2]), user or None, port)


def parse_host(text: str) -> str:
    """Return an address in its shortest spelling, or a host name of DNS."""
    if (address := ip(text)) and not address.is_multicast:
        return str(address)
    if not re.fullmatch(HOST, text) or re.fullmatch(r"[0-9.]+", text):
        without = ", in whose name is no '_'; give its IP address" if "_" in text else ""
        raise ValueError(f"got {text!r}; needed an IP address or a host name{without}")
    return text


def ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a text is, None for a name; IPv4 in the form of IPv6 is IPv4."""
    if not re.fullmatch(r"[A-Za-z0-9_.:%-]+", text):  # behind % may be anything: fe80::1%eth0
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{1,62}"
_RANGE = r"\[[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\]"
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_ENDPOINT = rf"{HOST}(:{_PORT})?"
_PATH = r"(/(?!\.\.(/|$))[A-Za-z0-9_.@+=-]*)+"
_REPOSITORY = r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)+"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_TOO_MUCH = ("/", "/~", "/bin", "/dev", "/home", "/lib", "/opt", "/root", "/sbin", "/usr", "/var")
_OF_THE_SYSTEM = ("/boot", "/etc", "/proc", "/run", "/sys", "/var/lib/docker", "/var/run")
_PLACEMENT = r"([1-9][0-9]{0,4})x([1-9][0-9]{0,2})"
_WORD = r"[A-Za-z_][A-Za-z0-9_]*"


class Noun(BaseModel):
    """Base of every noun that is read from a file: frozen, strict, no unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,  # most commands read one kind of file, or none
    )


@dataclass(frozen=True, slots=True)
class Conflict:
    """Values that are each right and cannot hold together; ``path`` leads to the one to change."""

    path: tuple[str | int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Matching:
    """Text that matches a pattern as a whole; programs and editors say the same about it."""

    pattern: str
    needed: str
    in_file: str = ""  # what editors take too, since it is expanded before the model sees it

    def __get_pydantic_core_schema__(
        self, source: type[str], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        words = {"patternErrorMessage": f"needed {self.needed}"}  # what yaml-language-server shows
        both = "|".join(filter(None, (self.pattern, self.in_file)))
        return {**handler(schema), "pattern": f"^({both})$", **words}

    def _check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError(f"got {_short(text)}; needed {self.needed}")
        return text


def _short(text: str) -> str:
    shown = repr(re.sub(r":[^@/]*@", ":...@", text))  # what a user puts there is a password
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _no_folder_of_the_system(text: str) -> str:
    folder = posixpath.normpath(f"/{text.lstrip('/')}")
    if folder in _TOO_MUCH or any(f"{folder}/".startswith(f"{top}/") for top in _OF_THE_SYSTEM):
        raise ValueError(f"got {_short(text)}; needed a folder that holds data, not the system")
    return text


def _address(text: str) -> str:
    parse_host(text)
    if (address := ip(text)) and address.is_link_local and address.version == 6:
        raise ValueError(
            f"got {_short(text)}; needed an IP address or a host name that means the same on every"
            " machine, which no link-local one does"
        )
    return text


_NAME_NEEDED = "2 to 63 letters, digits, '_', '.' or '-', beginning with a letter or digit"
Name = Annotated[str, Matching(_NAME, _NAME_NEEDED)]
RangedName = Annotated[
    str, Matching(_NAME, _NAME_NEEDED, rf"[A-Za-z0-9_.-]*({_RANGE}[A-Za-z0-9_.-]*)+")
]
Address = Annotated[
    str,
    Matching(
        r"[^\s\[\]@/]+",
        "an IP address or a host name",
        rf"[A-Za-z0-9.:-]*({_RANGE}[A-Za-z0-9.:-]*)+",
    ),
    AfterValidator(_address),
]
NodePath = Annotated[
    str,
    Matching(
        f"~?{_PATH}",
        "a path that begins with '/' or '~/', without '..', and has no blanks or shell characters",
    ),
]
AbsolutePath = Annotated[
    str, Matching(_PATH, "an absolute path without '..' that has no blanks or shell characters")
]
DataPath = Annotated[NodePath, AfterValidator(_no_folder_of_the_system)]
FolderPath = Annotated[AbsolutePath, AfterValidator(_no_folder_of_the_system)]
ProgramName = Annotated[
    str, Matching(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*", "a program's name or path, without blanks")
]
Module = Annotated[
    str, Matching(rf"{_WORD}(\.{_WORD})*", "a Python module, such as torch.distributed")
]
Jump = Annotated[
    str,
    Matching(rf"({USER}@)?({HOST}|\[?[0-9A-Fa-f:.]+\]?)(:{_PORT})?", "[user@]host[:port]"),
    AfterValidator(lambda text: parse_endpoint(text) and text),
]
Mirror = Annotated[str, Matching(_ENDPOINT, "host or host:port, such as 10.11.0.1:5000")]
Fingerprint = Annotated[
    str, Matching(r"SHA256:[A-Za-z0-9+/]{43}=?", "SHA256: and the 43 characters of a host key")
]
ImageReference = Annotated[
    str,
    Matching(
        rf"{_REPOSITORY}:{_TAG}",
        "registry/repository:tag, without a digest (the lock holds digests)",
    ),
]
ImageChoice = Annotated[
    str,
    Matching(
        rf"{_NAME}(@{_TAG})?|{_REPOSITORY}@{_TAG}",
        "an image's name, NAME@TAG to take its base with another tag, or the base itself as"
        " REGISTRY/REPOSITORY@TAG",
    ),
]
Size = Annotated[
    str, Matching(r"[1-9][0-9]*[kmgt]?", "a whole number with k, m, g or t, such as 16g")
]


def size_bytes(size: Size) -> int:
    """Return how many bytes a size is: 1k is 1024."""
    power = "kmgt".find(size[-1]) + 1
    return int(size.rstrip("kmgt")) << 10 * power


Words = Annotated[str, Matching(r"[^\x00-\x1f\x7f-\x9f]{1,200}", "one line of 1 to 200 characters")]
PlacementText = Annotated[str, Matching(_PLACEMENT, "nodes x GPUs per node, such as 4x8")]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=30 * 86400)]
Scalar = bool | int | float | str


def is_name(text: str) -> bool:
    return re.fullmatch(_NAME, text) is not None


T = TypeVar("T")
# Making that of a large noun takes 5 to 15 ms, which commands that read none do not wait for.
_make_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)


def shape(noun: type[T]) -> TypeAdapter[T]:
    """Return the adapter that reads a noun from a document and writes it into one."""
    return _make_adapter(noun)


EnvName = Annotated[
    str,
    Matching(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "letters, digits and '_', not beginning with a digit"),
]
EnvText = Annotated[
    str, Matching(r"[^\x00-\x1f\x7f-\x9f]{0,1000}", "one line of at most 1000 characters")
]
EnvValue = EnvText | int


def env_texts(env: Mapping[str, EnvValue]) -> dict[str, str]:
    return {name: str(value) for name, value in env.items()}
