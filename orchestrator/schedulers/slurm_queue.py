"""Slurm's queue as its own commands tell it: jobs, steps, states of nodes, the allocation."""

import os
import re
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import errors, nodeset
from orchestrator.deadlines import COMMAND_S, QUEUE_S
from orchestrator.model.cluster import Cluster
from orchestrator.model.slurm import SlurmNode, environment, records

AGAIN_S = 1.0
GO_ON = "run the same command again: it goes on in another job"
# States in which a job is over for good; every other one, also one not known here, is not.
ENDED = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    )
)
_DOWN = ("DOWN", "FAIL", "ERROR", "UNKNOWN", "FUTURE", "POWERED_DOWN", "REBOOT")
MOST_NODES = 100_000
_PASSING = re.compile("Unable to contact slurm|Socket timed out|Connection refused|try again|busy")


@dataclass(frozen=True, slots=True)
class Job:
    """A job as squeue shows it.

    Args:
        reason: why it waits or how it ended; ``None`` in Slurm's own words for nothing.
        batch_host: the node that runs its script.
    """

    id: str
    state: str
    reason: str
    nodes: str
    batch_host: str
    name: str
    comment: str

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    @property
    def lost_host(self) -> str:
        """Return the node that ran the job's script, if Slurm has taken it from the job.

        With ``--no-kill`` the job stays RUNNING until its time limit; others of its name wait.
        """
        left = self.state == "RUNNING" and self.batch_host and self.nodes
        return self.batch_host if left and self.batch_host not in names(self.nodes) else ""

    @property
    def summary(self) -> str:
        """Return the job in a line: its state, or why it waits in Slurm's own words."""
        if self.state == "PENDING":
            why = "" if self.reason == "None" else f": {self.reason}"
            return f"job {self.id} waits{why}"
        on = f" on {self.nodes}" if self.nodes else ""
        lost = f", without {self.lost_host}, which ran its script" if self.lost_host else ""
        return f"job {self.id} is {self.state.lower()}{on}{lost}"


def call(*argv: str, patience_s: float = QUEUE_S, may_be_gone: bool = False) -> str:
    """Run a Slurm command, again while slurmctld does not answer; return its output.

    Args:
        may_be_gone: return nothing if there is no such job, or it is over already.

    Raises:
        LocalError: SLURM-MISSING, SLURM-SILENT.
        UnfitError: SLURM-REFUSED.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=max(COMMAND_S, min(patience_s, QUEUE_S)),
                check=False,
                env=environment(os.environ),
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise errors.LocalError(
                f"there is no program {argv[0]} here; needed Slurm's commands",
                code="SLURM-MISSING",
                fix="run this on a login node of the cluster",
            ) from error
        except subprocess.TimeoutExpired:
            said = "slurmctld gave no answer"
        else:
            if done.returncode == 0:
                return done.stdout
            said = done.stderr.strip() or done.stdout.strip() or "no reason given"
            is_over = argv[0] == "scancel" and "already" in said
            if may_be_gone and ("nvalid job id" in said or is_over):
                return ""
            if not _PASSING.search(said):
                why = said.splitlines()[0].removeprefix(f"{argv[0]}: ").removeprefix("error: ")
                fix = "correct `slurm:` of the inventory; --dry-run shows the script"
                raise errors.UnfitError(
                    f"{argv[0]}: {why}",
                    code="SLURM-REFUSED",
                    fix=fix if argv[0] == "sbatch" else "",
                )
        if time.monotonic() > deadline:
            raise errors.LocalError(
                f"{argv[0]}: {said}",
                code="SLURM-SILENT",
                fix="see whether slurmctld runs (`scontrol ping`), then run the same command again",
            )
        time.sleep(AGAIN_S)


def jobs(*, ids: Collection[str] = (), name: str = "", patience_s: float = QUEUE_S) -> list[Job]:
    """List the user's jobs with a name, or with these ids, also jobs that ended just now.

    One that is not among them may be over, or not yet known: nothing follows from that alone.
    """
    chosen = ("--jobs", ",".join(ids)) if ids else ("--me",)
    named = ("--name", name) if name else ()
    shown = (*chosen, *named, "-o", "%A|%T|%r|%N|%B|%j|%k")
    said = call("squeue", "-h", "-t", "all", *shown, patience_s=patience_s, may_be_gone=True)
    lines = (line.strip().split("|", 6) for line in said.splitlines())
    found = (Job(*words) for words in lines if len(words) == 7)
    return [job for job in found if not ids or job.id in ids]


def query_job(job: str, patience_s: float = QUEUE_S) -> dict[str, str]:
    """Query a job's fields, by scontrol's names such as ``RunTime``; raise if it is forgotten."""
    said = call("scontrol", "-o", "show", "job", job, patience_s=patience_s)
    # Of the last task of an array, which has the array's own id, all tasks are shown.
    own = (line for line in said.splitlines() if line.startswith(f"JobId={job} "))
    words = (word.partition("=") for line in own for word in line.split())
    return {name: value for name, equals, value in words if equals and value != "(null)"}


def steps(job: str) -> dict[str, str]:
    """Query the names of a job's running steps, by id such as ``7.12``."""
    said = call("squeue", "-h", "-s", "-j", job, "-o", "%i|%j", may_be_gone=True)
    lines = (line.partition("|") for line in said.splitlines())
    return {step.strip(): name.strip() for step, _, name in lines}


def is_preempted(job: Mapping[str, str]) -> bool:
    """Return True if a job, by its fields, must make room for another when its grace ends.

    Its steps are told at once, its script and its time limit are not.
    """
    return job.get("PreemptTime", "")[:1].isdigit()


def cancel(target: str, *more: str) -> None:
    """End a job or a step, or send it a signal; one that is over is no error."""
    call("scancel", *more, target, may_be_gone=True)


def give_nodes(cluster: Cluster) -> Cluster:
    """Return the cluster with the nodes of the job that this program runs in, in Slurm's order.

    Outside of one they are stand-ins, for plans alone. Other clusters are as their inventory says.
    """
    if cluster.slurm is None or not job_id():
        return stand_ins(cluster) if cluster.slurm else cluster
    listed = os.environ.get("SLURM_JOB_NODELIST", "")
    addresses = {node.name: node.address for node in nodes(listed)}
    return cluster.with_nodes({name: addresses.get(name, name) for name in names(listed)})


def stand_ins(cluster: Cluster) -> Cluster:
    """Return the cluster with as many nodes as Slurm will give, under names of their own."""
    count = cluster.slurm.nodes if cluster.slurm else 0
    return cluster.with_nodes({f"node{number}": f"node{number}" for number in range(1, count + 1)})


def nodes(listed: str = "", patience_s: float = QUEUE_S) -> list[SlurmNode]:
    """Return what Slurm knows of these nodes, listed as it writes them; of all without a list."""
    said = call("scontrol", "-o", "show", "nodes", *filter(None, [listed]), patience_s=patience_s)
    return [SlurmNode.of(record) for record in records(said, "nodename")]


def find_down(job: Mapping[str, str], nodes: Sequence[str]) -> frozenset[str]:
    """Query which of these nodes Slurm has given up, or has taken from the job.

    A job with ``--no-kill`` loses a node that fails, which may be up again a moment later.
    """
    said = call("sinfo", "-h", "-N", "-n", ",".join(nodes), "-o", "%N|%T", patience_s=0.0)
    lines = (line.partition("|") for line in said.splitlines())
    down = {name.strip() for name, _, state in lines if is_down(state.strip().upper())}
    kept = names(job["NodeList"]) if "NodeList" in job else nodes
    return frozenset(node for node in nodes if node in down or node not in kept)


def is_down(state: str) -> bool:
    """Return whether a node in this state runs no task: ``DOWN`` or, silent, ``ALLOCATED*``."""
    return state.startswith(_DOWN) or state.endswith("*")


def names(listed: str) -> tuple[str, ...]:
    """Return the nodes of a list as Slurm writes it, such as ``gpu[01-04],login``."""
    return tuple(nodeset.unfold_all(listed, MOST_NODES)) if listed else ()


def job_id() -> str:
    """Return the job that this program runs in; empty outside of one."""
    return os.environ.get("SLURM_JOB_ID", "")
