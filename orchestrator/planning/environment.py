"""The environment of tasks: the inventory's variables, the playbook's, and the workload's own."""

import re
from collections.abc import Iterator, Mapping

from orchestrator import words
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.plan import Placement, Seat
from orchestrator.model.text import Conflict, EnvValue, env_texts
from orchestrator.workloads import Workload

_LIKE_SECRETS = re.compile(rf"(?i)(^|_)({words.SECRET_PART})(_|$)")
# In the address of a proxy: http://name:password@proxy.example:3128.
_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s]+@")
# Logs print local time: with this it is the node's clock in UTC, on which its telemetry is.
CLOCK = {"TZ": "UTC0"}
_OF_THE_INVENTORY = {
    "CUDA_VISIBLE_DEVICES": "gpus: {use: [...]}",
    "NVIDIA_VISIBLE_DEVICES": "gpus: {use: [...]}",
    "NCCL_SOCKET_IFNAME": "interface:",
    "GLOO_SOCKET_IFNAME": "interface:",
    "NCCL_IB_HCA": "hcas:",
    "NCCL_IB_GID_INDEX": "roce: {gid_index: ...}",
    "NCCL_IB_TC": "roce: {traffic_class: ...}",
}
_OF_THE_PROGRAM = (
    *("CUDA_DEVICE_ORDER", "NCCL_DEBUG", "NCCL_DEBUG_FILE", "MASTER_ADDR", "MASTER_PORT"),
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "HOME", *CLOCK),
)
_SHOWN = f"env is shown in plans and reports; {words.NO_SECRETS}"
_PREFIXES = ("DLPERF_", "TORCHELASTIC_", "OMPI_", "PMIX_", "SLURM_")


def added(cluster: Cluster, experiment: Experiment) -> dict[str, str]:
    """Return the user's variables; the playbook's override the inventory's."""
    return {**env_texts(cluster.env), **env_texts(experiment.env)}


def refused(given: Mapping[str, EnvValue]) -> Iterator[Conflict]:
    """Yield variables that look like secrets, or that this program sets."""
    for name, value in given.items():
        if words.is_secret([name]) or _LIKE_SECRETS.search(name):
            text = f"is named like a secret, and {_SHOWN}"
        elif _PASSWORD.search(str(value)):
            text = f"holds an address with a password, and {_SHOWN}"
        elif name in _OF_THE_INVENTORY:
            text = f"is set from `{_OF_THE_INVENTORY[name]}` in the inventory; say it there"
        elif name in _OF_THE_PROGRAM or name.startswith(_PREFIXES):
            text = "is set by this program; needed another variable"
        else:
            continue
        yield Conflict(("env", name), f"{name} {text}")


def find_conflicts(
    case: Case, workload: Workload, experiment: Experiment, cluster: Cluster | None
) -> Iterator[Conflict]:
    """Yield the variables of the user that the workload sets for a case itself."""
    gpus = tuple(range(case.gpus_per_node))
    seat = Seat("n1", "a1", gpus, "eth0", ("mlx5_0",), {}, gid_index=0, traffic_class=0)
    anywhere = Placement((seat,) * case.nodes, case.gpus_per_node, 0, "PROGRAM", "PYTHON")
    for name in workload.env(case, anywhere, seat):
        text = f"{name} is set by workload {workload.name}; needed another variable"
        if name in experiment.env:
            yield Conflict(("env", name), text)
        if cluster and name in cluster.env:
            yield Conflict((), f"inventory {cluster.name}: env.{name}: {text}")
