"""Facts: nodes' answers to probes, with problems where they could not be read safely."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from orchestrator.model.problem import Problem
from orchestrator.model.site import DataState, DockerFacts, HcaPort, HostFacts, Topology

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"


@dataclass(frozen=True, slots=True)
class InfinibandFacts:
    """The ports of a node's HCAs, in the order printed."""

    ports: tuple[HcaPort, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds a GPU; None where the driver does not say."""

    pid: int | None
    name: str | None
    memory_mib: int | None


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU; None where the driver does not report a value or it cannot be read.

    Args:
        index: its place in the driver's document, from 0.
        memory_mib: all of the GPU's memory, not that of a MIG slice.
        ecc_uncorrected: in all memories over the GPU's life, as are ``ecc_sram_uncorrected`` and
            ``rows_remapped``.
        throttle_reasons: those that are active, ``gpu_idle`` among them.
        processes: empty where no process is visible, which a container also causes.
        ecc_volatile_uncorrected: in all memories since the driver was loaded.
        page_retirement_pending: what GPUs before Ampere do instead of remapping rows.
        pcie_width, pcie_generation: in use; ``_max``: as GPU and slot have together; ``_gpu`` and
            ``_slot``: as each could do alone.
        virtual: whether a virtual machine has it, which sees another PCIe than there is.
        recovery_action: that the driver asks for; ``None``, the word, where it asks for nothing.
        fabric: state, status and health of the NVSwitches' fabric, by the driver's names and in
            its words; None without a fabric.
    """

    index: int
    uuid: str | None
    bus_id: str | None
    model: str | None
    memory_mib: int | None
    ecc_uncorrected: int | None
    persistence: bool | None
    mig: bool | None
    power_limit_w: float | None
    sm_clock_mhz: int | None
    throttle_reasons: tuple[str, ...] | None
    processes: tuple[GpuProcess, ...] | None
    ecc_volatile_uncorrected: int | None
    ecc_sram_uncorrected: int | None
    row_remap_pending: bool | None
    row_remap_failed: bool | None
    page_retirement_pending: bool | None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    vbios: str | None = None
    rows_remapped: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_generation_gpu: int | None = None
    pcie_generation_slot: int | None = None
    performance_state: str | None = None
    virtual: bool | None = None
    recovery_action: str | None = None
    fabric: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """The NVIDIA driver of a node and its GPUs, in the driver's order."""

    driver: str | None
    cuda: str | None
    gpus: tuple[GpuFacts, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Silent:
    """A probe without a fact.

    Args:
        code: ``HUNG``; ``ABSENT``, no such program; else the code of the error.
        message: the output in its place, as the node printed it.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class VerbsFacts:
    """The adapters that programs can really open, and the warnings of ``ibv_devinfo``."""

    hcas: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gid:
    """One address of an RDMA port.

    Args:
        address: as eight groups; of IPv4 the last two.
        kind: such as ``RoCE v2``.
    """

    hca: str
    port: int
    index: int
    address: str
    interface: str
    kind: str


@dataclass(frozen=True, slots=True)
class Xid:
    """An error of a GPU or, as SXid, of an NVSwitch in the kernel's log.

    Args:
        age_s: None where the kernel logs no times.
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
        width, speed: PCIe lanes and GT/s in use; ``most_``: that the adapter can.
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
        governors: how many CPUs have each frequency governor.
        xids: None where its user may not read the kernel's log.
    """

    governors: Mapping[str, int]
    swap_used_mib: int | None
    xids: tuple[Xid, ...] | None
    hcas: tuple[HcaHealth, ...]


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """Everything that one round trip brought from a node; None is what was not asked.

    Args:
        nvlinks: by GPU, whether each of its NVLinks is active.
        nvlink_errors: by GPU and link, the count of each error by nvidia-smi's name; those above 0.
    """

    host: HostFacts
    gpu: DriverFacts | Silent | None
    topology: Topology | Silent | None
    infiniband: InfinibandFacts | Silent | None
    verbs: VerbsFacts | Silent | None
    ofed: str | None
    docker: DockerFacts | Silent | None
    data: Mapping[str, DataState]
    gids: tuple[Gid, ...] | Silent | None = None
    health: HealthFacts | Silent | None = None
    nvlinks: Mapping[int, tuple[bool, ...]] | Silent | None = None
    nvlink_errors: Mapping[tuple[int, int], Mapping[str, int]] | Silent | None = None


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """Facts about a node, seen from inside one of our containers; None if not asked for.

    Args:
        devices: names in /dev/infiniband.
        memlock_kib: None is no limit.
    """

    gpus: DriverFacts | Silent | None
    infiniband: InfinibandFacts | Silent | None
    verbs: VerbsFacts | Silent | None
    ofed: str | None
    devices: tuple[str, ...]
    memlock_kib: int | None
    shm_mib: int
    data: Mapping[str, DataState] = field(default_factory=dict)
