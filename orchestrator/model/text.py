"""Kinds of text and numbers that files may hold, each with the words for what was needed."""

import ipaddress
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{1,62}")
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?!.{{254}}){_LABEL}(\.{_LABEL})*")
_ENDPOINT = re.compile(rf"{_HOST.pattern}(:[1-9][0-9]{{0,4}})?")
_PATH = re.compile(r"~?/[A-Za-z0-9_./@+=-]*")
_PROGRAM = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
_REFERENCE = re.compile(
    r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
)
_SIZE = re.compile(r"[1-9][0-9]*[kmgt]?")
_WHOLE_SYSTEM = {"/", "/bin", "/dev", "/home", "/lib", "/opt", "/root", "/sbin", "/usr", "/var"}
_OF_THE_SYSTEM = ("/boot", "/etc", "/proc", "/run", "/sys", "/var/lib/docker", "/var/run")
_PLACEMENT = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,2})")


class Noun(BaseModel):
    """The ground of every noun that text enters: frozen, strict, no unknown keys."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Values that are each right and cannot hold together; ``path`` leads to the one to change."""

    path: tuple[str | int, ...]
    text: str


def _matching(pattern: re.Pattern[str], needed: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"got {_short(text)}; needed {needed}")
        return text

    return AfterValidator(check)


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _no_upward_steps(text: str) -> str:
    if ".." in text.split("/"):
        raise ValueError(f"got {_short(text)}; needed a path without '..'")
    return text


def _no_folder_of_the_system(text: str) -> str:
    folder = posixpath.normpath(f"/{text.lstrip('/')}")
    if folder in _WHOLE_SYSTEM or any(f"{folder}/".startswith(f"{top}/") for top in _OF_THE_SYSTEM):
        raise ValueError(f"got {_short(text)}; needed a folder that holds data, not the system")
    return text


def _address(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        is_name = _HOST.fullmatch(text) and not re.fullmatch(r"[0-9.]+", text)
    else:
        # The zone of an IPv6 address may be any text, shell characters among it.
        is_name = "%" not in text and not address.is_multicast
    if not is_name:
        raise ValueError(f"got {_short(text)}; needed an IP address or a host name")
    return text


def _registry(text: str) -> str:
    if "@" in text:  # what stands before it may be a password
        raise ValueError("a user in front of '@'; needed host:port, secrets go elsewhere")
    if not _ENDPOINT.fullmatch(text):
        raise ValueError(f"got {_short(text)}; needed a host, or host:port such as 10.11.0.1:5000")
    return text


Name = Annotated[
    str,
    _matching(_NAME, "2 to 63 letters, digits, '_', '.' or '-', beginning with a letter or digit"),
    Field(json_schema_extra={"pattern": f"^{_NAME.pattern}$"}),
]
Address = Annotated[str, AfterValidator(_address)]
NodePath = Annotated[
    str,
    _matching(_PATH, "a path that begins with '/' or '~/' and has no blanks or shell characters"),
    AfterValidator(_no_upward_steps),
    Field(json_schema_extra={"pattern": f"^{_PATH.pattern}$"}),
]
DataPath = Annotated[NodePath, AfterValidator(_no_folder_of_the_system)]
Program = Annotated[str, _matching(_PROGRAM, "a program's name or path, without blanks")]
Module = Annotated[str, _matching(_MODULE, "a Python module, such as torch.distributed")]
Jump = Annotated[
    str, _matching(re.compile(rf"({_NAME.pattern}@)?{_ENDPOINT.pattern}"), "[user@]host[:port]")
]
Registry = Annotated[str, AfterValidator(_registry)]
Fingerprint = Annotated[
    str,
    _matching(_FINGERPRINT, "SHA256: and the 43 characters of a host key"),
    Field(json_schema_extra={"pattern": f"^{_FINGERPRINT.pattern}$"}),
]
ImageReference = Annotated[
    str, _matching(_REFERENCE, "registry/repository:tag, without a digest (the lock holds digests)")
]
Size = Annotated[
    str,
    _matching(_SIZE, "a whole number with k, m, g or t, such as 16g"),
    Field(json_schema_extra={"pattern": f"^{_SIZE.pattern}$"}),
]
Words = Annotated[
    str,
    _matching(re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}"), "one line of 1 to 200 characters"),
]
PlacementText = Annotated[
    str,
    _matching(_PLACEMENT, "nodes x GPUs per node, such as 4x8"),
    Field(json_schema_extra={"pattern": f"^{_PLACEMENT.pattern}$"}),
]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=30 * 86400)]
Scalar = bool | int | float | str


def nodes_and_gpus(placement: str) -> tuple[int, int]:
    """The numbers of nodes and of GPUs per node of a placement such as ``4x8``."""
    nodes, _, gpus = placement.partition("x")
    return int(nodes), int(gpus)


def repeated(names: Sequence[str]) -> dict[int, int]:
    """By index of each name that came before, without regard to case: the index of the first."""
    first: dict[str, int] = {}
    again: dict[int, int] = {}
    for index, name in enumerate(names):
        before = first.setdefault(name.casefold(), index)
        if before != index:
            again[index] = before
    return again
