"""The jobs of a state folder, as other commands see and end them from the login node."""

import contextlib
import hashlib
import time
from collections.abc import Collection

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.model.cluster import Cluster
from orchestrator.model.process import Holder
from orchestrator.schedulers import slurm_queue
from orchestrator.state.store import Store

FOLDER = "slurm"  # of scripts and messages of jobs, in the state folder
PATIENCE_S = 90.0
AGAIN_S = 0.5


def make_name(store: Store, cluster: Cluster) -> str:
    return f"dlperf-{cluster.name}-{_digest(store)}"


def _digest(store: Store) -> str:
    return hashlib.sha256(str(store.root.resolve()).encode()).hexdigest()[:8]


def list_alive(store: Store, cluster: Cluster) -> list[slurm_queue.Job]:
    """Return the jobs of this state folder and cluster that are not over."""
    name = make_name(store, cluster)
    return [job for job in _of_state(store) if job.name == name and not job.is_over]


def list_waiting(store: Store) -> list[slurm_queue.Job]:
    """Return the jobs of this state folder that have not begun, on any cluster."""
    return [job for job in _of_state(store) if job.state == "PENDING"]


def list_begun(store: Store, hosts: Collection[str]) -> list[slurm_queue.Job]:
    """Return the jobs that have begun, and whose script runs on none of the hosts."""
    others = [job for job in _of_state(store) if job.state in ("CONFIGURING", "RUNNING")]
    return [job for job in others if _host(job.batch_host) not in map(_host, hosts)]


def _of_state(store: Store) -> list[slurm_queue.Job]:
    """Return the jobs of this state folder; none without Slurm, or where it does not answer."""
    if not (store.root / FOLDER).is_dir():
        return []
    with contextlib.suppress(errors.DlperfError):
        ours = [job for job in slurm_queue.jobs() if job.comment.startswith("dlperf:")]
        ending = f"-{_digest(store)}"
        return [job for job in ours if job.name.startswith("dlperf-") and job.name.endswith(ending)]
    return []


def _host(name: str) -> str:
    return name.partition(".")[0]


def cancel_waiting(store: Store, voice: Voice) -> list[str]:
    """Cancel the jobs of this state folder that have not begun; return their ids."""
    found = list_waiting(store)
    for job in found:
        # By name too: after a loss of Slurm's state the id may be another job's.
        slurm_queue.cancel(job.id, "--state=PENDING", f"--name={job.name}")
        voice.result(f"job {job.id}, which had not begun, is cancelled")
    return [job.id for job in found]


def cancel_headless(store: Store, voice: Voice) -> None:
    """Cancel the jobs of this state folder whose script died with its node, and await their end."""
    found = [job for job in _of_state(store) if job.lost_host]
    for job in found:
        slurm_queue.cancel(job.id, f"--name={job.name}")
        voice.line(f"{job.summary}; it is cancelled")
    for job in found:
        _wait_for_end(job.id)


def end(store: Store, cluster: Cluster, holder: Holder | None, voice: Voice) -> str:
    """End the job that runs the controller: in good order, else at once; return its id."""
    if holder is None:
        return ""
    host = _host(holder.process.host)
    running = (job for job in list_alive(store, cluster) if job.state == "RUNNING")
    job = next((it.id for it in running if _host(it.batch_host) == host), "")
    if not job:
        return ""
    with contextlib.suppress(errors.DlperfError):  # else it would be queued again
        slurm_queue.call("scontrol", "update", f"JobId={job}", "Requeue=0")
    voice.line(f"job {job} is told to end")
    slurm_queue.cancel(job, "--batch", "--signal=TERM")
    if not _wait_for_end(job):
        voice.line(f"job {job} does not end by itself; it is cancelled")
        slurm_queue.cancel(job)
        _wait_for_end(job)
    return job


def _wait_for_end(job: str) -> bool:
    """Return True if a job ends in time, or remains only on nodes that do not answer Slurm."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = slurm_queue.jobs(ids=(job,))
        if not found or found[0].is_over:
            return True
        is_ending = found[0].state == "COMPLETING"
        nodes = slurm_queue.names(found[0].nodes if is_ending else found[0].batch_host)
        if nodes and slurm_queue.find_down({}, nodes).issuperset(nodes):
            return is_ending
        time.sleep(AGAIN_S)
    return False
