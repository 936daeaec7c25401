"""The batch script of a job that runs one of our commands on nodes of Slurm's."""

import hashlib
import shlex
from dataclasses import dataclass

from orchestrator.model.slurm import OF_MEMORY, Slurm

WARNING_S = 120  # before its time limit a job is told, so that it ends in good order
# The program is a child, so that its exit code can be kept: what Slurm says of a job is lost soon.
BODY = """
rm -f {base}.code
case ${{SLURM_RESTART_COUNT:-0}} in
0) ;;
*) echo "job $SLURM_JOB_ID begins again: Slurm had queued it again" >&2 ;;
esac
told=
trap 'told=yes; kill -TERM "$child" 2>/dev/null' TERM
{command} &
child=$!
while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
done
{again}echo "$code" >{base}.code.new && mv {base}.code.new {base}.code
exit "$code"
"""
# A job that was cancelled is told as well: that one is over. 143: also where nobody told it, since
# the time left does not suffice for another trial.
AGAIN = """\
state=$(squeue -h -j "$SLURM_JOB_ID" -o %T)
if [ "$state" = RUNNING ] && { [ -n "$told" ] || [ "$code" -eq 143 ]; }; then
    scontrol requeue "$SLURM_JOB_ID" &&
        echo "job $SLURM_JOB_ID has to end here, and is queued again" >&2 && exit "$code"
fi
"""


@dataclass(frozen=True, slots=True)
class Submission:
    """The command of one job, and the resources that it asks for.

    Args:
        name: of the job; jobs of one name run one after another.
        folder: for its script and its messages.
        requeue: whether it is queued again when its time is over, or when Slurm ends it.
        gpus: of every node; 0 where Slurm has none to give.
    """

    words: tuple[str, ...]
    name: str
    folder: str
    cwd: str
    nodes: int
    requeue: bool
    gpus: int = 0

    @property
    def comment(self) -> str:
        text = "\0".join((self.cwd, str(self.nodes), *self.words))
        return f"dlperf:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def options(slurm: Slurm, submission: Submission) -> list[str]:
    return [
        f"--job-name={submission.name}",
        f"--comment={submission.comment}",
        *([f"--partition={slurm.partition}"] if slurm.partition else ()),
        *([f"--account={slurm.account}"] if slurm.account else ()),
        f"--nodes={submission.nodes}",
        "--ntasks-per-node=1",
        "--exclusive",
        *(() if slurm.asks(OF_MEMORY) else ["--mem=0"]),  # all of a node's, whatever the default is
        *([f"--gres=gpu:{submission.gpus}"] if submission.gpus else ()),
        f"--time={slurm.time}",
        f"--signal=B:TERM@{WARNING_S}",
        "--no-kill",
        "--requeue" if submission.requeue else "--no-requeue",
        "--dependency=singleton",
        "--open-mode=append",
        "--export=ALL",
        f"--chdir={submission.cwd}",
        f"--output={submission.folder}/%j.out",
        f"--error={submission.folder}/%j.log",
        *slurm.extra,
    ]


def batch(slurm: Slurm, submission: Submission) -> str:
    base = f"{shlex.quote(submission.folder)}/$SLURM_JOB_ID"
    head = "".join(f"#SBATCH {shlex.quote(option)}\n" for option in options(slurm, submission))
    body = BODY.format(
        command=shlex.join(submission.words), again=AGAIN if submission.requeue else "", base=base
    )
    return f"#!/bin/sh\n{head}{body}"


def job_name(cluster: str, state: str) -> str:
    return f"dlperf-{cluster}-{_digest(state)}"


def is_of(state: str, name: str, comment: str) -> bool:
    """Return whether a job belongs to this state folder, on any cluster."""
    ours = name.startswith("dlperf-") and comment.startswith("dlperf:")
    return ours and name.endswith(f"-{_digest(state)}")


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()[:8]
