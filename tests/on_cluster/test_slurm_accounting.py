"""Why a job ended, where a site's Slurm has accounting: a real slurmdbd and its database."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, accounting, cluster
from tests.cluster.slurm import lacking
from tests.commands import told
from tests.login import Login
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons, pytest.mark.long]
FORGOTTEN_S = 120.0  # slurmctld forgets once a minute


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two virtual nodes with a Slurm over them that keeps accounts."""
    if words := lacking() or accounting.lacking():
        pytest.skip(words)
    with cluster(2, slurm=True) as up:
        accounting.start(up.place)
        yield up


def test_a_job_that_the_queue_has_forgotten_is_told_by_accounting(login: Login) -> None:
    """Who follows it was away when it was cancelled, and its exit code is not seen here."""
    first = login.sweeping("toy")
    job = login.running_job()
    os.kill(first.pid, signal.SIGSTOP)
    login.slurm.ask("scancel", job)
    wait_for(lambda: job not in login.slurm.jobs(), "a queue without it", limit_s=FORGOTTEN_S)
    (login.state / "slurm" / f"{job}.code").unlink()
    os.kill(first.pid, signal.SIGCONT)
    said = told(first, 6)
    assert f"ERROR SLURM-CANCELLED: job {job} ended (CANCELLED by uid 0)" in said
    login.nothing_left()


def test_a_controller_without_memory_and_who_cancelled_are_told(login: Login) -> None:
    """The limit of the job's memory hits the controller itself; another job ends in good order."""
    path = login.folder / "inventory" / "queue.yaml"
    text = path.read_text()
    path.write_text(text.replace("nodes: 2", 'nodes: 2, extra: ["--mem=20M"]'))
    done = login.run("sweep", "toy")
    assert (done.returncode, "ERROR OOM: job" in done.stderr) == (6, True), done.stderr
    path.write_text(text)
    first = login.sweeping("toy")
    job = login.running_job()
    login.slurm.ask("scancel", job)
    said = told(first, 143)
    assert f"job {job} ended in good order (CANCELLED by uid 0)" in said
    login.nothing_left()
