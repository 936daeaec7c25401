"""Facts inside a container: GPUs, adapters, limits and shared memory, in one command."""

import re
from collections.abc import Collection, Sequence

from orchestrator import errors
from orchestrator.model.facts import ContainerFacts
from orchestrator.model.node import Node
from orchestrator.model.plan import Mount
from orchestrator.probes import data, gpu, infiniband, number, read_values, sections
from orchestrator.probes.node import ADAPTERS, DRIVER, GPU, IBSTAT, OFED, VERBS, listing
from orchestrator.probes.sections import Answers, Section

LIMITS = "limits"
# No more than a shell and coreutils: images may hold nothing else.
SCRIPT = r"""
printf 'memlock %s\n' "$(ulimit -l)"
df -Pk /dev/shm 2>/dev/null | while read -r _ size _ _ _ mount; do
    case $mount in */shm) printf 'shm_kib %s\n' "$size" ;; esac # else no file system of its own
done
printf 'device %s\n' $(ls /dev/infiniband 2>/dev/null)
exit 0
"""


def questions(node: Node, mounts: Sequence[Mount] = ()) -> tuple[Section, ...]:
    """Return what a container on the node with these data sets is asked."""
    selected = [Section(LIMITS, ("sh", "-c", SCRIPT))]
    if node.gpus is not None:
        selected.append(DRIVER)
    if node.hcas:
        selected += ADAPTERS
    selected += (data.section(mount.target.rpartition("/")[2], mount.target) for mount in mounts)
    return tuple(selected)


def data_mounts(node: Node, names: Collection[str]) -> tuple[Mount, ...]:
    """Return these of the node's data sets as mounts of a container."""
    return tuple(
        Mount(path, f"/mnt/{data.PREFIX}{name}", read_only=True)
        for name, path in node.data.items()
        if name in names
    )


def read_answers(answers: Answers) -> ContainerFacts:
    """Return the facts in the answers.

    Raises:
        LogError: CONTAINER-FACTS.
    """
    outputs = answers.outputs
    limits = read_values(outputs[LIMITS].out)
    said = limits.get("memlock", ["not said"])[-1]
    if not re.fullmatch("[0-9]+|unlimited", said):
        seen = f"the container's memlock is {said}; needed a number"
        raise errors.LogError(seen, code="CONTAINER-FACTS")
    return ContainerFacts(
        gpus=sections.read(outputs.get(GPU), gpu.parse),
        infiniband=listing(outputs.get(IBSTAT), infiniband.parse),
        verbs=sections.read(outputs.get(VERBS), infiniband.parse_verbs),
        ofed=infiniband.ofed_version(outputs[OFED].out) if OFED in outputs else None,
        devices=tuple(filter(None, limits.get("device", ()))),
        memlock_kib=number(limits, "memlock"),
        shm_mib=(number(limits, "shm_kib") or 0) // 1024,
        data=data.states(outputs),
    )
