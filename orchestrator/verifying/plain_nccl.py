"""What NCCL prints of the way between nodes, read line by line."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.verifying import plain_lines
from orchestrator.verifying.damages import Reason
from orchestrator.verifying.differences import at, items, number, text

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


def transport(folder: Path, attempt: Mapping[str, object]) -> tuple[str, list[Reason]]:
    """What a gang used between its nodes, and which nodes do not prove what was requested."""
    tasks = items(attempt.get("tasks"))
    if len(tasks) < 2:
        return "-", []
    labels, reasons = {}, []
    serving = any(task.get("service") for task in tasks)
    for task in tasks:
        node, rank = text(task.get("node")), task.get("node_rank")
        path = folder / f"r{0 if serving else rank}.log"
        heard = said(_lines_of(path, task if serving else None))
        if path.is_file():
            labels[node] = heard.label
        wanted = text(at(task, "env", "NCCL_IB_HCA")).lstrip("=")
        if wanted and not heard.proves(set(wanted.split(","))):
            seen = f"{path.name}: NCCL's lines do not prove {wanted}: {heard.label}"
            reasons.append(("TRANSPORT", seen))
    if len(set(labels.values())) == 1:
        return next(iter(labels.values())), reasons
    return "; ".join(f"{node}: {label}" for node, label in labels.items()) or "-", reasons


def _lines_of(path: Path, task: Mapping[str, object] | None) -> Iterator[str]:
    """The lines of a node's ranks: all of its own log, or those that mpirun tagged so."""
    gpus = at(task, "gpus")
    count = len(gpus) if isinstance(gpus, list) else 0
    first = int(number(at(task, "node_rank")) or 0) * count
    ours = {f"[1,{rank}]" for rank in range(first, first + count)}
    if not path.is_file():
        return
    for _, line in plain_lines.lines(path):
        if task is None or line.partition("<std")[0] in ours:
            yield line
