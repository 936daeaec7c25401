"""Facts about the health of a node's hardware, beside those of GPUs and adapters."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Xid:
    """An error of a GPU or, as SXid, of an NVSwitch in the kernel's log.

    Args:
        age_s: seconds since it was logged; None where the kernel logs no times.
        words: the line, without its time.
        fatal: None where the line says neither Fatal nor Nonfatal.
    """

    number: int
    bus_id: str
    age_s: float | None
    words: str
    of_switch: bool = False
    fatal: bool | None = None


@dataclass(frozen=True, slots=True)
class HcaHealth:
    """An InfiniBand adapter's place on PCIe, and the error counters of its ports.

    Args:
        width, most_width: PCIe lanes in use, and those that the adapter has; None if not known.
        speed, most_speed: in GT/s, likewise.
        counters: by name, the largest of its ports, since they were cleared or the node started.
    """

    name: str
    width: int | None
    most_width: int | None
    speed: float | None
    most_speed: float | None
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """The health of a node.

    Args:
        governors: how many CPUs have each frequency governor; empty where nothing governs them.
        swap_used_mib: None where the kernel does not say.
        link_downs: each with its interface or adapter, such as ``ib0`` or ``mlx5_0``, and the
            seconds since it was logged.
        xids, link_downs: None where its user may not read the kernel's log.
    """

    governors: Mapping[str, int]
    swap_used_mib: int | None
    xids: tuple[Xid, ...] | None
    link_downs: tuple[tuple[str, float], ...] | None
    hcas: tuple[HcaHealth, ...]
