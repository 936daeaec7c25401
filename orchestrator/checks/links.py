"""Rules about what GPUs are connected by: PCIe lanes, NVLinks and their errors. Each warns."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from orchestrator.model.facts import DriverFacts, GpuFacts, Silent
from orchestrator.model.health import NvlinkErrors
from orchestrator.model.node import Node
from orchestrator.model.site import Finding


def lanes(node: Node, gpus: DriverFacts | Silent | None) -> Iterator[Finding]:
    """GPUs in use on fewer PCIe lanes than they have."""
    if isinstance(gpus, DriverFacts):
        for gpu in gpus.gpus:
            if gpu.index in _used(node, gpus):
                yield from _lanes(node, gpu)


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


def _lanes(node: Node, gpu: GpuFacts) -> Iterator[Finding]:
    width, most = gpu.pcie_width, gpu.pcie_width_max
    if width is not None and most is not None and width < most:
        yield Finding(
            "warning",
            "PCIE-WIDTH",
            node.name,
            f"GPU {gpu.index} uses {width} PCIe lanes",
            f"{most}",
            "reseat the card or its riser; compare with the other nodes",
        )


def _inactive(
    node: Node, used: Collection[int], nvlinks: Mapping[int, tuple[bool, ...]]
) -> Iterator[Finding]:
    active = {gpu: sum(up) for gpu, up in nvlinks.items()}
    usual = Counter(active.values()).most_common(1)[0][0]
    for gpu, count in active.items():
        if gpu in used and count < min(usual, len(nvlinks[gpu])):
            down = [str(at) for at, up in enumerate(nvlinks[gpu]) if not up]
            yield Finding(
                "warning",
                "NVLINK-DOWN",
                node.name,
                f"GPU {gpu}: NVLinks {', '.join(down)} are inactive",
                f"{usual} active, as on most GPUs of the node",
                "look for Xid 74 in dmesg; reset the GPU or reboot the node",
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
            yield Finding(
                "warning",
                "NVLINK-ERRORS",
                node.name,
                f"GPU {gpu}: {'; '.join(seen)}",
                "no errors since they were cleared",
                "clear them (nvidia-smi nvlink -re) and measure;"
                " if they come back, have GPU or board looked at",
            )
