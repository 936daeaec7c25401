"""A partition of Slurm, and one short step on one of its nodes, as ``init`` asks about it."""

import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator import errors, nodeset
from orchestrator.deadlines import QUEUE_S
from orchestrator.model.slurm import SlurmNode, records, seconds
from orchestrator.runtimes.image_files import first_error
from orchestrator.schedulers import slurm_queue
from orchestrator.transports import Completed
from orchestrator.transports.steps import run_step

NODE_FREE_S = 60
STEP_MIN = 5


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as scontrol shows it: ``limit_s`` of time and ``most`` nodes for a job."""

    name: str
    nodes: tuple[SlurmNode, ...]
    limit_s: int | None
    most: int

    @property
    def gpus(self) -> int:
        """Return how many GPUs a node has, by the node with the most; 0 where Slurm gives none.

        Where it gives GPUs (``GresTypes``), others than a job asks for are hidden from it.
        """
        return max((node.gpus for node in self.nodes), default=0)

    @property
    def up(self) -> tuple[SlurmNode, ...]:
        """Return the nodes on which Slurm may start jobs."""
        return tuple(node for node in self.nodes if node.is_up)

    @property
    def down(self) -> str:
        """Return the names of the other nodes, folded."""
        return nodeset.fold(node.name for node in self.nodes if not node.is_up)


def partition(name: str | None, patience_s: float = QUEUE_S) -> Partition:
    """Return what Slurm knows of a partition, of its default one without a name."""
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
    """Run a command as a job of its own, on one node that is free within a minute."""
    name = f"dlperf-init-{secrets.token_hex(4)}"
    words = ["srun", "--quiet", f"--partition={partition.name}", "--nodes=1", "--ntasks=1"]
    words += [f"--time={STEP_MIN}", f"--immediate={NODE_FREE_S}", f"--job-name={name}"]
    words += [f"--account={account}"] if account else []
    words += [f"--gres=gpu:{partition.gpus}"] if partition.gpus else []
    try:
        done = run_step([*words, *argv], b"", NODE_FREE_S + 60 * STEP_MIN)
    finally:  # the job of an srun that was killed would go on waiting, and then hold a node
        with contextlib.suppress(errors.DlperfError):
            slurm_queue.call("scancel", f"--name={name}", patience_s=0.0)
    if done.exit_code and not done.stdout:
        why = first_error(done.stderr.decode(errors="replace")).removeprefix("srun: error: ")
        raise errors.UnfitError(
            f"one step on partition {partition.name}: {why}",
            code="SLURM-REFUSED",
            fix="run it again when a node is free (`sinfo`), or name --account or a partition",
        )
    return done
