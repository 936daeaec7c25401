"""A partition of Slurm, and one short step on one of its nodes, as ``init`` asks about it."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator import errors
from orchestrator.deadlines import QUEUE_S
from orchestrator.model import slurm
from orchestrator.schedulers import slurm_queue
from orchestrator.transports import Completed

NODE_FREE_S = 60
STEP_MIN = 5
MOST_S = 4 * 3600


@dataclass(frozen=True, slots=True)
class Partition:
    """What is known of a partition without a job.

    Args:
        nodes: how many of its nodes answer.
        time: four hours, or its limit if that is shorter, as ``slurm.time`` has it.
        has_pyxis: whether srun here takes container images.
        gpus: of a node, as far as Slurm gives them.
    """

    name: str
    nodes: int
    time: str
    has_pyxis: bool
    gpus: int


def partition(name: str) -> Partition:
    """Ask sinfo.

    Raises:
        UnfitError: NO-PARTITION, or QUEUE-NEVER: no node of it answers.
        LocalError: Slurm cannot be asked.
    """
    lines = slurm_queue.call("sinfo", "-h", "-p", name, "-r", "-o", "%D %l").split("\n")
    found = [line.split() for line in lines if line.strip()]
    if not found:
        raise no_partition(name, "name one of them")
    nodes = sum(int(count) for count, _ in found)
    if not nodes:
        raise errors.UnfitError(
            f"no node of partition {name} answers",
            code="QUEUE-NEVER",
            fix="see `sinfo -R`, or name another partition",
        )
    limits = [slurm_queue.seconds(limit) for _, limit in found]
    seconds = min([limit for limit in limits if limit is not None] + [MOST_S])
    clock = f"{seconds // 3600:02}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    options = slurm_queue.call("srun", "--help")
    return Partition(name, nodes, clock, "--container-image" in options, gpus(name))


def gpus(partition: str | None, patience_s: float = QUEUE_S) -> int:
    """How many GPUs Slurm can give of a node of a partition, or of the default one.

    Where it gives them (``GresTypes``), a job has those alone that it asks for, and the others are
    hidden from it; elsewhere it may not ask, and sees all.

    Raises:
        UnfitError, LocalError: Slurm cannot be asked.
    """
    chosen = ("-p", partition) if partition else ()
    lines = slurm_queue.call("sinfo", "-h", "-o", "%P %G", *chosen, patience_s=patience_s)
    given = [line.partition(" ") for line in lines.splitlines()]
    mine = [gres for name, _, gres in given if partition or name.endswith("*")]
    return max(map(slurm.gpus, mine), default=0)


def run(partition: Partition, account: str | None, argv: Sequence[str]) -> Completed:
    """Run a command on one node of the partition, as a job of its own.

    Raises:
        UnfitError: SLURM-REFUSED; no node is free within a minute, or Slurm takes no such job.
    """
    words = (
        "srun",
        "--quiet",
        f"--partition={partition.name}",
        *((f"--account={account}",) if account else ()),
        "--nodes=1",
        "--ntasks=1",
        f"--time={STEP_MIN}",
        f"--immediate={NODE_FREE_S}",
        *((f"--gres=gpu:{partition.gpus}",) if partition.gpus else ()),
        "--job-name=dlperf-init",
        *argv,
    )
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = done.stderr.decode(errors="replace")
    if done.returncode and not done.stdout:
        first = next((line for line in said.splitlines() if line.strip()), "no reason given")
        raise errors.UnfitError(
            f"one step on partition {partition.name}: {first.removeprefix('srun: error: ')}",
            code="SLURM-REFUSED",
            fix="run it again when a node is free (`sinfo`), or name --account or a partition",
        )
    return Completed(done.returncode, done.stdout, done.stderr)


def no_partition(name: str, fix: str) -> errors.UnfitError:
    """That there is none of this name, with the names of those that there are."""
    named = dict.fromkeys(slurm_queue.call("sinfo", "-h", "-o", "%R").split())
    return errors.UnfitError(
        f"there is no partition {name}; there are {', '.join(named)}",
        code="NO-PARTITION",
        fix=fix,
    )
