"""Rules about what GPUs are connected by: PCIe lanes, NVLinks and their errors. Each warns."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from orchestrator.model.facts import DriverFacts, GpuFacts, Silent
from orchestrator.model.findings import found
from orchestrator.model.health import NvlinkErrors
from orchestrator.model.node import Node
from orchestrator.model.site import Finding


def lanes(node: Node, gpus: DriverFacts | Silent | None) -> Iterator[Finding]:
    """GPUs in use on fewer or slower PCIe lanes than they have, or than others of their model.

    What an idle GPU saves is none of it: it may use fewer and slower lanes (nvidia-smi(1)). A
    virtual machine sees a PCIe of its own, and can have been given half of a card's lanes: there
    only GPUs of one model are compared.
    """
    if isinstance(gpus, DriverFacts):
        used = _used(node, gpus)
        for gpu in gpus.gpus:
            if gpu.index in used:
                alike = [other for other in gpus.gpus if other.model == gpu.model]
                yield from _width(node, gpu, alike)
                yield from _speed(node, gpu, alike)


def nvlinks(
    node: Node,
    gpus: DriverFacts | Silent | None,
    active: Mapping[int, tuple[bool, ...]] | Silent | None,
    errors: tuple[NvlinkErrors, ...] | Silent | None,
) -> Iterator[Finding]:
    """NVLinks of GPUs in use that are down, or that have counted errors."""
    if not isinstance(gpus, DriverFacts):
        return
    used = _used(node, gpus)
    if active and not isinstance(active, Silent):
        yield from _inactive(node, used, active)
    if errors and not isinstance(errors, Silent):
        yield from _errors(node, used, errors)


def _used(node: Node, gpus: DriverFacts) -> Collection[int]:
    return node.usable_gpus or [gpu.index for gpu in gpus.gpus]


def _width(node: Node, gpu: GpuFacts, alike: Sequence[GpuFacts]) -> Iterator[Finding]:
    widths = (other.pcie_width for other in alike if not _saves(other))
    most = _usual(widths) if gpu.virtual else gpu.pcie_width_max or 0
    if gpu.pcie_width is not None and gpu.pcie_width < most and not _saves(gpu):
        yield found(
            "PCIE-WIDTH", node.name, f"GPU {gpu.index} uses {gpu.pcie_width} PCIe lanes", f"{most}"
        )


def _speed(node: Node, gpu: GpuFacts, alike: Sequence[GpuFacts]) -> Iterator[Finding]:
    """Report a GPU below the usual PCIe generation, unless power saving may explain it."""
    able, used = gpu.pcie_generation_max, gpu.pcie_generation
    most = max(_usual(other.pcie_generation_max for other in alike), _both_ends(gpu))
    in_p0 = [other.pcie_generation for other in alike if other.performance_state == "P0"]
    seen = None
    if able is not None and able < most:
        seen = f"reaches PCIe generation {able}"
    elif gpu.performance_state == "P0" and used is not None and used < (most := _usual(in_p0)):
        seen = f"uses PCIe generation {used} in state P0"
    if seen is not None:
        yield found("PCIE-SPEED", node.name, f"GPU {gpu.index} {seen}", f"{most}")


def _saves(gpu: GpuFacts) -> bool:
    used, able = gpu.pcie_generation, gpu.pcie_generation_max
    return used is not None and able is not None and used < able


def _both_ends(gpu: GpuFacts) -> int:
    """The PCIe generation that GPU and slot have; 0 where the driver does not know."""
    return 0 if gpu.virtual else min(gpu.pcie_generation_gpu or 0, gpu.pcie_generation_slot or 0)


def _usual(values: Iterable[int | None]) -> int:
    """The most frequent of those that are known, of equally frequent ones the largest."""
    counts = Counter(value for value in values if value is not None)
    return max(counts, key=lambda value: (counts[value], value), default=0)


def _inactive(
    node: Node, used: Collection[int], nvlinks: Mapping[int, tuple[bool, ...]]
) -> Iterator[Finding]:
    active = {gpu: sum(up) for gpu, up in nvlinks.items()}
    usual = Counter(active.values()).most_common(1)[0][0]
    for gpu, count in active.items():
        if gpu in used and count < min(usual, len(nvlinks[gpu])):
            down = [str(at) for at, up in enumerate(nvlinks[gpu]) if not up]
            yield found(
                "NVLINK-DOWN",
                node.name,
                f"GPU {gpu}: NVLinks {', '.join(down)} are inactive",
                f"{usual} active, as on most GPUs of the node",
            )


def _errors(
    node: Node, used: Collection[int], errors: tuple[NvlinkErrors, ...]
) -> Iterator[Finding]:
    """One finding a GPU. Source of the bound: the defaults of Meta's gcm, any error of a link."""
    by_gpu: dict[int, list[str]] = {}
    for link in errors:
        counts = ", ".join(f"{name} {count}" for name, count in link.counts.items())
        by_gpu.setdefault(link.gpu, []).append(f"link {link.link}: {counts}")
    for gpu, seen in by_gpu.items():
        if gpu in used:
            yield found(
                "NVLINK-ERRORS",
                node.name,
                f"GPU {gpu}: {'; '.join(seen)}",
                "no errors since they were cleared",
            )
