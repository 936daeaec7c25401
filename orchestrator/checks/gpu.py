"""Rules about the NVIDIA driver of a node and its GPUs."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from orchestrator import words
from orchestrator.model.facts import DriverFacts, GpuFacts, Silent
from orchestrator.model.findings import found
from orchestrator.model.node import Gpus, Node
from orchestrator.model.site import Finding

MOST_ROWS_REMAPPED = 512
# Idle, clocks that somebody set and the software power cap are normal on a sound GPU.
_HARMFUL = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
_RESET = "end the programs on it, then reset it (nvidia-smi --gpu-reset -i {})"
_RECOVERIES = {
    "Reset": _RESET,
    "Reboot": "reboot the node",
    "Drain P2P": "end the programs that exchange data with it",
    "Drain and Reset": _RESET,
}
# A fabric's state, status, and its health: bandwidth, no unhealthy route, and the like.
_SOUND = frozenset({"Completed", "Success", "Healthy", "Full", "False", "None", "Connected"})
# What nvidia-smi says in place of an answer, or our name of its exit status.
_SILENT = (
    ("NVIDIA driver", "GPU-NO-DRIVER", "install the NVIDIA driver, or correct the inventory"),
    ("version mismatch|module differ", "GPU-DRIVER-MISMATCH", "reboot the node after the update"),
    ("GPU is lost|device handle", "GPU-LOST", "look for Xid 79 in dmesg; reboot or reseat the GPU"),
    ("requires a reset|must be reset", "GPU-RECOVERY", "reset the GPUs or reboot the node"),
    ("No devices were found", "GPU-COUNT", "look for GPUs that fell off the bus (Xid 79 in dmesg)"),
)


def gpus(
    node: Node, facts: DriverFacts | Silent | None, *, driver: str | None = None
) -> Iterator[Finding]:
    """Findings about the driver, about GPU count and model, and about the GPUs in use.

    Args:
        driver: the oldest driver that the images run on.
    """
    if isinstance(facts, Silent):
        yield _silent(node, facts)
    elif facts is not None:
        yield from _driver(node, facts, driver)
        yield from _declared(node, node.gpus or Gpus(), facts)
        used = node.usable_gpus or [gpu.index for gpu in facts.gpus]
        for gpu in facts.gpus:
            if gpu.index in used:
                yield from _gpu(node, gpu)
        yield from _fabric(node, [gpu for gpu in facts.gpus if gpu.index in used])


def older(version: str, needed: str) -> bool:
    """Return True if a dotted version is older than the needed one, as 418.87 is than 440.33.01."""
    return words.version_key(version) < words.version_key(needed)


def _silent(node: Node, silent: Silent) -> Finding:
    known = (entry[1:] for entry in _SILENT if re.search(entry[0], silent.message))
    code, fix = next(known, ("GPU-QUERY-FAILED", "run `nvidia-smi -q -x` on the node"))
    if silent.code == "HUNG":
        code, fix = "GPU-QUERY-HUNG", "look for Xid in dmesg; a hung driver needs a reboot"
    elif silent.code == "ABSENT":
        _, code, fix = _SILENT[0]
    seen = silent.message or "no answer in 20 s"
    return found(code, node.name, seen, "an answer of nvidia-smi -q -x", fix, severity="error")


def _driver(node: Node, facts: DriverFacts, needed: str | None) -> Iterator[Finding]:
    for problem in facts.problems:
        warned = problem.code == "GPU-WARNING"
        fix = "ask the vendor of the GPU" if warned else "see `dlperf-orch inspect gpu`"
        yield found(
            problem.code,
            node.name,
            problem.message,
            "no warning" if warned else "an answer that can be read",
            fix,
            severity="warning" if warned else "error",
        )
    if needed is not None and facts.driver is not None and older(facts.driver, needed):
        yield found(
            "GPU-DRIVER-OLD",
            node.name,
            f"driver {facts.driver}",
            f"at least {needed}, for the images",
        )


def _declared(node: Node, declared: Gpus, facts: DriverFacts) -> Iterator[Finding]:
    if declared.count not in (None, len(facts.gpus)):
        yield found(
            "GPU-COUNT",
            node.name,
            words.count(len(facts.gpus), "GPU"),
            words.count(declared.count, "GPU"),
            "look for a GPU that fell off the bus (dmesg: Xid 79), or correct the inventory",
        )
    for model, count in Counter(gpu.model for gpu in facts.gpus).items():
        if declared.model not in (None, model):
            yield found("GPU-MODEL", node.name, f"{count} x {model}", f"{declared.model}")


def _gpu(node: Node, gpu: GpuFacts) -> Iterator[Finding]:
    at = f"GPU {gpu.index}"
    yield from _memory(node, gpu, at)
    if gpu.recovery_action not in (None, "None"):
        fix = _RECOVERIES.get(
            gpu.recovery_action, "do what the driver asks for, or reboot the node"
        )
        yield found(
            "GPU-RECOVERY",
            node.name,
            f"{at}: the driver asks for: {gpu.recovery_action}",
            "no recovery",
            fix.format(gpu.index),
        )
    if gpu.mig:
        yield found("GPU-MIG", node.name, f"{at}: MIG is on", "off")
    if gpu.persistence is False:
        yield found("GPU-PERSISTENCE", node.name, f"{at}: persistence mode is off", "on")
    yield from _clocks_and_processes(node, gpu, at)


def _fabric(node: Node, gpus: Sequence[GpuFacts]) -> Iterator[Finding]:
    """Until a GPU is registered with the fabric, every CUDA program on it ends with error 802."""
    by_words: dict[str, list[str]] = {}
    for gpu in gpus:
        if gpu.fabric and (seen := _unsound(gpu.fabric)):
            by_words.setdefault(seen, []).append(str(gpu.index))
    for seen, indexes in by_words.items():
        yield found(
            "GPU-FABRIC",
            node.name,
            f"GPU {', '.join(indexes)}: fabric {seen}",
            "state Completed, status Success, no error of its health",
        )


def _unsound(fabric: Mapping[str, str]) -> str:
    """A status counts once the registration is completed (NVML, nvmlGpuFabricInfo_t)."""
    is_done = fabric.get("state") == "Completed"
    words = {name: word for name, word in fabric.items() if is_done or name != "status"}
    wrong = [f"{name} {word}" for name, word in words.items() if word not in _SOUND]
    return ", ".join(wrong).replace("_", " ")


def _memory(node: Node, gpu: GpuFacts, at: str) -> Iterator[Finding]:
    """Errors that can spoil a run now; one of DRAM whose row was remapped long ago cannot.

    Source: NVIDIA, GPU Memory Error Management; Azure's health checks gate SRAM over the GPU's
    life and more than 512 remapped rows, Meta's gcm what was counted since the driver was loaded,
    both whether a remapping is pending or failed.
    """
    volatile, sram = gpu.ecc_volatile_uncorrected, gpu.ecc_sram_uncorrected
    rows = gpu.rows_remapped or 0
    replace = "take the GPU out of `gpus.use`, or have it replaced"
    reset = "reset the GPU (`nvidia-smi -r`) or reboot the node"
    seen_and_fix = (
        (
            volatile and f"{volatile} uncorrected memory errors since the driver was loaded",
            f"{reset}; if they come back, {replace}",
        ),
        (sram and f"{sram} uncorrected SRAM errors over its life", replace),
        (gpu.row_remap_pending and "a row remapping is pending", reset),
        (gpu.row_remap_failed and "a row remapping has failed", replace),
        (rows > MOST_ROWS_REMAPPED and f"{rows} rows remapped for uncorrected errors", replace),
        (gpu.page_retirement_pending and "a page retirement is pending", reset),
    )
    for seen, fix in seen_and_fix:
        if seen:
            yield found("GPU-ECC", node.name, f"{at}: {seen}", "none", fix)


def _clocks_and_processes(node: Node, gpu: GpuFacts, at: str) -> Iterator[Finding]:
    slowed = [reason for reason in gpu.throttle_reasons or () if reason in _HARMFUL]
    if slowed:
        yield found(
            "GPU-THROTTLED",
            node.name,
            f"{at}: clocks held down by {', '.join(slowed)}",
            "full clocks",
        )
    for process in gpu.processes or ():
        mib = process.memory_mib
        used = "some memory" if mib is None else words.size(mib << 20)
        yield found(
            "GPU-BUSY",
            node.name,
            f"{at}: process {process.pid} ({process.name}) uses {used}",
            "no other process",
        )
