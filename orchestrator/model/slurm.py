"""An inventory's settings for Slurm: partition, account, nodes and time of jobs."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from orchestrator.model.text import Count, Matching, Name, Noun

_DURATION = re.compile(r"(?:(?:([0-9]+)-)?([0-9]+):)?([0-9]+):([0-9]+)")
_TIME = r"([0-9]{1,3}-)?[0-9]{1,3}:[0-9]{2}:[0-9]{2}"

# Options that say what the program says itself; another value would break a promise of it.
OURS = frozenset((
    "account", "A", "array", "a", "begin", "b", "chdir", "D", "comment", "dependency", "d", "error",
    "e", "export", "input", "i", "job-name", "J", "kill-on-invalid-dep", "no-kill", "k", "nodes",
    "N", "no-requeue", "ntasks", "n", "ntasks-per-node", "open-mode", "output", "o", "parsable",
    "partition", "p", "requeue", "signal", "test-only", "time", "t", "wait", "W", "wrap",
))  # fmt: skip

# Of a job's time, beside what a trial may take: until its nodes have been looked at, and for ending
# what runs in good order.
BEGIN_S, END_S = 60, 90


def _not_ours(argument: str) -> str:
    if argument.partition("=")[0].lstrip("-") in OURS:
        raise ValueError(
            f"{argument} is an option that this program gives sbatch itself; needed none, or the"
            " key of that name under slurm"
        )
    return argument


Walltime = Annotated[str, Matching(_TIME, "a time such as '04:00:00' or '1-00:00:00', in quotes")]
Argument = Annotated[
    str,
    Matching(
        r"--?[A-Za-z][A-Za-z0-9-]*(=[^\n\0]*)?",
        "an option of sbatch in one word, such as --qos=high",
    ),
    AfterValidator(_not_ours),
]

# Variables by which a user's shell gives options to Slurm's commands: SBATCH_TIMELIMIT counts more
# than the script's line, SQUEUE_USERS hides jobs, SLURM_LABELIO changes what srun prints.
_OPTION = re.compile(r"(SBATCH|SCANCEL|SCONTROL|SINFO|SLURM|SQUEUE|SRUN)_")
_WHICH_SLURM = ("SLURM_CLUSTERS", "SLURM_CONF", "SLURM_JWT", "SBATCH_ACCOUNT", "SLURM_ACCOUNT")

# As in `gpu:h100:8(S:0-1),nvme:1`, `gpu:8`.
_GPUS = re.compile(r"(?:^|,)gpu:(?:[^:,()]+:)*(\d+)")
# By which the user asks for memory or GPUs, where the program does not then, or names a QOS, which
# may lift limits of the partition.
OF_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
OF_QOS = ("qos", "q")
OF_GPUS = ("gres", "gpus", "G", "gpus-per-node", "gpus-per-socket", "gpus-per-task")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return what Slurm's commands get of these variables: without options, but for the account."""
    return {
        name: value
        for name, value in variables.items()
        if name in _WHICH_SLURM or not _OPTION.match(name)
    }


def seconds(words: str) -> int | None:
    """Parse a duration of Slurm's: ``1-02:03:04``, ``02:03:04`` or ``03:04``; None for others."""
    found = _DURATION.fullmatch(words)
    if found is None:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return ((24 * days + hours) * 60 + minutes) * 60 + rest


def walltime(seconds: float) -> str:
    """Return a time as Slurm reads it; parts of a second count as a whole one."""
    whole = math.ceil(seconds)
    return f"{whole // 3600:02}:{whole % 3600 // 60:02}:{whole % 60:02}"


class Slurm(Noun):
    """Options of the Slurm jobs whose allocation gives the nodes."""

    partition: Name | None = None
    """The partition; Slurm's default partition if omitted."""
    account: Name | None = None
    """The account that the job is charged to; the user's default account if omitted."""
    time: Walltime
    """The time limit of a job, in quotes; a sweep that needs longer goes on in another job."""
    nodes: Count
    """Number of nodes of a job; ignored inside an allocation, which has its own."""
    extra: tuple[Argument, ...] = ()
    """Further options of sbatch, one word each."""

    def asks(self, options: tuple[str, ...]) -> bool:
        return any(argument.partition("=")[0].lstrip("-") in options for argument in self.extra)

    @property
    def time_s(self) -> int:
        return seconds(self.time) or 0

    def shortage(self, time_limit_s: float) -> tuple[str, str] | None:
        """Return why no trial fits into a job's time, and what to write; None where one fits."""
        needed_s = time_limit_s + BEGIN_S + END_S
        if self.time_s >= needed_s:
            return None
        limit, needed = walltime(time_limit_s), walltime(needed_s)
        seen = (
            f"a job has {walltime(self.time_s)}; needed {needed} for one trial: {limit} by"
            f" method.time_limit_s, {BEGIN_S} s until it begins and {END_S} s to end in good order"
        )
        time, fits_s = walltime(60 * math.ceil(needed_s / 60)), self.time_s - BEGIN_S - END_S
        return seen, f'write slurm.time: "{time}" or more, or method.time_limit_s: {fits_s} or less'


# Words of a node's state with which Slurm starts no job there, as in `IDLE+DRAIN`, `DOWN*`.
_UNUSABLE = frozenset(
    (
        *("DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILING", "FUTURE"),
        *("INVAL", "INVALID_REG", "NOT_RESPONDING", "UNKNOWN"),
    )
)


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as ``scontrol show nodes`` prints it."""

    name: str
    address: str
    gpus: int
    state: str
    partitions: tuple[str, ...]

    @classmethod
    def of(cls, record: Mapping[str, str]) -> "SlurmNode":
        name = record["nodename"]
        return cls(
            name=name,
            address=record.get("nodeaddr", name),
            gpus=sum(map(int, _GPUS.findall(record.get("gres", "")))),  # of all types
            state=record.get("state", ""),
            partitions=tuple(record.get("partitions", "").split(",")),
        )

    @property
    def is_up(self) -> bool:
        """Return True if Slurm may start jobs on the node, now or once others have ended."""
        return "*" not in self.state and not _UNUSABLE & set(self.state.split("+"))


_PAIR = re.compile(r'(\w+)=("[^"]*"|\S*)')


def records(output: str, first: str) -> list[dict[str, str]]:
    """Return the records of ``scontrol show``; ``first`` is the key that begins one.

    Keys of the answer are in lower case.
    """
    found: list[dict[str, str]] = []
    for line in output.splitlines():
        pairs = _PAIR.findall(line)
        if pairs and pairs[0][0].casefold() == first:
            found.append({})
        if pairs and found:
            for key, value in pairs:  # the first of a key counts: a Reason is free text
                found[-1].setdefault(key.casefold(), value.strip('"'))
    return found
