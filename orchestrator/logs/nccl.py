"""What NCCL and its neighbours print of themselves: the transport that was taken, and errors.

Lines of NCCL's INFO level begin ``host:pid:tid [device] NCCL INFO``; before that there may be
mpirun's tag or a timestamp. Which lines say something differs between releases: up to 2.4 every
process lists its sockets, even with InfiniBand in use; up to 2.5 none says ``Using network``; a
process that finds no HCA may still say ``NET/IB : Using [RO]; OOB eth0:..``, without a device.
Source: NCCL's net_ib.cc, net_socket.cc and net.cc; recorded logs in tests/samples/nccl.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from orchestrator.logs.notes import Notes
from orchestrator.logs.text import LONGEST_RECORD, lines_that, whole_lines
from orchestrator.model.log import Fabric, Port

MOST_NAMES = 1000
"""Of networks, ports and interfaces: a log of random names must not fill the memory."""
_SHOWN = 160
_Seen = TypeVar("_Seen", str, Port)

_CHOSEN = re.compile(rb"NCCL INFO Using network (\w{1,32}(?: \w{1,32})?)[ \t]*$")
_VIA = re.compile(rb" via NET/(\w{1,32}(?: \w{1,32})?)/\d")
_VERBS = re.compile(rb"NCCL INFO NET/IB ?: Using ([^;]{0,4096});")
_PORT = re.compile(rb"\[\d{1,3}\] ?([\w.+-]{1,64}):(\d{1,3})/([A-Za-z]{1,16})")
_SOCKETS = re.compile(rb"NCCL INFO NET/Socket ?: Using (\[.{0,8192})")
_INTERFACE = re.compile(rb"\[\d{1,3}\]([^\s:\[\]]{1,64}):")
_NO_DEVICE = re.compile(rb"NCCL INFO NET/IB ?: No device found")
_PROBLEMS: Mapping[str, re.Pattern[bytes]] = {
    # Source: seed 003's listings; nccl src/misc/ibvwrap.cc.
    "IB-NO-DRIVER": re.compile(
        rb"libibverbs: Warning: no userspace device-specific driver found"
        rb"|NCCL WARN Failed to open libibverbs\.so"
    ),
    # Source: DLPerf, report v1_cn 6.2.2.
    "NET-IFACE": re.compile(
        rb"NCCL WARN (?:\w{1,40}: )?Connect to \S{1,80} failed ?:"
        rb" (?:Network is unreachable|No route to host)"
    ),
    # Source: nccl#290, #342, nccl-tests#166; PyTorch's torch/csrc/DataLoader.cpp.
    "SHM-SMALL": re.compile(
        rb"NCCL WARN Call to posix_fallocate failed ?: No space left on device"
        rb"|NCCL WARN Error: failed to extend /dev/shm/nccl-"
        rb"|caused by insufficient shared memory \(shm\)"
    ),
    # Source: nvidia-docker#1730.
    "GPU-DETACHED": re.compile(rb"Failed to initialize NVML: Unknown Error"),
    "CUDA-OOM": re.compile(rb"CUDA out of memory|CUDA error: out of memory"),
}


def concerns(text: bytes) -> bool:
    """Whether there is anything for a ``Listener`` in these lines."""
    return (
        b"NCCL " in text
        or b"no userspace device-specific driver" in text  # long words are found in half the time
        or b"insufficient shared memory (shm)" in text
        or b"initialize NVML: Unknown Error" in text
        or b"out of memory" in text
    )


class Listener:
    """Takes the lines of a log that concern it, and knows in the end how ranks spoke."""

    def __init__(self) -> None:
        self._notes = Notes()
        self._taken: dict[str, int] = {}
        self._ports: dict[Port, int] = {}
        self._interfaces: dict[str, int] = {}
        self._no_device: int | None = None

    def hear(self, text: bytes, first: int) -> None:
        """Take whole lines; what is too long for a record is somebody else's text.

        Args:
            first: number of the first line.
        """
        for number, line in lines_that(concerns, text, first) if concerns(text) else ():
            if len(line) <= LONGEST_RECORD:
                self._take(line, number)

    def _take(self, text: bytes, number: int) -> None:
        """Take a line; a piece of one, or two in one, counts only as far as it is whole."""
        for code, pattern in _PROBLEMS.items():
            if pattern.search(text):
                self._notes.add(code, f"line {number}: {_shown(text)}")
        if b"NCCL INFO " in text:
            self._informed(text, number)

    def _informed(self, text: bytes, number: int) -> None:
        for found in (*_CHOSEN.finditer(text), *_VIA.finditer(text)):
            _keep(self._taken, found[1].decode(), number)
        for found in _VERBS.finditer(text):
            for hca, port, link in _PORT.findall(found[1]):
                _keep(self._ports, Port(hca.decode(), int(port), link.decode()), number)
        for found in _SOCKETS.finditer(text):
            for name in _INTERFACE.findall(found[1]):
                _keep(self._interfaces, name.decode(errors="backslashreplace"), number)
        if self._no_device is None and _NO_DEVICE.search(text):
            self._no_device = number

    def fabric(self) -> Fabric:
        """What all lines together say.

        What was taken counts more than what was there to take: sockets that a release lists
        beside its HCAs are no traffic over sockets.
        """
        offered = "IB" if self._ports else "Socket" if self._interfaces else None
        networks = tuple(sorted(self._taken)) or ((offered,) if offered else ())
        seen = (*self._taken.values(), *self._ports.values(), *self._interfaces.values())
        none = () if self._no_device is None else (self._no_device,)
        return Fabric(
            networks=networks,
            ports=tuple(sorted(self._ports, key=lambda port: (port.hca, port.number, port.link))),
            interfaces=tuple(sorted(self._interfaces)),
            no_device=self._no_device,
            lines=tuple(sorted({*seen, *none})),
            problems=self._notes.problems(),
        )


def read(chunks: Iterable[bytes]) -> Fabric:
    """What a whole log says of its transport, whoever wrote it; holds a few pieces of it.

    A last line that no line feed ends may be cut, and is not evidence.
    """
    listener, number = Listener(), 1
    for text in whole_lines(chunks):
        if text.endswith(b"\n"):
            listener.hear(text, number)
        number += text.count(b"\n")
    return listener.fabric()


def _keep(seen: dict[_Seen, int], value: _Seen, line: int) -> None:
    """Remember where a value was seen first."""
    if value in seen or len(seen) < MOST_NAMES:
        seen.setdefault(value, line)


def _shown(text: bytes) -> str:
    words = text.decode(errors="backslashreplace").strip()
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}.."
