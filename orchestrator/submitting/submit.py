"""Finding the job of a command, or submitting it."""

import hashlib
import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator import disk, errors, words
from orchestrator.console import Voice
from orchestrator.model.cluster import Cluster
from orchestrator.model.slurm import OF_GPUS, OF_MEMORY, OF_QOS, Slurm, walltime
from orchestrator.schedulers import slurm_queue
from orchestrator.state.store import Store
from orchestrator.submitting import follow, jobs, one_step

KNOWN_S = 30.0  # until squeue shows a job that sbatch has named
SBATCH = ("sbatch", "--parsable")
END = "END_OF_SCRIPT"
NOT_FOR_JOBS = ("--detach", "--requeue", "--dry-run")
WARNING_S = 120  # before its time limit Slurm signals a job, so that it ends in good order
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
# Slurm signals a cancelled job too, which is not queued again. The program also ends with 143,
# without a signal, if the time left does not suffice for another trial.
AGAIN = """\
state=$(squeue -h -j "$SLURM_JOB_ID" -o %T)
if [ "$state" = RUNNING ] && { [ -n "$told" ] || [ "$code" -eq 143 ]; }; then
    scontrol requeue "$SLURM_JOB_ID" &&
        echo "job $SLURM_JOB_ID has to end here, and is queued again" >&2 && exit "$code"
fi
"""


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that runs one command on nodes of Slurm's.

    Args:
        name: of the job; jobs of one name run one after another.
        folder: for its script and its messages.
        requeue: whether it is queued again when its time is over, or when Slurm ends it.
        gpus: that it asks of every node; 0 where Slurm has none to give.
    """

    slurm: Slurm
    words: tuple[str, ...]
    name: str
    folder: str
    cwd: str
    requeue: bool
    gpus: int = 0

    @property
    def comment(self) -> str:
        text = "\0".join((self.cwd, str(self.slurm.nodes), *self.words))
        return f"dlperf:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def options(self) -> list[str]:
        slurm = self.slurm
        return [
            f"--job-name={self.name}",
            f"--comment={self.comment}",
            *([f"--partition={slurm.partition}"] if slurm.partition else ()),
            *([f"--account={slurm.account}"] if slurm.account else ()),
            f"--nodes={slurm.nodes}",
            "--ntasks-per-node=1",
            "--exclusive",
            *(() if slurm.asks(OF_MEMORY) else ["--mem=0"]),  # all, whatever the default is
            *([f"--gres=gpu:{self.gpus}"] if self.gpus else ()),
            f"--time={slurm.time}",
            f"--signal=B:TERM@{WARNING_S}",
            "--no-kill",
            "--requeue" if self.requeue else "--no-requeue",
            "--dependency=singleton",
            "--open-mode=append",
            "--export=ALL",
            f"--chdir={self.cwd}",
            f"--output={self.folder}/%j.out",
            f"--error={self.folder}/%j.log",
            *slurm.extra,
        ]

    @property
    def script(self) -> str:
        head = "".join(f"#SBATCH {shlex.quote(option)}\n" for option in self.options)
        body = BODY.format(
            command=shlex.join(self.words),
            again=AGAIN if self.requeue else "",
            base=f"{shlex.quote(self.folder)}/$SLURM_JOB_ID",
        )
        return f"#!/bin/sh\n{head}{body}"


def is_needed(cluster: Cluster) -> bool:
    """Return True if a command on this cluster must be submitted: outside of a job of Slurm's."""
    return cluster.slurm is not None and not slurm_queue.job_id()


def _describe(
    store: Store, cluster: Cluster, partition: one_step.Partition | None, *, requeue: bool
) -> Submission:
    """Return the job of this very command line, with the inventory's GPUs where Slurm gives any.

    Args:
        partition: None where Slurm does not say what it has.
    """
    slurm, gpus = _settings(cluster), cluster.defaults.gpus
    given = 0 if partition is None or gpus is None or slurm.asks(OF_GPUS) else partition.gpus
    own = [word for word in sys.argv[1:] if word not in NOT_FOR_JOBS]
    return Submission(
        slurm,
        words=(sys.executable, "-m", "orchestrator", *own),
        name=jobs.make_name(store, cluster),
        folder=str(store.root.resolve() / jobs.FOLDER),
        cwd=str(Path.cwd()),
        requeue=requeue,
        gpus=(gpus.count or given) if gpus and given else 0,
    )


def _settings(cluster: Cluster) -> Slurm:
    assert cluster.slurm is not None, "a cluster without Slurm is never submitted to"
    return cluster.slurm


def show(
    store: Store, cluster: Cluster, voice: Voice, *, requeue: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Print a line that submits the script; return it, and its options that srun takes too."""
    slurm, partition = _settings(cluster), None
    try:
        partition = one_step.partition(slurm.partition, patience_s=0.0)
        refuse_never(slurm, partition)
    except errors.LocalError as error:
        voice.line(f"not known what Slurm has: {error}")
    new = _describe(store, cluster, partition, requeue=requeue)
    pasted = f"mkdir -p {shlex.quote(new.folder)} && {shlex.join(SBATCH)} <<'{END}'"
    voice.result(f"would be submitted by sbatch:\n{pasted}\n{new.script}{END}")
    named = ("--partition=", "--account=", "--gres=", "--time=", *slurm.extra)  # nodes by them
    return new.script, tuple(it for it in new.options if it.startswith(named))


def run(
    store: Store, cluster: Cluster, voice: Voice, *, detach: bool = False, requeue: bool = False
) -> int:
    """Submit this command line, or find the job that runs it already, and follow it; exit code."""
    slurm = _settings(cluster)
    partition = one_step.partition(slurm.partition)
    new = _describe(store, cluster, partition, requeue=requeue)
    jobs.cancel_headless(store, voice)
    queued = (it for it in slurm_queue.jobs(name=new.name) if it.comment == new.comment)
    job = next((it for it in queued if not it.is_over and it.state != "COMPLETING"), None)
    if job is not None:
        voice.line(f"job {job.id} runs this command already: {job.state}")
    else:
        refuse_never(slurm, partition)
        job = _submit(new)
        said = f"job {job.id} is submitted as {job.name}, for {words.count(slurm.nodes, 'node')}"
        voice.line(f"{said}; its messages: {new.folder}/{job.id}.log")
    if detach:
        voice.result(job.summary)
        voice.line("the same command without --detach follows it; `dlperf-orch stop` ends it")
        return voice.finish({"jobs": [job.id]})
    code = follow.follow(job, Path(new.folder), voice)
    return code if code in errors.PRECEDENCE else 1


def refuse_never(slurm: Slurm, partition: one_step.Partition) -> None:
    """Refuse (QUEUE-NEVER) what Slurm would take and never start."""
    name, by_qos = partition.name, slurm.asks(OF_QOS)
    most, limit_s = len(partition.nodes) if by_qos else partition.most, partition.limit_s
    if slurm.nodes > most:
        wrong = f"{slurm.nodes} nodes are needed; partition {name} has {most} for a job"
        fix = "ask for fewer with slurm.nodes"
    elif limit_s is not None and slurm.time_s > limit_s and not by_qos:
        wrong = f"slurm.time is {slurm.time}; partition {name} allows {walltime(limit_s)}"
        fix = f'write slurm.time: "{walltime(limit_s)}" or less'
    else:
        return
    fix = f"{fix}, or name another partition"
    raise errors.UnfitError(wrong, code="QUEUE-NEVER", fix=fix)


def _submit(submission: Submission) -> slurm_queue.Job:
    folder, account = Path(submission.folder), submission.slurm.account
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = folder / f"{moment}-{os.getpid()}-{submission.slurm.nodes}.sh"
    with disk.on_disk(path, "STORE-RIGHTS", "choose another folder with --state"):
        disk.make_folder(folder)
        path.write_text(submission.script)
    charged = (f"--account={account}",) if account else ()  # before SBATCH_ACCOUNT
    answer = slurm_queue.call(*SBATCH, *charged, str(path), patience_s=0.0)
    job = answer.strip().partition(";")[0]
    deadline = time.monotonic() + KNOWN_S
    while time.monotonic() < deadline:
        for found in slurm_queue.jobs(ids=(job,)):
            if found.name == submission.name:
                return found
        time.sleep(follow.LOOK_S)
    return slurm_queue.Job(job, "PENDING", "None", "", "", submission.name, submission.comment)
