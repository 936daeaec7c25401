"""Rules about the NVIDIA driver of a node and its GPUs: health, PCIe lanes, NVLinks."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from orchestrator import words
from orchestrator.model.facts import DriverFacts, GpuFacts, Silent
from orchestrator.model.findings import found
from orchestrator.model.node import Gpus, Node
from orchestrator.model.site import Finding
from orchestrator.model.telemetry import HARMFUL

MOST_ROWS_REMAPPED = 512
# A fabric's state, status, and its health: bandwidth, no unhealthy route, and the like.
_SOUND = frozenset({"Completed", "Success", "Healthy", "Full", "False", "None", "Connected"})
# Our name of how nvidia-smi ended, then its words in place of an answer; the first match counts.
_SILENT = (
    ("^HUNG ", "GPU-QUERY-HUNG"),
    ("^ABSENT |NVIDIA driver", "GPU-NO-DRIVER"),
    ("version mismatch|module differ", "GPU-DRIVER-MISMATCH"),
    ("GPU is lost|device handle", "GPU-LOST"),
    ("requires a reset|must be reset", "GPU-RECOVERY"),
    ("No devices were found", "GPU-COUNT"),
    ("", "GPU-QUERY-FAILED"),
)


def gpus(
    node: Node, facts: DriverFacts | Silent | None, *, driver: str | None = None
) -> Iterator[Finding]:
    """Find what is wrong with the driver, GPU count and model, and the GPUs in use.

    Args:
        driver: the oldest driver that the images run on.
    """
    if facts is None:
        return
    if isinstance(facts, Silent):
        seen = f"{facts.code} {facts.message}"
        code = next(code for pattern, code in _SILENT if re.search(pattern, seen))
        seen = facts.message or "no answer in 20 s"
        yield found(code, node.name, seen, "an answer of nvidia-smi -q -x")
        return
    for problem in facts.problems:
        if problem.code == "GPU-WARNING":
            yield found(problem.code, node.name, problem.message)
        else:
            needed, fix = "an answer that can be read", "see `dlperf-orch inspect gpu`"
            yield found(problem.code, node.name, problem.message, needed, fix, severity="error")
    if driver is not None and facts.driver is not None:
        needed = f"at least {driver}, for the images"
        if words.version_key(facts.driver) < words.version_key(driver):
            yield found("GPU-DRIVER-OLD", node.name, f"driver {facts.driver}", needed)
    declared = node.gpus or Gpus()
    if declared.count is not None and declared.count != len(facts.gpus):
        there, needed = (words.count(count, "GPU") for count in (len(facts.gpus), declared.count))
        yield found("GPU-COUNT", node.name, there, needed)
    for model, count in Counter(gpu.model for gpu in facts.gpus).items():
        if declared.model not in (None, model):
            seen = f"{count} x {model or 'unreadable name'}"
            yield found("GPU-MODEL", node.name, seen, f"{declared.model}")
    yield from _broken(node, facts)


def nvlinks(
    node: Node,
    facts: DriverFacts | Silent | None,
    active: Mapping[int, tuple[bool, ...]] | Silent | None,
    errors: Mapping[tuple[int, int], Mapping[str, int]] | Silent | None,
) -> Iterator[Finding]:
    """Find GPUs in use whose NVLinks are down, or have counted any error, as Meta's gcm does."""
    used = _indexes(node, facts) if isinstance(facts, DriverFacts) else set()
    if active and not isinstance(active, Silent):
        usual = Counter(sum(up) for up in active.values()).most_common(1)[0][0]
        needed = f"{usual} active, as on most GPUs of the node"
        for gpu, up in active.items():
            if gpu in used and sum(up) < min(usual, len(up)):
                down = ", ".join(str(link) for link, is_up in enumerate(up) if not is_up)
                seen = f"GPU {gpu}: NVLinks {down} are inactive"
                yield found("NVLINK-DOWN", node.name, seen, needed)
    if errors and not isinstance(errors, Silent):
        by_gpu: dict[int, list[str]] = {}
        for (gpu, link), counts in errors.items():
            counted = ", ".join(f"{name} {n}" for name, n in counts.items())
            by_gpu.setdefault(gpu, []).append(f"link {link}: {counted}")
        for gpu, links in by_gpu.items():
            if gpu in used:
                yield found("NVLINK-ERRORS", node.name, f"GPU {gpu}: {'; '.join(links)}")


def _indexes(node: Node, facts: DriverFacts) -> set[int]:
    return {*(node.usable_gpus or [gpu.index for gpu in facts.gpus])}


def _broken(node: Node, facts: DriverFacts) -> Iterator[Finding]:
    """Find faults of GPUs in use; GPUs with the same fault are one finding."""
    used = _indexes(node, facts)
    by_fault: dict[tuple[str, str], list[str]] = {}
    for gpu in facts.gpus:
        if gpu.index in used:
            alike = [other for other in facts.gpus if other.model == gpu.model]
            for fault in (*_faults(gpu), *_lanes(gpu, alike)):
                by_fault.setdefault(fault, []).append(str(gpu.index))
    for (code, seen), indexes in by_fault.items():
        yield found(code, node.name, f"GPU {', '.join(indexes)}: {seen}")


def _faults(gpu: GpuFacts) -> Iterator[tuple[str, str]]:
    """Yield the code of each fault of a GPU, and what was seen.

    Memory errors are those that can spoil a run now; one of DRAM whose row was remapped long ago
    cannot.

    Source: NVIDIA, GPU Memory Error Management; Azure's health checks gate SRAM over the GPU's
    life and more than 512 remapped rows, Meta's gcm what was counted since the driver was loaded,
    both whether a remapping is pending or failed.
    """
    volatile, sram = gpu.ecc_volatile_uncorrected, gpu.ecc_sram_uncorrected
    rows, action = gpu.rows_remapped or 0, gpu.recovery_action
    fabric = gpu.fabric or {}
    # A status counts once the registration is completed (NVML, nvmlGpuFabricInfo_t).
    ignored = set() if fabric.get("state") == "Completed" else {"status"}
    unsound = [
        f"{name} {word}".replace("_", " ")
        for name, word in fabric.items()
        if word not in _SOUND and name not in ignored
    ]
    slowed = [reason for reason in gpu.throttle_reasons or () if reason in HARMFUL]
    for code, is_wrong, seen in (
        ("GPU-ECC", volatile, f"{volatile} uncorrected memory errors since the driver was loaded"),
        ("GPU-ECC", sram, f"{sram} uncorrected SRAM errors over its life"),
        ("GPU-ECC", gpu.row_remap_pending, "a row remapping is pending"),
        ("GPU-ECC", gpu.row_remap_failed, "a row remapping has failed"),
        ("GPU-ECC", rows > MOST_ROWS_REMAPPED, f"{rows} rows remapped for uncorrected errors"),
        ("GPU-ECC", gpu.page_retirement_pending, "a page retirement is pending"),
        ("GPU-RECOVERY", action not in (None, "None"), f"the driver asks for: {action}"),
        ("GPU-FABRIC", unsound, f"fabric {', '.join(unsound)}"),
        ("GPU-MIG", gpu.mig, "MIG is on"),
        ("GPU-PERSISTENCE", gpu.persistence is False, "persistence mode is off"),
        ("GPU-THROTTLED", slowed, f"clocks held down by {', '.join(slowed)}"),
    ):
        if is_wrong:
            yield code, seen
    for process in gpu.processes or ():
        mib = process.memory_mib
        used = "some memory" if mib is None else words.size(mib << 20)
        who = f"process {process.pid or '?'} ({process.name or 'without a name'})"
        yield "GPU-BUSY", f"{who} uses {used}"


def _lanes(gpu: GpuFacts, alike: Sequence[GpuFacts]) -> Iterator[tuple[str, str]]:
    """Yield fewer or slower PCIe lanes than GPU and slot have, or than others of its model reach.

    An idle GPU may use fewer and slower lanes to save power, which is no fault (nvidia-smi(1)). A
    virtual machine sees a PCIe of its own.
    """
    if gpu.virtual:
        return
    used, able = gpu.pcie_generation, gpu.pcie_generation_max
    saves_power = used is not None and able is not None and used < able
    width, widest = gpu.pcie_width, gpu.pcie_width_max or 0
    if width is not None and width < widest and not saves_power:
        yield "PCIE-WIDTH", f"uses {width} of {widest} PCIe lanes"
    both_ends = min(gpu.pcie_generation_gpu or 0, gpu.pcie_generation_slot or 0)
    fastest = max(both_ends, *(other.pcie_generation_max or 0 for other in alike))
    if able is not None and able < fastest:
        yield "PCIE-SPEED", f"reaches PCIe generation {able} of {fastest}"
