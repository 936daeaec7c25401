"""Slurm on a run of the virtual cluster: one slurmctld, a slurmd on every node, munge."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import TESTS, commands
from tests.cluster import processes
from tests.cluster.place import GATEWAY, Place, TestbedError, address

READY_S = 60.0
PARTITION, PREEMPTING = "main", "high"
_NEEDED = ("slurmctld", "slurmd", "srun", "sbatch", "munged")
_CGROUP = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n"


def lacking() -> str:
    """What this machine lacks for Slurm, in words; empty if nothing."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in _NEEDED if not shutil.which(name, path=path)]
    return f"not on this machine: {', '.join(missing)}" if missing else ""


def shared(place: Place) -> Path:
    """The folder that the login side and every node see at one path."""
    return place.folder / "shared"


def prepare(place: Place, nodes: Sequence[str]) -> None:
    """Start munged, write Slurm's settings and what nodes are to mount; before the nodes start.

    Raises:
        TestbedError: this machine has no Slurm.
    """
    if words := lacking():
        raise TestbedError(words)
    folder = shared(place) / "slurm"
    for part in ("state", "spool", "log"):
        (folder / part).mkdir(parents=True)
    (folder / "slurm.conf").write_text(_conf(folder, nodes))
    (folder / "cgroup.conf").write_text(_CGROUP)
    for number in range(8):  # they stand for the GPUs of every node
        (folder / f"gpu{number}").symlink_to("/dev/null")
    (folder / "gres.conf").write_text(f"Name=gpu Type=v100 File={folder}/gpu[0-7]\n")
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    # The checkout too: a job runs this program from there, as from a shared file system.
    venv = str(Path(sys.prefix).resolve())
    seen = (str(shared(place)), str(TESTS.parent), venv, sys.base_prefix)
    mounts = [path for path in dict.fromkeys(seen) if not path.startswith("/usr")]
    inner = [path for path in mounts if not any(path.startswith(f"{one}/") for one in mounts)]
    (place.folder / "mounts").write_text("".join(f"{path}\n" for path in inner))
    files = [f"--{name}={folder}/munge.{end}" for name, end in _MUNGE]
    munged = ("/usr/sbin/munged", "-F", "--force", *files)
    processes.start(place, munged, log=folder / "log" / "munged.out")
    _wait(place, (folder / "munge.sock").exists, "munged")


def start(place: Place, nodes: Sequence[str]) -> None:
    """Start slurmctld, whose slurmds the nodes have started, and wait until all answer.

    Raises:
        TestbedError: they do not; says the end of their logs.
    """
    controller(place)
    wanted = str(len(nodes))
    idle = ("sinfo", "-h", "-t", "idle", "-p", PARTITION, "-o", "%D")
    _wait(place, lambda: call(place, *idle).stdout.strip() == wanted, f"{wanted} idle nodes")


def controller(place: Place) -> None:
    """Start slurmctld, as after it was killed."""
    folder = shared(place) / "slurm"
    argv = (*place.inside(), "env", f"SLURM_CONF={folder}/slurm.conf", "slurmctld", "-D")
    processes.start(place, argv, log=folder / "log" / "slurmctld.out")


def environment(place: Place) -> Mapping[str, str]:
    """What a user's environment has of Slurm."""
    return {"SLURM_CONF": f"{shared(place)}/slurm/slurm.conf"}


def call(place: Place, *argv: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of Slurm's on the login side; a failure is an answer."""
    return commands.run(
        [*place.inside(), *argv],
        env={**os.environ, **environment(place), **place.mark},
        timeout_s=60.0,
    )


@dataclass(frozen=True, slots=True)
class Slurm:
    """The Slurm of a run that is up."""

    place: Place

    @property
    def folder(self) -> Path:
        """What all nodes see at one path."""
        return shared(self.place)

    def ask(self, *argv: str) -> str:
        """What a command of Slurm's prints.

        Raises:
            TestbedError: it failed.
        """
        done = call(self.place, *argv)
        if done.returncode:
            raise TestbedError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def jobs(self, *more: str) -> dict[str, str]:
        """State by id of all jobs that Slurm still knows."""
        lines = self.ask("squeue", "-h", "-t", "all", "-o", "%A %T", *more).splitlines()
        return dict(line.split() for line in lines)

    def steps(self) -> list[str]:
        """Steps that run, without those of batch scripts and of allocations themselves."""
        lines = self.ask("squeue", "-h", "-s", "-o", "%i").split()
        return [step for step in lines if step.rpartition(".")[2].isdecimal()]


_MUNGE = (
    ("socket", "sock"),
    ("key-file", "key"),
    ("pid-file", "pid"),
    ("log-file", "log"),
    ("seed-file", "seed"),
)


def _conf(folder: Path, nodes: Sequence[str]) -> str:
    named = "".join(
        f"NodeName={node} NodeAddr={address(node)} CPUs=32 Boards=1 SocketsPerBoard=1"
        " CoresPerSocket=32 ThreadsPerCore=1 RealMemory=64000 Gres=gpu:v100:8 State=UNKNOWN\n"
        for node in nodes
    )
    listed = ",".join(nodes)
    return f"""\
ClusterName=virtual
SlurmctldHost={socket.gethostname().partition(".")[0]}({GATEWAY})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
GresTypes=gpu
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
MessageTimeout=10
KillWait=5
MinJobAge=300
WaitTime=0
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0,bf_interval=1
JobAcctGatherType=jobacct_gather/none
{named}\
PartitionName={PARTITION} Nodes={listed} Default=YES State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName={PREEMPTING} Nodes={listed} Default=NO State=UP PriorityTier=10 PreemptMode=OFF
"""


def _wait(place: Place, done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_S
    while not done():
        if time.monotonic() > deadline:
            logs = [
                *sorted((shared(place) / "slurm" / "log").iterdir()),
                *place.folder.glob("nodes/*/var/log/slurmd.log"),
            ]
            said = "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)
            raise TestbedError(f"Slurm: no {what}:\n{said}")
        time.sleep(0.05)


def document(place: Place) -> Mapping[str, str]:
    """What the run says of its Slurm."""
    return {"shared": str(shared(place)), **environment(place)}
