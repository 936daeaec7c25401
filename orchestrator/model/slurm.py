"""What an inventory says of Slurm: where jobs are submitted, and for how long."""

import re
from collections.abc import Iterator
from typing import Annotated

from orchestrator.model.text import Conflict, Count, Matching, Name, Noun

_TIME = re.compile(
    r"(?:(?P<days>\d{1,3})-)?(?P<hours>\d{1,3}):(?P<minutes>\d{2}):(?P<seconds>\d{2})"
)
_ARGUMENT = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*(=[^\n\0]*)?")
Walltime = Annotated[str, Matching(_TIME, "a time such as '04:00:00' or '1-00:00:00', in quotes")]
Argument = Annotated[
    str, Matching(_ARGUMENT, "an option of sbatch in one word, such as --qos=high")
]

# Options that say what the program says itself; another value would break a promise of it.
OURS = {
    "account": "account", "A": "account", "partition": "partition", "p": "partition",
    "time": "time", "t": "time", "nodes": "nodes", "N": "nodes",
}  # fmt: skip
NOT_GIVEN = (
    "array", "a", "begin", "b", "chdir", "D", "comment", "dependency", "d", "error", "e", "export",
    "input", "i", "job-name", "J", "kill-on-invalid-dep", "no-kill", "k", "no-requeue", "ntasks",
    "n", "ntasks-per-node", "open-mode", "output", "o", "parsable", "requeue", "signal", "wait",
    "W", "wrap",
)  # fmt: skip

# As in `gpu:h100:8(S:0-1),nvme:1`, `gpu:8`.
_GPUS = re.compile(r"(?:^|,)gpu:(?:[^:,()]+:)*(\d+)")
# By which the user asks for GPUs; beside one of them the program does not.
OF_GPUS = ("gres", "gpus", "G", "gpus-per-node", "gpus-per-socket", "gpus-per-task")


class Slurm(Noun):
    """How jobs are submitted to Slurm; their allocation gives the nodes."""

    partition: Name | None = None
    """The partition; Slurm's default one unless said otherwise."""
    account: Name | None = None
    """The account that the job is charged to; the user's default one unless said otherwise."""
    time: Walltime
    """The time limit of a job, in quotes; a sweep that needs longer goes on in another job."""
    nodes: Count
    """How many nodes a job gets; inside an allocation those that it has count."""
    extra: tuple[Argument, ...] = ()
    """Further options of sbatch, one word each."""

    @property
    def asks_gpus(self) -> bool:
        """Return True if the further options ask for GPUs."""
        return any(argument.partition("=")[0].lstrip("-") in OF_GPUS for argument in self.extra)

    @property
    def time_s(self) -> int:
        """Return the time limit in seconds."""
        match = _TIME.fullmatch(self.time)
        assert match is not None
        hours = 24 * int(match["days"] or 0) + int(match["hours"])
        return (60 * hours + int(match["minutes"])) * 60 + int(match["seconds"])

    def conflicts(self) -> Iterator[Conflict]:
        """Yield everything about these settings that cannot hold together."""
        if self.time_s < LEAST_S:
            yield Conflict(
                ("slurm", "time"),
                f"time is {self.time}; needed at least 00:05:00, of which the last two minutes are"
                " for ending in good order",
            )
        for index, argument in enumerate(self.extra):
            name = argument.partition("=")[0].lstrip("-")
            if name in OURS:
                yield Conflict(
                    ("slurm", "extra", index),
                    f"{argument} sets {OURS[name]} again; needed `{OURS[name]}:` under slurm",
                )
            elif name in NOT_GIVEN:
                yield Conflict(
                    ("slurm", "extra", index),
                    f"{argument} is an option that this program gives sbatch itself; needed none",
                )


LEAST_S = 300


def gpus(gres: str) -> int:
    """Return how many GPUs of all types a node has, by what Slurm says of its generic resources."""
    return sum(map(int, _GPUS.findall(gres)))
