"""A partition of Slurm, and one short step on one of its nodes, as ``init`` asks about it."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator import errors, nodeset
from orchestrator.deadlines import QUEUE_S
from orchestrator.model.slurm import SlurmNode, environment, records, seconds
from orchestrator.schedulers import slurm_queue
from orchestrator.transports import Completed

NODE_FREE_S = 60
STEP_MIN = 5


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as scontrol shows it.

    Args:
        limit_s: of a job's time; None without a limit.
        most: how many nodes a job may have.
    """

    name: str
    nodes: tuple[SlurmNode, ...]
    limit_s: int | None
    most: int

    @property
    def gpus(self) -> int:
        """Return how many GPUs a node has, by the node with the most, as far as Slurm gives them.

        Where Slurm gives GPUs (``GresTypes``), a job has those alone that it asks for, and the
        others are hidden from it; elsewhere it may not ask, and sees all.
        """
        return max((node.gpus for node in self.nodes), default=0)

    @property
    def up(self) -> tuple[SlurmNode, ...]:
        """Return the nodes on which Slurm may start jobs."""
        return tuple(node for node in self.nodes if node.is_up)

    @property
    def down(self) -> str:
        """Return the other nodes, with what Slurm says of them."""
        alike: dict[str, list[str]] = {}
        for node in self.nodes:
            if not node.is_up:
                alike.setdefault(node.condition, []).append(node.name)
        return ", ".join(f"{nodeset.fold(names)} ({words})" for words, names in alike.items())


def partition(name: str | None, patience_s: float = QUEUE_S) -> Partition:
    """Return what Slurm knows of a partition, of its default one without a name.

    Raises:
        UnfitError: NO-PARTITION.
        LocalError: Slurm cannot be asked.
    """
    text = slurm_queue.call("scontrol", "-o", "show", "partition", patience_s=patience_s)
    found = {record["partitionname"]: record for record in records(text, "partitionname")}
    default = [own for own, record in found.items() if record.get("default") == "YES"]
    chosen = name or next(iter(default), "")
    if chosen not in found:
        raise errors.UnfitError(
            f"there is no {f'partition {chosen}' if chosen else 'default partition'}; there are"
            f" {', '.join(found)}",
            code="NO-PARTITION",
            fix="name one of them",
        )
    nodes = [
        node
        for node in slurm_queue.nodes(patience_s=patience_s)
        if chosen in node.partitions and node.state != "FUTURE"
    ]
    most = found[chosen].get("maxnodes", "")
    return Partition(
        name=chosen,
        nodes=tuple(nodes),
        limit_s=seconds(found[chosen].get("maxtime", "")),
        most=min(int(most), len(nodes)) if most.isdecimal() else len(nodes),
    )


def run(partition: Partition, account: str | None, argv: Sequence[str]) -> Completed:
    """Run a command on one node of the partition, as a job of its own.

    Raises:
        UnfitError: SLURM-REFUSED; no node is free within a minute, or Slurm takes no such job.
    """
    words = ["srun", "--quiet", f"--partition={partition.name}", "--nodes=1", "--ntasks=1"]
    words += [f"--time={STEP_MIN}", f"--immediate={NODE_FREE_S}", "--job-name=dlperf-init"]
    words += [f"--account={account}"] if account else []
    words += [f"--gres=gpu:{partition.gpus}"] if partition.gpus else []
    done = subprocess.run(
        [*words, *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=environment(os.environ),
    )
    if done.returncode and not done.stdout:
        lines = done.stderr.decode(errors="replace").splitlines()
        first = next(filter(str.strip, lines), "no reason given")
        raise errors.UnfitError(
            f"one step on partition {partition.name}: {first.removeprefix('srun: error: ')}",
            code="SLURM-REFUSED",
            fix="run it again when a node is free (`sinfo`), or name --account or a partition",
        )
    return Completed(done.returncode, done.stdout, done.stderr)
