"""What NCCL would say of its transport here, in the words of its version 2.5."""

import fcntl
import glob
import json
import os
import shutil
import socket
import struct
import sys

_SIOCGIFADDR = 0x8915


def report(local_rank: int) -> None:
    """Print NCCL's lines, if NCCL_DEBUG asks for them.

    InfiniBand is used where its device and its user space are there, and the switch does not say
    otherwise; a device alone gives the warning of libibverbs, and sockets.
    """
    switch = json.loads(os.environ.get("STANDIN_SWITCH", "{}"))
    devices = bool(glob.glob("/dev/infiniband/uverbs*")) and switch.get("transport") != "sockets"
    if devices and not shutil.which("ibv_devinfo"):
        sys.stderr.write(
            "libibverbs: Warning: no userspace device-specific driver found for"
            " /sys/class/infiniband_verbs/uverbs0\n"
        )
        devices = False
    if os.environ.get("NCCL_DEBUG", "").upper() != "INFO" or switch.get("transport") == "silent":
        return
    out_of_band = _interface()
    pid = os.getpid()
    start = f"{socket.gethostname()}:{pid}:{pid} [{local_rank}] NCCL INFO "
    hca = os.environ.get("NCCL_IB_HCA", "mlx5_0").lstrip("=").split(",")[0]
    lines = [
        "Bootstrap : Using [0]" + out_of_band,
        "NET/Plugin : No plugin found (libnccl-net.so).",
    ]
    if devices:
        lines.append("NET/IB : Using [0]" + hca + ":1/IB ; OOB " + out_of_band)
    else:
        lines += ["NET/IB : No device found.", "NET/Socket : Using [0]" + out_of_band]
    sys.stdout.write("".join(start + line + "\n" for line in lines))
    sys.stdout.flush()


def _interface() -> str:
    """Name and address of the interface that NCCL would take: the first that fits, else not lo.

    A name without a leading ``=`` is a prefix: eth1 also means eth10.
    """
    requested = os.environ.get("NCCL_SOCKET_IFNAME", "")
    for _, name in socket.if_nameindex():
        whole = requested.startswith("=") and name == requested[1:]
        if whole or (name.startswith(requested) and (requested or name != "lo")):
            return name + ":" + _address(name) + "<0>"
    raise RuntimeError("NCCL WARN Bootstrap : no socket interface found")


def _address(interface: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        packed = fcntl.ioctl(link.fileno(), _SIOCGIFADDR, struct.pack("256s", interface.encode()))
    return socket.inet_ntoa(packed[20:24])
