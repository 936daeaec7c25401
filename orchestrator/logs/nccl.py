"""The transport that NCCL reports in a log, and the errors of NCCL and its neighbors.

Lines of NCCL's INFO level begin ``host:pid:tid [device] NCCL INFO``, maybe after mpirun's tag or a
timestamp. Releases differ: up to 2.4 every process lists its sockets, even with InfiniBand in use;
up to 2.5 none prints ``Using network``; a process that finds no HCA may still print
``NET/IB : Using [RO]; OOB eth0:..``, without a device.
Source: NCCL's net_ib.cc, net_socket.cc and net.cc; recorded logs in tests/samples/nccl.
"""

import re
from collections.abc import Iterable, Mapping

from orchestrator.logs.header import Notes
from orchestrator.logs.text import LONGEST_RECORD, select_lines, whole_lines
from orchestrator.model.log import Fabric, Port

# NCCL INFO Using network IB; ... [send] via NET/AWS Libfabric/0
_NETWORK = re.compile(
    rb"NCCL INFO Using network (\w{1,32}(?: \w{1,32})?)[ \t]*$"
    rb"| via NET/(\w{1,32}(?: \w{1,32})?)/\d"
)
# NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>
_VERBS = re.compile(rb"NCCL INFO NET/IB ?: Using ([^;]{0,4096});")
_PORT = re.compile(rb"\[\d{1,3}\] ?([\w.+-]{1,64}):(\d{1,3})/([A-Za-z]{1,16})")
# NCCL INFO NET/Socket : Using [0]eno1:10.0.0.1<0>
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


_WORDS = (  # long words are found in half the time
    *(b"NCCL ", b"no userspace device-specific driver", b"insufficient shared memory (shm)"),
    *(b"initialize NVML: Unknown Error", b"out of memory"),
)
_SHOWN = 160


def _concerns(text: bytes) -> bool:
    return any(word in text for word in _WORDS)


class Listener:
    """Collects what communication libraries print in one task's log."""

    def __init__(self) -> None:
        self._notes = Notes()
        # Each with the line where it is printed first.
        self._networks: dict[str, int] = {}
        self._ports: dict[Port, int] = {}
        self._interfaces: dict[str, int] = {}
        self._no_device: int | None = None

    def take(self, text: bytes, first: int) -> None:
        """Read whole lines, numbered from ``first``."""
        for number, line in select_lines(_concerns, text, first) if _concerns(text) else ():
            if len(line) > LONGEST_RECORD:
                continue
            for code, pattern in _PROBLEMS.items():
                if pattern.search(line):
                    words = line.decode(errors="backslashreplace").strip()
                    shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}.."
                    self._notes.add(code, f"line {number}: {shown}")
            if b"NCCL INFO " in line:
                self._take_info(line, number)

    def _take_info(self, line: bytes, number: int) -> None:
        """Read the records of a line: ranks that print at the same time glue several together."""
        for found in _NETWORK.finditer(line):
            self._networks.setdefault((found[1] or found[2]).decode(), number)
        for found in _VERBS.finditer(line):
            for hca, port, link in _PORT.findall(found[1]):
                self._ports.setdefault(Port(hca.decode(), int(port), link.decode()), number)
        for found in _SOCKETS.finditer(line):
            for name in _INTERFACE.findall(found[1]):
                self._interfaces.setdefault(name.decode(errors="backslashreplace"), number)
        if self._no_device is None and _NO_DEVICE.search(line):
            self._no_device = number

    def fabric(self) -> Fabric:
        """Return the transport that was used, else the one that NCCL lists.

        Sockets that a release lists beside its HCAs are no traffic over sockets.
        """
        offered = "IB" if self._ports else "Socket" if self._interfaces else None
        networks = tuple(sorted(self._networks)) or ((offered,) if offered else ())
        lines = {*self._networks.values(), *self._ports.values(), *self._interfaces.values()}
        if self._no_device is not None:
            lines.add(self._no_device)
        return Fabric(
            networks=networks,
            ports=tuple(sorted(self._ports, key=lambda port: (port.hca, port.number, port.link))),
            interfaces=tuple(sorted(self._interfaces)),
            no_device=self._no_device,
            lines=tuple(sorted(lines)),
            problems=self._notes.problems(),
        )


def read(chunks: Iterable[bytes]) -> Fabric:
    """Return the transport of a whole log of any program.

    A last line that no line feed ends may be cut, and is ignored.
    """
    listener, number = Listener(), 1
    for text in whole_lines(chunks):
        if text.endswith(b"\n"):
            listener.take(text, number)
        number += text.count(b"\n")
    return listener.fabric()
