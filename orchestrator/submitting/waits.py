"""What Slurm says of a job: its state, and what reasons for waiting mean and ask of the user."""

from orchestrator.schedulers import slurm_queue

NEVER = {
    "PartitionNodeLimit": "ask for fewer nodes with slurm.nodes, or name another partition",
    "PartitionTimeLimit": "ask for less with slurm.time; `sinfo -o '%P %l'` shows the limits",
    "BadConstraints": "correct the constraints in slurm.extra",
    "InvalidAccount": "name another account under slurm.account",
    "InvalidQOS": "name another --qos in slurm.extra",
    "DependencyNeverSatisfied": "see `scontrol show job` for what it waits for",
}
"""Reasons that nothing but another request, or an administrator, ends."""

ANEW = ("InvalidAccount", "InvalidQOS")
"""Those of them that every pass of Slurm's scheduler finds anew: 23.11 without accounting says the
first of jobs that it starts in the next moment."""

WORDS = {
    "Resources": "its nodes are in use",
    "Priority": "other jobs come first",
    "BeginTime": "it begins later, as after a requeue",
    "Dependency": "an earlier job of this state folder is not over",
    "JobHeldUser": "it is held; release it with `scontrol release JOB`",
    "JobHeldAdmin": "an administrator holds it; ask them",
    "InvalidAccount": "Slurm finds no such account for it",
    "InvalidQOS": "Slurm finds no such QOS for it",
    "PartitionDown": "the partition is down; ask the administrators",
    "PartitionInactive": "the partition is inactive; ask the administrators",
    "ReqNodeNotAvail": "some of its nodes are not available, as in a maintenance window",
}
LIMITS = ("Assoc", "QOS")  # with which Slurm's names for limits of a site begin


def told(job: slurm_queue.Job) -> str:
    """A job in a line."""
    if job.state == "PENDING":
        return f"job {job.id} waits: {words(job.reason)}"
    return f"job {job.id} is {job.state.lower()}{' on ' if job.nodes else ''}{job.nodes}"


def words(reason: str) -> str:
    """A reason in words, with Slurm's own name for it."""
    name = _name(reason)
    if "DOWN" in reason or "DRAIN" in reason:
        return f"{reason}: too few nodes are up; see `sinfo -R`"
    if name == "None":
        return "Slurm has not looked at it yet"
    if name.startswith(LIMITS):
        return f"{name}: a limit of the account or QOS (`sacctmgr show assoc user=$USER`)"
    return f"{name}: {WORDS[name]}" if name in WORDS else reason


def never(reason: str) -> str:
    """What the user must change for a job that waits for this; empty where it may still start."""
    return NEVER.get(_name(reason), "")


def anew(reason: str) -> bool:
    """Whether the next pass of the scheduler may find otherwise, although it is one of these."""
    return _name(reason) in ANEW


def _name(reason: str) -> str:
    return reason.partition(",")[0].strip("()")
