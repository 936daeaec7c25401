"""Rules over facts: is a node fit to measure what the inventory says it can?"""

from collections import Counter
from collections.abc import Iterator, Mapping

from orchestrator.model.cluster import Cluster, Node
from orchestrator.model.facts import DriverFacts, GpuFacts
from orchestrator.model.site import Finding, HostFacts

LEAST_DISK_MIB = 1024
LEAST_OPEN_FILES = 256
BUSY_SHARE = 0.5
MOST_SKEW_S, WORST_SKEW_S = 1.0, 30.0


def host(node: Node, facts: HostFacts, extra: str | None) -> Iterator[Finding]:
    """What is wrong with the machine itself.

    Args:
        extra: the extra of this package that brings the modules an image needs.
    """
    for module in facts.missing_modules:
        yield Finding(
            "error",
            "MODULE-MISSING",
            node.name,
            f"no Python module {module}",
            f"{module} importable",
            f"pip install 'dlperf-orch[{extra}]'" if extra else f"install {module}",
        )
    if facts.free_disk_mib < LEAST_DISK_MIB:
        yield Finding(
            "error",
            "DISK-FULL",
            node.name,
            f"{facts.free_disk_mib} MiB free where attempts lie",
            f"at least {LEAST_DISK_MIB} MiB",
            "free some disk, or choose another folder with --state",
        )
    if facts.open_files is not None and facts.open_files < LEAST_OPEN_FILES:
        yield Finding(
            "error",
            "LIMITS",
            node.name,
            f"{facts.open_files} open files allowed",
            f"at least {LEAST_OPEN_FILES}",
            f"ulimit -n {LEAST_OPEN_FILES}",
        )
    if facts.load > facts.cpus * BUSY_SHARE:
        yield Finding(
            "warning",
            "BUSY",
            node.name,
            f"load {facts.load:g} on {facts.cpus} CPUs",
            f"below {facts.cpus * BUSY_SHARE:g}",
            "find out what else runs there; it takes part in the number",
        )
    if node.interface is not None and node.interface not in facts.interfaces:
        yield Finding(
            "error",
            "INTERFACE-MISSING",
            node.name,
            f"interfaces {', '.join(facts.interfaces) or 'none'}",
            node.interface,
            "name an interface that the node has",
        )


def gpus(node: Node, facts: DriverFacts) -> Iterator[Finding]:
    """What is wrong with the node's GPUs, and with what the driver says of them."""
    for problem in facts.problems:
        yield Finding(
            "error",
            problem.code,
            node.name,
            problem.message,
            "an answer that can be read",
            "see `dlperf-orch inspect gpu`",
        )
    declared = node.gpus
    if declared is not None and declared.count not in (None, len(facts.gpus)):
        yield Finding(
            "error",
            "GPU-COUNT",
            node.name,
            f"{len(facts.gpus)} GPUs",
            f"{declared.count} GPUs",
            "look for a GPU that fell off the bus (dmesg: Xid 79), or correct the inventory",
        )
    if declared is not None and declared.model is not None:
        for model, count in Counter(gpu.model for gpu in facts.gpus).items():
            if model != declared.model:
                yield Finding(
                    "error",
                    "GPU-MODEL",
                    node.name,
                    f"{count} x {model}",
                    declared.model,
                    "correct the inventory",
                )
    used = node.usable_gpus or [gpu.index for gpu in facts.gpus]
    for gpu in facts.gpus:
        if gpu.index in used:
            yield from _gpu(node, gpu)


def _gpu(node: Node, gpu: GpuFacts) -> Iterator[Finding]:
    at = f"GPU {gpu.index}"
    if gpu.ecc_uncorrected:
        yield Finding(
            "error",
            "GPU-ECC",
            node.name,
            f"{at}: {gpu.ecc_uncorrected} uncorrected memory errors",
            "none",
            "take the GPU out of `gpus.use`, or have it replaced",
        )
    if gpu.mig:
        yield Finding("error", "GPU-MIG", node.name, f"{at}: MIG is on", "off", "nvidia-smi -mig 0")
    if gpu.persistence is False:
        yield Finding(
            "warning",
            "GPU-PERSISTENCE",
            node.name,
            f"{at}: persistence mode is off",
            "on",
            "nvidia-smi -pm 1",
        )
    slowed = [reason for reason in gpu.throttle_reasons or () if reason not in ("gpu_idle",)]
    if slowed:
        yield Finding(
            "warning",
            "GPU-THROTTLED",
            node.name,
            f"{at}: clocks held down by {', '.join(slowed)}",
            "full clocks",
            "see `nvidia-smi -q -d PERFORMANCE`",
        )
    for process in gpu.processes or ():
        yield Finding(
            "error",
            "GPU-BUSY",
            node.name,
            f"{at}: process {process.pid} ({process.name}) uses {process.memory_mib} MiB",
            "no other process",
            "wait for it, or ask its owner",
        )


def together(
    cluster: Cluster, facts: Mapping[str, HostFacts], asked_s: Mapping[str, float]
) -> Iterator[Finding]:
    """What is wrong with the nodes as a set.

    Args:
        asked_s: by node name, this machine's clock when the node answered.
    """
    for node in cluster.members:
        if node.name not in facts:
            continue
        skew = facts[node.name].clock_s - asked_s[node.name]
        if abs(skew) > MOST_SKEW_S:
            yield Finding(
                "error" if abs(skew) > WORST_SKEW_S else "warning",
                "CLOCK-SKEW",
                node.name,
                f"its clock is {skew:+.1f} s from this machine's",
                f"within {MOST_SKEW_S:g} s",
                "start a time service (chrony, ntpd) there",
            )
