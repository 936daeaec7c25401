"""Finding the job of a command, or submitting it."""

import os
import shlex
import sys
import time
from pathlib import Path

from orchestrator import disk, errors, words
from orchestrator.console import Voice
from orchestrator.model.cluster import Cluster
from orchestrator.model.slurm import OF_GPUS, OF_QOS, Slurm, walltime
from orchestrator.schedulers import slurm_queue
from orchestrator.state.store import Store
from orchestrator.submitting import follow, jobs, one_step, script

KNOWN_S = 30.0  # until squeue shows a job that sbatch has named
SBATCH = ("sbatch", "--parsable")
END = "END_OF_SCRIPT"
NOT_FOR_JOBS = ("--detach", "--requeue", "--dry-run")


def is_needed(cluster: Cluster) -> bool:
    """Return True if a command on this cluster must be submitted: outside of a job of Slurm's."""
    return cluster.slurm is not None and not slurm_queue.job_id()


def submission(
    store: Store, cluster: Cluster, partition: one_step.Partition | None, *, requeue: bool
) -> script.Submission:
    """Return the job of this very command line, with the inventory's GPUs where Slurm gives any.

    Args:
        partition: None where Slurm does not say what it has.
    """
    state, slurm, gpus = store.root.resolve(), _settings(cluster), cluster.defaults.gpus
    given = 0 if partition is None or gpus is None or slurm.asks(OF_GPUS) else partition.gpus
    own = [word for word in sys.argv[1:] if word not in NOT_FOR_JOBS]
    return script.Submission(
        words=(sys.executable, "-m", "orchestrator", *own),
        name=script.job_name(cluster.name, str(state)),
        folder=str(state / jobs.FOLDER),
        cwd=str(Path.cwd()),
        nodes=slurm.nodes,
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
    new = submission(store, cluster, partition, requeue=requeue)
    text = script.batch(slurm, new)
    pasted = f"mkdir -p {shlex.quote(new.folder)} && {shlex.join(SBATCH)} <<'{END}'"
    voice.result(f"would be submitted by sbatch:\n{pasted}\n{text}{END}")
    named = ("--partition=", "--account=", "--gres=", "--time=", *slurm.extra)  # nodes by them
    return text, tuple(it for it in script.options(slurm, new) if it.startswith(named))


def run(
    store: Store, cluster: Cluster, voice: Voice, *, detach: bool = False, requeue: bool = False
) -> int:
    """Submit this command line, or find the job that runs it already, and follow it; exit code."""
    slurm = _settings(cluster)
    partition = one_step.partition(slurm.partition)
    new = submission(store, cluster, partition, requeue=requeue)
    jobs.cancel_headless(store, voice)
    queued = (it for it in slurm_queue.jobs(name=new.name) if it.comment == new.comment)
    job = next((it for it in queued if not it.is_over and it.state != "COMPLETING"), None)
    if job is not None:
        voice.line(f"job {job.id} runs this command already: {job.state}")
    else:
        refuse_never(slurm, partition)
        job = _submit(slurm, new)
        said = f"job {job.id} is submitted as {job.name}, for {words.count(new.nodes, 'node')}"
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


def _submit(slurm: Slurm, submission: script.Submission) -> slurm_queue.Job:
    folder = Path(submission.folder)
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = folder / f"{moment}-{os.getpid()}-{submission.nodes}.sh"
    with disk.on_disk(path, "STORE-RIGHTS", "choose another folder with --state"):
        disk.make_folder(folder)
        path.write_text(script.batch(slurm, submission))
    charged = (f"--account={slurm.account}",) if slurm.account else ()  # before SBATCH_ACCOUNT
    answer = slurm_queue.call(*SBATCH, *charged, str(path), patience_s=0.0)
    job = answer.strip().partition(";")[0]
    deadline = time.monotonic() + KNOWN_S
    while time.monotonic() < deadline:
        for found in slurm_queue.jobs(ids=(job,)):
            if found.name == submission.name:
                return found
        time.sleep(follow.LOOK_S)
    return slurm_queue.Job(job, "PENDING", "None", "", "", submission.name, submission.comment)
