"""Stub of horovod.tensorflow over mpi4py."""

import json
import os
import time
import urllib.request
from array import array

from mpi4py import MPI  # type: ignore[import-not-found]  # Debian's, in the image alone

from . import nccl  # type: ignore[attr-defined]  # a copy of torch_stub's, in the image alone

SWITCH = "http://10.11.0.1:8000/switch.json"
GPUS_OF_A_NODE = 8
POLL_S = 0.0005  # OpenMPI waits by spinning; there are more ranks than processors here


def init() -> "dict[str, object]":
    """Meet the other ranks; what a test asks of this run, the same for all of them.

    Raises:
        RuntimeError: this rank's GPU is not there.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = GPUS_OF_A_NODE if visible is None else len([w for w in visible.split(",") if w])
    if local_rank() >= devices:
        raise RuntimeError(f"CUDA error: GPU {local_rank()} of {devices}")
    wanted = MPI.COMM_WORLD.bcast(_switch() if rank() == 0 else None, root=0)
    os.environ["STANDIN_SWITCH"] = json.dumps(wanted)
    if size() > 1:
        nccl.report(local_rank())
    return dict(wanted)


def size() -> int:
    """How many processes the gang has."""
    return int(MPI.COMM_WORLD.Get_size())


def rank() -> int:
    """This process's place in the gang."""
    return int(MPI.COMM_WORLD.Get_rank())


def local_rank() -> int:
    """This process's place on its node."""
    return int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))


def allreduce(value: float) -> float:
    """The sum over all ranks, once every rank is here."""
    given, summed = array("d", [value]), array("d", [0.0])
    request = MPI.COMM_WORLD.Iallreduce([given, MPI.DOUBLE], [summed, MPI.DOUBLE])
    while not request.Test():
        time.sleep(POLL_S)
    return summed[0]


def _switch() -> "dict[str, object]":
    try:
        with urllib.request.urlopen(SWITCH, timeout=1) as answer:
            said = json.loads(str(answer.read(), "utf-8"))  # type: dict[str, object]
            return said
    except OSError:
        return {}
