"""Finding the job of a command, or submitting it."""

import os
import shlex
import sys
import time
from pathlib import Path

from orchestrator import disk, errors, words
from orchestrator.console import Voice
from orchestrator.deadlines import QUEUE_S
from orchestrator.model.cluster import Cluster
from orchestrator.model.slurm import Slurm
from orchestrator.schedulers import slurm_queue
from orchestrator.state.store import Store
from orchestrator.submitting import follow, jobs, one_step, script, waits

KNOWN_S = 30.0  # until squeue shows a job that sbatch has named
SBATCH = ("sbatch", "--parsable")
END = "END_OF_SCRIPT"
NOT_FOR_JOBS = ("--detach", "--requeue", "--dry-run")


def is_needed(cluster: Cluster) -> bool:
    """Return True if a command on this cluster must be submitted: outside of a job of Slurm's."""
    return cluster.slurm is not None and not slurm_queue.job_id()


def submission(store: Store, cluster: Cluster, gpus: int, *, requeue: bool) -> script.Submission:
    """Return the job of this very command line, with so many GPUs of every node."""
    state = store.root.resolve()
    own = [word for word in sys.argv[1:] if word not in NOT_FOR_JOBS]
    return script.Submission(
        words=(sys.executable, "-m", "orchestrator", *own),
        name=script.job_name(cluster.name, str(state)),
        folder=str(state / jobs.FOLDER),
        cwd=str(Path.cwd()),
        nodes=_settings(cluster).nodes,
        requeue=requeue,
        gpus=gpus,
    )


def is_again() -> bool:
    """Return True if this is a job that Slurm has started before."""
    return os.environ.get("SLURM_RESTART_COUNT", "0") != "0"


def show(
    store: Store, cluster: Cluster, voice: Voice, *, requeue: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Print a line that submits the script; return the script and what it asks Slurm for."""
    try:
        gpus = _gpus(cluster, patience_s=0.0)
    except errors.DlperfError as error:
        gpus = 0
        voice.line(f"not known whether Slurm gives GPUs: {error}")
    slurm, new = _settings(cluster), submission(store, cluster, gpus, requeue=requeue)
    text = script.batch(slurm, new)
    pasted = f"mkdir -p {shlex.quote(new.folder)} && {shlex.join(SBATCH)} <<'{END}'"
    voice.result(f"would be submitted by sbatch:\n{pasted}\n{text}{END}")
    return text, script.asking(slurm, new)


def run(
    store: Store, cluster: Cluster, voice: Voice, *, detach: bool = False, requeue: bool = False
) -> int:
    """Submit this command line, or find the job that runs it already, and follow it; exit code.

    Args:
        detach: return once it is submitted.
        requeue: queue it again when its time is over.

    Raises:
        UnfitError: Slurm refuses it, or it can never start.
    """
    new = submission(store, cluster, _gpus(cluster), requeue=requeue)
    job = _alive(new)
    if job is not None:
        voice.line(f"job {job.id} runs this command already: {job.state}")
    else:
        _suffices(_settings(cluster), new)
        job = _submitted(_settings(cluster), new)
        said = f"job {job.id} is submitted as {job.name}, for {words.count(new.nodes, 'node')}"
        voice.line(f"{said}; its messages: {new.folder}/{job.id}.log")
    if detach:
        voice.result(waits.told(job))
        voice.line("the same command without --detach follows it; `dlperf-orch stop` ends it")
        voice.document({"exit_code": 0, "jobs": [job.id]})
        return 0
    code = follow.follow(job, Path(new.folder), voice)
    return code if code in errors.PRECEDENCE else 1


def _gpus(cluster: Cluster, patience_s: float = QUEUE_S) -> int:
    """Return how many GPUs of a node a job asks for: the inventory's, if Slurm gives any."""
    slurm, said = _settings(cluster), cluster.defaults.gpus
    if said is None or slurm.asks_gpus:
        return 0
    given = one_step.gpus(slurm.partition, patience_s)
    return (said.count or given) if given else 0


def _settings(cluster: Cluster) -> Slurm:
    if cluster.slurm is None:
        raise AssertionError("a cluster without Slurm is never submitted to")
    return cluster.slurm


def _alive(submission: script.Submission) -> slurm_queue.Job | None:
    jobs = slurm_queue.jobs(name=submission.name)
    mine = (job for job in jobs if job.comment == submission.comment and not job.ended)
    return next(mine, None)


def _suffices(slurm: Slurm, submission: script.Submission) -> None:
    """Refuse what Slurm would take and never start."""
    chosen = ("-p", slurm.partition) if slurm.partition else ()
    counts = slurm_queue.call("sinfo", "-h", "-o", "%P %D", *chosen).splitlines()
    by_partition: dict[str, int] = {}
    for line in counts:
        name, _, count = line.rpartition(" ")
        by_partition[name.strip()] = by_partition.get(name.strip(), 0) + int(count)
    if slurm.partition and not by_partition:
        raise one_step.no_partition(slurm.partition, "name one of them under slurm.partition")
    default = [count for name, count in by_partition.items() if slurm.partition or "*" in name]
    most = max(default, default=0)
    if most and submission.nodes > most:
        raise errors.UnfitError(
            f"{submission.nodes} nodes are needed; the partition has {most}",
            code="QUEUE-NEVER",
            fix="ask for fewer with slurm.nodes, or name another partition",
        )


def _submitted(slurm: Slurm, submission: script.Submission) -> slurm_queue.Job:
    folder = Path(submission.folder)
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = folder / f"{moment}-{os.getpid()}-{submission.nodes}.sh"
    with disk.on_disk(path, "STORE-RIGHTS", "choose another folder with --state"):
        disk.make_folder(folder)
        path.write_text(script.batch(slurm, submission))
    said = slurm_queue.call(*SBATCH, str(path), patience_s=0.0)
    job = said.strip().partition(";")[0]
    deadline = time.monotonic() + KNOWN_S
    while time.monotonic() < deadline:
        found = [one for one in slurm_queue.jobs(ids=(job,)) if one.name == submission.name]
        if found:
            return found[0]
        time.sleep(follow.LOOK_S)
    return slurm_queue.Job(job, "PENDING", "None", submission.name, submission.comment, "")
