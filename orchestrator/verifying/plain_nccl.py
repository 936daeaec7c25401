"""What NCCL prints of the way between nodes, read line by line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_NETWORKS = (
    re.compile(r"NCCL INFO Using network (\w+(?: \w+)?)\s*$"),
    re.compile(r"NCCL INFO .* via NET/(\w+(?: \w+)?)/\d"),
)
_ADAPTERS = re.compile(r"NCCL INFO NET/IB ?: Using ([^;]*);")
_PORT = re.compile(r"\[\d+\] ?([\w.+-]+):(\d+)/([A-Za-z]+)")
_SOCKETS = re.compile(r"NCCL INFO NET/Socket ?: Using (\[.*)")
_INTERFACE = re.compile(r"\[\d+\]([^\s:\[\]]+):")
_NO_DEVICE = re.compile(r"NCCL INFO NET/IB ?: No device found")
_NO_DRIVER = re.compile(
    r"libibverbs: Warning: no userspace device-specific driver found"
    r"|NCCL WARN Failed to open libibverbs\.so"
)
_VERBS = re.compile(r"IB(?:ext(?:_v\d{1,3})?)?")


@dataclass(slots=True)
class PlainTransport:
    """What one node's ranks say.

    Args:
        ports: adapter, port and link of each.
    """

    networks: set[str] = field(default_factory=set)
    ports: set[tuple[str, str, str]] = field(default_factory=set)
    interfaces: set[str] = field(default_factory=set)
    denied: bool = False

    @property
    def taken(self) -> list[str]:
        """The networks used; where none is named, what NCCL listed first of all."""
        offered = ["IB"] if self.ports else ["Socket"] if self.interfaces else []
        return sorted(self.networks) or offered

    @property
    def label(self) -> str:
        """As reports call it, such as ``IB mlx5_0``; ``-`` for none."""
        return " + ".join(self._words(network) for network in self.taken) or "-"

    def _words(self, network: str) -> str:
        if network == "Socket":
            return f"Socket {','.join(sorted(self.interfaces))}".strip()
        if not _VERBS.fullmatch(network):
            return network
        links = sorted({link for _, _, link in self.ports})
        parts = [f"{link} {','.join(self._names(link))}" for link in links]
        return (" + ".join(parts) or "IB") + ("" if network == "IB" else f" ({network})")

    def _names(self, link: str) -> list[str]:
        ports = sorted((hca, int(port)) for hca, port, of in self.ports if of == link)
        return [hca if port == 1 else f"{hca}:{port}" for hca, port in ports]

    def proves(self, adapters: set[str]) -> bool:
        """Whether everything went over exactly these InfiniBand adapters."""
        over_verbs = bool(self.taken) and all(map(_VERBS.fullmatch, self.taken))
        used = {hca for hca, _, _ in self.ports}
        return over_verbs and not self.denied and used == adapters


def said(lines: Iterable[str]) -> PlainTransport:
    """What the lines of a node say of its transport."""
    found = PlainTransport()
    for line in lines:
        if _NO_DEVICE.search(line) or _NO_DRIVER.search(line):
            found.denied = True
        if "NCCL INFO" not in line:
            continue
        for pattern in _NETWORKS:
            found.networks.update(pattern.findall(line.rstrip()))
        for listed in _ADAPTERS.findall(line):
            found.ports.update(_PORT.findall(listed))
        for listed in _SOCKETS.findall(line):
            found.interfaces.update(_INTERFACE.findall(listed))
    return found
